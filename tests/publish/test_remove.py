"""Removal: published artifacts go in one rename; slots of killed builds are cleaned up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError, Summary
from gristmill.layout import PARTS
from gristmill.publish import atomic_fs, locks, remove
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.publish.slot import Slot
from tests.publish.killing import State
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import TinyConfig, build_tiny, garbage, made_from, tiny_build


def _leave_parts(build: Build) -> Path:
    def make(attempt: Attempt) -> Summary:
        build_tiny(attempt, TinyConfig(), "")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(Build(**{**vars(build), "make": make}))
    assert Slot.of(build).work.exists()
    return Slot.of(build).work


def _clean(root: Path) -> list[Path]:
    slots = list(remove.abandoned_slots(root))
    for slot in slots:
        remove.clean_slot(slot)
    return slots


def test_abandoned_slots_are_cleaned_and_locked_slots_are_not(tmp_path: Path) -> None:
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    nested = tiny_build(tmp_path, NESTED, outer=OUTER)
    shared = tiny_build(tmp_path, "megatron/kd", partition="p7", shared=True)
    single = tiny_build(tmp_path, "family/other")
    left = [_leave_parts(shared), _leave_parts(nested)]
    held = _leave_parts(single)
    with locks.locked(Slot.of(single).lock, "it"):
        assert _clean(tmp_path) == left
        assert held.exists()
        with pytest.raises(locks.Busy):
            remove.clean_slot(held)
    with locks.locked(Slot.of(tiny_build(tmp_path)).lock, "the outer one"):
        nested_slot = _leave_empty_slot(nested)
        assert _clean(tmp_path) == [held]
        assert nested_slot.exists()
    assert _clean(tmp_path) == [nested_slot]
    assert garbage(tmp_path) == []
    assert State.of(tmp_path) == before
    assert provenance.verify(tmp_path) == []
    assert _clean(tmp_path) == []


def test_finished_parts_stay_with_keep_parts(tmp_path: Path) -> None:
    build = tiny_build(tmp_path)
    slot = _leave_parts(build)
    store = next((slot / PARTS).iterdir())
    (slot / "staging").mkdir(exist_ok=True)
    finished = remove.finished_parts(slot)
    assert finished == len(list(store.glob("*.part"))) > 0
    first = min(store.glob("*.part"))
    inode = first.stat().st_ino
    remove.clean_slot(slot, keep_parts=True)
    assert list(slot.iterdir()) == [slot / PARTS]
    assert first.stat().st_ino == inode
    # A ledger entry without its data, or data without an entry, is no finished part.
    first.unlink()
    assert remove.finished_parts(slot) == finished - 1
    for ledger in store.glob("*.json"):
        ledger.unlink()
    assert remove.finished_parts(slot) == 0
    remove.clean_slot(slot, keep_parts=True)
    assert not slot.exists()


def _leave_empty_slot(nested: Build) -> Path:
    """Made by hand, since the lock of the outer artifact is held."""
    slot = Slot.of(nested).work
    (slot / "parts").mkdir(parents=True)
    return slot


def test_a_removed_artifact_disappears_in_one_rename_and_its_neighbours_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, other = tiny_build(tmp_path), tiny_build(tmp_path, "family/other")
    publish(build), publish(other)
    with (
        locks.locked(Slot.of(build).lock, "a builder"),
        pytest.raises(locks.Busy, match="is already being built by"),
    ):
        remove.remove_artifact(build.folder)
    assert provenance.verify(tmp_path) == []

    # A kill before anything was deleted: readers see no artifact, and its slot is abandoned.
    def killed(path: Path) -> None:
        if path.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(atomic_fs, "remove_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove.remove_artifact(build.folder)
    assert not build.folder.exists()
    assert _clean(tmp_path) == [Slot.of(build).work]

    publish(build)
    remove.remove_artifact(build.folder)
    assert not build.folder.exists()
    assert garbage(tmp_path) == []
    assert [item.artifact for item in _records(tmp_path)] == ["family/other"]
    assert provenance.verify(tmp_path) == []


def _records(root: Path) -> list[provenance.Record]:
    return [provenance.read_record(path) for path in root.rglob(provenance.RECORD)]


def _pool(root: Path, config: TinyConfig | None = None, delete: bool = True) -> Build:
    """A build of one artifact from another one, which it may delete."""
    member = provenance.read_record(root / "family/member" / provenance.RECORD)
    build = tiny_build(root, inputs=[made_from(member)], config=config)
    return dataclasses.replace(build, deletes=["family/member"] if delete else [])


def test_a_build_that_deletes_inputs_is_not_up_to_date_until_its_record_announces_it(
    tmp_path: Path,
) -> None:
    publish(tiny_build(tmp_path, "family/member"))
    publish(_pool(tmp_path, delete=False))
    published = publish(_pool(tmp_path))
    assert (published.rebuilt, published.record.deleted_inputs) == (True, ["family/member"])
    assert not (tmp_path / "family/member").exists()
    assert garbage(tmp_path) == []


def test_an_input_of_another_version_is_not_deleted(tmp_path: Path) -> None:
    publish(tiny_build(tmp_path, "family/member"))
    record = publish(_pool(tmp_path, delete=False)).record
    publish(tiny_build(tmp_path, "family/member", config=TinyConfig(seed=2)))
    with pytest.raises(GristmillError, match=r"^family/member: not deleted, since it was rebuilt"):
        remove.delete_inputs(tmp_path, record, ["family/member"])
    assert (tmp_path / "family/member" / provenance.RECORD).exists()
