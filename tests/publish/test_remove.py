"""Removal: published artifacts go in one rename; slots of killed builds are cleaned up."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError, Summary
from gristmill.layout import PARTS
from gristmill.provenance.inventory import Entry
from gristmill.publish import atomic_fs, remove
from gristmill.publish.build import Attempt, Build, Slot
from gristmill.publish.publish import publish
from gristmill.publish.remove import at_path, dependents, named, refuse_dependents, remove_published
from gristmill.run import locks
from tests.publish.killing import State
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import TinyConfig, build_tiny, garbage, made_from, snapshot, tiny_build


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


def test_abandoned_slots_are_cleaned_and_locked_slots_are_not(tmp_path):
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
        slot = Slot.of(nested).work
        (slot / "parts").mkdir(parents=True)
        nested_slot = slot
        assert _clean(tmp_path) == [held]
        assert nested_slot.exists()
    assert _clean(tmp_path) == [nested_slot]
    assert garbage(tmp_path) == []
    assert State.of(tmp_path) == before
    assert provenance.verify(tmp_path) == []
    assert _clean(tmp_path) == []


def test_finished_parts_stay_with_keep_parts(tmp_path):
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


def test_a_removed_artifact_disappears_in_one_rename_and_its_neighbours_stay(tmp_path, monkeypatch):
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


def test_a_build_that_deletes_inputs_is_not_up_to_date_until_its_record_announces_it(tmp_path):
    publish(tiny_build(tmp_path, "family/member"))
    publish(_pool(tmp_path, delete=False))
    published = publish(_pool(tmp_path))
    assert (published.rebuilt, published.record.deleted_inputs) == (True, ["family/member"])
    assert not (tmp_path / "family/member").exists()
    assert garbage(tmp_path) == []


def test_an_input_of_another_version_is_not_deleted(tmp_path):
    publish(tiny_build(tmp_path, "family/member"))
    record = publish(_pool(tmp_path, delete=False)).record
    publish(tiny_build(tmp_path, "family/member", config=TinyConfig(seed=2)))
    with pytest.raises(GristmillError, match=r"^family/member: not deleted, since it was rebuilt"):
        remove.delete_inputs(tmp_path, record, ["family/member"])
    assert (tmp_path / "family/member" / provenance.RECORD).exists()


KD = "megatron/kd"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Partitions p0 and p1 of a shared folder; p1 made an artifact, which has a nested one."""
    for partition in ("p0", "p1"):
        record = publish(
            tiny_build(tmp_path, KD, partition=partition, shared=True, asset="test/kd")
        ).record
    outer = publish(tiny_build(tmp_path, inputs=[made_from(record)])).record
    inputs = [made_from(outer)]
    publish(tiny_build(tmp_path, NESTED, outer=OUTER, inputs=inputs))
    publish(tiny_build(tmp_path, "family/other", inputs=inputs, asset="test/other", partition="q"))
    return tmp_path


def test_a_person_names_a_folder_or_an_asset(root, monkeypatch):
    monkeypatch.chdir(root)
    expected = (root, Entry("family/other"))
    assert named("test/other", data_root=root) == expected
    assert named("test/other", "q", data_root=root) == expected
    assert named("family/other") == named("family/x/../other") == expected
    assert named("test/kd", "p1", data_root=root) == (root, Entry(KD, "p1"))
    assert named(KD, "p0") == at_path(root / KD, "p0") == (root, Entry(KD, "p0"))
    shutil.rmtree(root / ".gristmill")
    assert named(str(root / NESTED)) == (root, Entry(NESTED))


@pytest.mark.parametrize(
    ("target", "partition", "message"),
    [
        ("test/kd", None, "has 2 published partitions: p0, p1: name one with --partition"),
        ("test/kd", "p2", "there is no 'p2'"),
        (KD, None, "2 partitions share this folder"),
        (KD, "p2", "there is no partition 'p2'"),
        ("family/other", "q", "is one artifact: leave --partition out"),
        ("family", None, "no artifact is here, and the inventory names none"),
        ("test/none", None, "no artifact is here"),
        ("/", None, "no artifact is here"),
    ],
)
def test_what_names_no_artifact_is_refused(root, monkeypatch, target, partition, message):
    monkeypatch.chdir(root)
    with pytest.raises(GristmillError, match=message):
        named(target, partition, data_root=root)


def test_what_was_made_from_an_artifact_is_found_each_before_its_inputs(root):
    other = Entry("family/other")
    assert dependents(root, [Entry(KD, "p1")]) == [other, Entry(OUTER)]
    assert dependents(root, [Entry(KD, "p0")]) == []
    assert dependents(root, [Entry(OUTER)]) == [other]
    assert dependents(root, [Entry(OUTER), other]) == []
    records = [
        provenance.read_record(root / path / provenance.RECORD) for path in (NESTED, other.artifact)
    ]
    inputs = [made_from(each) for each in records]
    publish(tiny_build(root, "family/last", inputs=inputs, asset="test/last"))
    last = Entry("family/last")
    assert dependents(root, [Entry(NESTED)]) == [last]
    assert dependents(root, [Entry(OUTER)]) == [last, other]
    assert dependents(root, [Entry(KD, "p1")]) == [last, other, Entry(OUTER)]


def test_a_removal_is_refused_where_something_was_made_from_it():
    refuse_dependents([Entry("a")], [])
    with pytest.raises(GristmillError) as refused:
        refuse_dependents([Entry("a"), Entry("b", "p")], [Entry(f"c{n}") for n in range(22)])
    assert str(refused.value) == (
        "a, b [p]: not removed, since other artifacts were made from it: "
        + ", ".join(f"c{number}" for number in range(20))
        + " and 2 more. Add --with-dependents to remove them, too"
    )


def test_a_removed_artifact_is_gone_with_those_in_it_and_is_not_missing(root):
    remove_published(root, Entry(OUTER))
    assert not (root / OUTER).exists()
    assert provenance.verify(root) == []
    assert garbage(root) == []
    publish(tiny_build(root))
    shutil.rmtree(root / OUTER)
    assert "missing" in [broken.law for broken in provenance.verify(root)]
    remove_published(root, Entry(OUTER))
    assert provenance.verify(root) == []


def test_a_nested_artifact_is_removed_under_the_lock_of_the_outer_one(root):
    with (
        locks.locked(root / "family/.gristmill/locks/tiny", "it"),
        pytest.raises(locks.Busy, match="family/tiny/runtime/cache"),
    ):
        remove_published(root, Entry(NESTED))
    remove_published(root, Entry(NESTED))
    assert not (root / NESTED).exists()
    assert (root / OUTER / "provenance.json").exists()
    assert provenance.verify(root) == []
    assert garbage(root) == []


def test_a_partition_of_a_shared_folder_goes_with_its_files_alone(root):
    (root / KD / "notes.txt").write_text("mine")
    others = {
        path: data
        for path, data in snapshot(root / KD).items()
        if not path.split("/")[-1].startswith("p1")
    }
    with locks.locked(root / "megatron/.gristmill/locks/kd@p1", "it"), pytest.raises(locks.Busy):
        remove_published(root, Entry(KD, "p1"))
    remove_published(root, Entry(KD, "p1"))
    assert others.pop("notes.txt")
    assert snapshot(root / KD) == others
    assert (root / "megatron/.gristmill/unlisted/kd/notes.txt").read_text() == "mine"
    assert provenance.verify(root) == []
    remove_published(root, Entry(KD, "p0"))
    assert not (root / KD).exists()
    remove_published(root, Entry(KD, "p0"))
    assert provenance.verify(root) == []
    assert garbage(root) == []


@pytest.mark.parametrize("change", [b"{", None])
def test_files_of_a_partition_without_a_right_record_are_kept_beside_the_folder(root, change):
    """None: the record of the other partition is copied over it."""
    before = snapshot(root / KD)
    record = root / KD / "provenance/p0.json"
    record.write_bytes(change or record.with_name("p1.json").read_bytes())
    remove_published(root, Entry(KD, "p0"))
    own = {path for path in before if "p0" in path}
    assert set(snapshot(root / KD)) == set(before) - own
    kept = snapshot(root / "megatron/.gristmill/unlisted/kd")
    assert set(kept) == own - {"provenance/p0.json"}
    assert provenance.verify(root / KD) == []
