"""The file of a view: its keys, what is refused, and which sources and values it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.inbox.account import Waits
from gristmill.macroxue.raw.view_file import ViewFile, change, needs, read_view_file


def _file(folder: Path, text: str) -> Path:
    path = folder / "drops/views/v.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_view_file_names_its_source_annotations_and_settings(tmp_path: Path) -> None:
    path = _file(tmp_path, 'pack = "a"\n')
    assert read_view_file(path) == ViewFile("macroxue/pack", "a", "", {})
    text = 'pool = "b"\nannotations = "s"\n[macroxue.training_view]\nnum_bins = 5\n'
    found = read_view_file(_file(tmp_path, text))
    assert found == ViewFile("macroxue/pool", "b", "s", {"num_bins": 5})
    assert found.artifact == "macroxue/pools/b"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must name the pack or the pool"),
        ('pack = "a"\npool = "b"', "must name the pack or the pool"),
        ("pack = 1", "`pack` must be a name"),
        ('pool = "a/b"', "`pool`: "),
        ('pack = "a"\nannotations = "../x"', "`annotations`: "),
        ('pack = "a"\nmembers = []', 'unknown key "members"'),
        ('pack = "a"\n[macroxue.pool]\nshard_rows = 1', "only .macroxue.training_view. is read"),
        ('pack = "a"\n[macroxue.training_view]\nnum_bins = -1', "num_bins = -1: must be"),
        ('pack = "a"\n[macroxue.training_view]\ntrain_query = "SELECT 1"', "belong together"),
    ],
)
def test_a_view_file_that_breaks_a_rule_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(BadInput, match=rule) as caught:
        read_view_file(path)
    assert caught.value.file == str(path)


def test_a_view_waits_for_its_source(tmp_path: Path) -> None:
    path = _file(tmp_path, 'pack = "a"\n')
    with pytest.raises(Waits, match=r"waits: .*macroxue/pack a is not built"):
        needs(path, tmp_path, lambda *_: True)


def test_other_settings_and_annotations_are_a_change(tmp_path: Path) -> None:
    path = _file(tmp_path, 'pack = "a"\nannotations = "s"\n')
    recorded = {"num_bins": 32, "gaps": "mark"}
    used = ["drops/annotations/s/annotations-000000.npy"]
    assert change(path, tmp_path, recorded, used) == ""
    assert change(path, tmp_path, recorded, []) == "the annotations are now s"
    assert change(path, tmp_path, {**recorded, "num_bins": 5}, used) == "num_bins is now 32, was 5"
