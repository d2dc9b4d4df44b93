"""The inventory says what should be there; its file names carry any name of an artifact."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.provenance import inventory
from gristmill.provenance.inventory import Entry, State
from gristmill.publish.publish import publish
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import tiny_build


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize(
    "entry",
    [
        Entry("a"),
        Entry("family/packs/d6"),
        Entry("family/packs/100%@home", "x-"),
        Entry("family/%40", "00"),
        Entry("family/d6", "p+"),
        Entry("family/\udcff name"),
    ],
    ids=repr,
)
def test_the_name_of_a_file_is_the_whole_entry(tmp_path: Path, entry: Entry, state: State) -> None:
    file = entry.file(tmp_path, state)
    file.parent.mkdir(parents=True)
    file.touch()
    (file.parent / "stray").touch()
    (file.parent / "stray@p@x").touch()
    assert list(inventory.entries(tmp_path)) == [(entry, state)]
    assert list(inventory.entries(tmp_path, tmp_path / entry.artifact)) == [(entry, state)]
    assert list(inventory.entries(tmp_path, tmp_path / "other")) == []


def test_what_is_lost_is_missing_with_the_command_that_accepts_it(tmp_path: Path) -> None:
    publish(tiny_build(tmp_path))
    publish(tiny_build(tmp_path, NESTED, outer=OUTER))
    for partition in ("p0", "p1"):
        publish(tiny_build(tmp_path, "megatron/kd", partition=partition, shared=True))
    assert provenance.verify(tmp_path) == []
    (tmp_path / "megatron/kd/provenance/p0.json").unlink()
    shutil.rmtree(tmp_path / OUTER)
    lost = [broken for broken in provenance.verify(tmp_path) if broken.law == "missing"]
    assert [broken.where for broken in lost] == [
        str(tmp_path / path) for path in (OUTER, NESTED, "megatron/kd/provenance/p0.json")
    ]
    assert lost[0].found.endswith(f"gristmill remove {tmp_path / OUTER}")
    assert lost[2].found.endswith(f"gristmill remove {tmp_path / 'megatron/kd'} --partition p0")


def test_a_lost_artifact_is_missing_below_the_path_that_is_asked_for(tmp_path: Path) -> None:
    publish(tiny_build(tmp_path))
    publish(tiny_build(tmp_path, "family/other"))
    shutil.rmtree(tmp_path / OUTER)
    for path, laws in {"": ["missing"], "family": ["missing"], "family/other": []}.items():
        assert [broken.law for broken in provenance.verify(tmp_path / path)] == laws
    assert [broken.law for broken in provenance.verify(tmp_path / OUTER)] == ["missing"]
    assert [broken.law for broken in provenance.verify(tmp_path / "family/x/../tiny")] == [
        "missing"
    ]


def test_a_root_without_an_inventory_misses_nothing(tmp_path: Path) -> None:
    publish(tiny_build(tmp_path))
    publish(tiny_build(tmp_path, "family/other"))
    shutil.rmtree(tmp_path / ".gristmill")
    shutil.rmtree(tmp_path / OUTER)
    assert provenance.verify(tmp_path) == []


def test_a_removed_input_was_removed_until_it_is_published_again(tmp_path: Path) -> None:
    entry = Entry("family/tiny")
    assert not inventory.was_removed(tmp_path, "family/tiny", "p1")
    publish(tiny_build(tmp_path))
    entry.file(tmp_path).rename(entry.file(tmp_path, State.REMOVED))
    assert inventory.was_removed(tmp_path, "family/tiny", "p1")
    assert not inventory.was_removed(tmp_path, "family/other", "p1")
    publish(tiny_build(tmp_path))
    assert not inventory.was_removed(tmp_path, "family/tiny", "p1")
    assert list(inventory.entries(tmp_path)) == [(entry, State.PUBLISHED)]
