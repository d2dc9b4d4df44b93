"""An artifact is removed on purpose in one rename; what was made from it is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.provenance.inventory import Entry
from gristmill.publish import locks
from gristmill.publish.publish import publish
from gristmill.publish.remove_published import (
    at_path,
    dependents,
    named,
    refuse_dependents,
    remove_published,
)
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import garbage, made_from, snapshot, tiny_build

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


def test_a_person_names_a_folder_or_an_asset(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_what_names_no_artifact_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, target: str, partition: str | None, message: str
) -> None:
    monkeypatch.chdir(root)
    with pytest.raises(GristmillError, match=message):
        named(target, partition, data_root=root)


def test_what_was_made_from_an_artifact_is_found_each_before_its_inputs(root: Path) -> None:
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


def test_a_removal_is_refused_where_something_was_made_from_it() -> None:
    refuse_dependents([Entry("a")], [])
    with pytest.raises(GristmillError) as refused:
        refuse_dependents([Entry("a"), Entry("b", "p")], [Entry(f"c{n}") for n in range(22)])
    assert str(refused.value) == (
        "a, b [p]: not removed, since other artifacts were made from it: "
        + ", ".join(f"c{number}" for number in range(20))
        + " and 2 more. Add --with-dependents to remove them, too"
    )


def test_a_removed_artifact_is_gone_with_those_in_it_and_is_not_missing(root: Path) -> None:
    remove_published(root, Entry(OUTER))
    assert not (root / OUTER).exists()
    assert provenance.verify(root) == []
    assert garbage(root) == []
    publish(tiny_build(root))
    shutil.rmtree(root / OUTER)
    assert "missing" in [broken.law for broken in provenance.verify(root)]
    remove_published(root, Entry(OUTER))
    assert provenance.verify(root) == []


def test_a_nested_artifact_is_removed_under_the_lock_of_the_outer_one(root: Path) -> None:
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


def test_a_partition_of_a_shared_folder_goes_with_its_files_alone(root: Path) -> None:
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
def test_files_of_a_partition_without_a_right_record_are_kept_beside_the_folder(
    root: Path, change: bytes | None
) -> None:
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
