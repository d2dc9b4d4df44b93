"""Which family answers for a folder: its records decide, else its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.dispatch import kinds_at
from gristmill.families import Misuse
from gristmill.provenance import RECORD, SHARED_RECORDS, read_record
from gristmill.publish.publish import publish
from tests.publish.tiny import tiny_build


def _record_of(root: Path, asset: str, path: Path) -> None:
    """Write a record of `asset` to `path`."""
    source = publish(tiny_build(root)).folder
    record = json.loads((source / RECORD).read_bytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**record, "asset": asset}))
    assert read_record(path).asset == asset


def test_the_record_decides_whatever_the_files_look_like(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    _record_of(tmp_path, "chess/valid_games", folder / RECORD)
    for name in ("metadata.db", "valuation_types.json"):
        (folder / name).touch()
    assert [kind.asset for kind in kinds_at(folder)] == ["chess/valid_games"]


def test_a_shared_folder_has_the_kinds_of_all_its_records(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name, asset in (("00", "harmony"), ("01", "harmony"), ("manifest", "harmony_manifest")):
        _record_of(tmp_path, f"synth/{asset}", folder / SHARED_RECORDS / f"{name}.json")
    kinds = [kind.asset for kind in kinds_at(folder)]
    assert kinds == ["synth/harmony", "synth/harmony_manifest"]


@pytest.mark.parametrize(
    ("files", "asset"),
    [
        (("metadata.db", "valuation_types.json"), "macroxue/pack"),
        (("synth_harmony_shard_02.parquet",), "synth/harmony"),
        (("trace/trace_00.parquet",), "synth/kd_shards"),
        (("valid_games.jsonl",), "chess/valid_games"),
        (("train/splice_indices.u32.bin",), "chess/splice_cache"),
    ],
)
def test_a_folder_without_a_record_is_known_by_its_files(
    tmp_path: Path, files: tuple[str, ...], asset: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [kind.asset for kind in kinds_at(tmp_path)] == [asset]


def test_a_folder_of_no_family_is_misuse_that_names_the_assets(tmp_path: Path) -> None:
    (tmp_path / "metadata.db").touch()
    with pytest.raises(Misuse, match=r"macroxue/pack, .*synth/harmony"):
        kinds_at(tmp_path)


def test_an_asset_that_no_family_knows_is_misuse(tmp_path: Path) -> None:
    _record_of(tmp_path, "letters/counts", tmp_path / "folder" / RECORD)
    with pytest.raises(Misuse, match="not an artifact of a known asset"):
        kinds_at(tmp_path / "folder")


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text("{")
    with pytest.raises(GristmillError, match=RECORD):
        kinds_at(tmp_path)
