"""The inventory says what should be there; its file names carry any name of an artifact."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import FileFailed, GristmillError, Summary
from gristmill.provenance import inventory
from gristmill.provenance.inventory import Entry, State, entries, folder_of
from gristmill.publish import atomic_fs, commit, remove
from gristmill.publish.build import Attempt, Build, Slot
from gristmill.publish.publish import publish
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import TinyConfig, tiny_build


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
def test_the_name_of_a_file_is_the_whole_entry(tmp_path, entry, state):
    file = entry.file(tmp_path, state)
    file.parent.mkdir(parents=True)
    file.touch()
    (file.parent / "stray").touch()
    (file.parent / "stray@p@x").touch()
    assert list(inventory.entries(tmp_path)) == [(entry, state)]
    assert list(inventory.entries(tmp_path, tmp_path / entry.artifact)) == [(entry, state)]
    assert list(inventory.entries(tmp_path, tmp_path / "other")) == []


def test_what_is_lost_is_missing_with_the_command_that_accepts_it(tmp_path):
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


def test_a_lost_artifact_is_missing_below_the_path_that_is_asked_for(tmp_path):
    publish(tiny_build(tmp_path))
    publish(tiny_build(tmp_path, "family/other"))
    shutil.rmtree(tmp_path / OUTER)
    for path, laws in {"": ["missing"], "family": ["missing"], "family/other": []}.items():
        assert [broken.law for broken in provenance.verify(tmp_path / path)] == laws
    assert [broken.law for broken in provenance.verify(tmp_path / OUTER)] == ["missing"]
    assert [broken.law for broken in provenance.verify(tmp_path / "family/x/../tiny")] == [
        "missing"
    ]


def test_a_root_without_an_inventory_misses_nothing(tmp_path):
    publish(tiny_build(tmp_path))
    publish(tiny_build(tmp_path, "family/other"))
    shutil.rmtree(tmp_path / ".gristmill")
    shutil.rmtree(tmp_path / OUTER)
    assert provenance.verify(tmp_path) == []


def test_a_removed_input_was_removed_until_it_is_published_again(tmp_path):
    entry = Entry("family/tiny")
    assert not inventory.was_removed(tmp_path, "family/tiny", "p1")
    publish(tiny_build(tmp_path))
    entry.file(tmp_path).rename(entry.file(tmp_path, State.REMOVED))
    assert inventory.was_removed(tmp_path, "family/tiny", "p1")
    assert not inventory.was_removed(tmp_path, "family/other", "p1")
    publish(tiny_build(tmp_path))
    assert not inventory.was_removed(tmp_path, "family/tiny", "p1")
    assert list(inventory.entries(tmp_path)) == [(entry, State.PUBLISHED)]


def _lost(root: Path) -> list[str]:
    return [Path(b.where).relative_to(root).as_posix() for b in provenance.verify(root)]


def _killed(work: Callable[[], object], before: str) -> None:
    """Run `work` in a child process that ends without a word before a step of the commit."""
    child = os.fork()
    if child == 0:
        module, _, name = before.partition(".")
        owner = {"atomic_fs": atomic_fs, "inventory": inventory, "commit": commit}[module]
        setattr(owner, name, lambda *_: os._exit(9))
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


BUILDS = {
    "single": lambda root: tiny_build(root, "family/new"),
    "shared": lambda root: tiny_build(root, "megatron/kd", partition="p7", shared=True),
    "first of a shared folder": lambda root: tiny_build(root, "kd", partition="a-b", shared=True),
    "nested": lambda root: tiny_build(root, NESTED, outer=OUTER),
}
STEPS = {
    "inventory.begin": False,
    "atomic_fs.place": False,
    "atomic_fs.exchange": False,
    "atomic_fs.flush_upwards": True,
    "inventory.confirm": True,
}
"""Steps of a first commit: whether the artifact is published before the step."""
CASES = [
    (name, step)
    for name in BUILDS
    for step in STEPS
    if step != f"atomic_fs.{'place' if name == 'shared' else 'exchange'}"
]


def _before(root: Path) -> Path:
    publish(tiny_build(root))
    publish(tiny_build(root, "megatron/kd", partition="p1", shared=True))
    return root


def _lose(build: Build) -> None:
    if build.shared and len(list(build.record_path.parent.iterdir())) > 1:
        build.record_path.unlink()
    else:
        shutil.rmtree(build.folder)


def _clean(build: Build) -> None:
    remove.clean_slot(Slot.of(build).work)


def _fail(build: Build) -> None:
    def make(_: Attempt) -> Summary:
        raise GristmillError("no luck")

    with pytest.raises(GristmillError, match="no luck"):
        publish(Build(**{**vars(build), "make": make}))


@pytest.mark.parametrize(("name", "step"), CASES)
def test_a_kill_leaves_no_false_finding_and_hides_no_loss(tmp_path, name, step):
    root, build = _before(tmp_path), BUILDS[name](tmp_path)
    _killed(lambda: publish(build), step)
    assert build.record_path.exists() == STEPS[step]
    assert provenance.verify(root) == []
    if STEPS[step]:
        _lose(build)
        assert "missing" in [broken.law for broken in provenance.verify(root)]
        for repair in (_fail, _clean):
            if Slot.of(build).work.exists():
                repair(build)
            assert "missing" in [broken.law for broken in provenance.verify(root)]


@pytest.mark.parametrize("repair", [_clean, _fail])
@pytest.mark.parametrize(("name", "step"), CASES)
def test_what_a_kill_left_is_settled_before_the_slot_is_emptied(tmp_path, name, step, repair):
    root, build = _before(tmp_path), BUILDS[name](tmp_path)
    _killed(lambda: publish(build), step)
    if not (STEPS[step] and repair is _fail):  # nothing is built where it is up to date
        repair(build)
    assert provenance.verify(root) == []
    entry = build.entry
    if STEPS[step] and repair is _clean:
        assert (entry, State.PUBLISHED) in list(entries(root))
    if not STEPS[step]:
        assert entry not in dict(entries(root))
    publish(build)
    assert (entry, State.PUBLISHED) in list(entries(root))
    assert State.BEGUN not in dict(entries(root)).values()
    _lose(build)
    assert "missing" in [broken.law for broken in provenance.verify(root)]


def test_a_commit_that_fails_leaves_no_entry(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(atomic_fs, "place", broken)
    with pytest.raises(FileFailed, match="Input/output"):
        publish(tiny_build(tmp_path))
    assert list(entries(tmp_path)) == []


def test_a_kill_in_a_rebuild_keeps_the_entry(tmp_path):
    publish(tiny_build(tmp_path))
    shutil.rmtree(tmp_path / OUTER)
    _killed(lambda: publish(tiny_build(tmp_path)), "atomic_fs.place")
    assert _lost(tmp_path) == [OUTER]
    _clean(tiny_build(tmp_path))
    assert _lost(tmp_path) == [OUTER]


def test_nested_artifacts_that_an_outer_commit_drops_are_not_missing(tmp_path):
    publish(tiny_build(tmp_path))
    publish(tiny_build(tmp_path, NESTED, outer=OUTER))
    for step in ("atomic_fs.exchange", "inventory.confirm"):
        _killed(lambda: publish(tiny_build(tmp_path, config=TinyConfig(seed=2))), step)
        assert provenance.verify(tmp_path) == []
    assert not (tmp_path / NESTED).exists()
    publish(tiny_build(tmp_path, NESTED, outer=OUTER))
    publish(tiny_build(tmp_path, config=TinyConfig(seed=2, label="x")))
    shutil.rmtree(tmp_path / NESTED)
    assert _lost(tmp_path) == [NESTED]


def test_a_kill_in_a_removal_leaves_no_finding(tmp_path):
    publish(tiny_build(tmp_path))
    for step, present in {"atomic_fs.place": True, "atomic_fs.flush": False}.items():
        _killed(lambda: remove.remove_artifact(tmp_path / OUTER), step)
        assert (tmp_path / OUTER).exists() == present
        assert _clean(tiny_build(tmp_path)) is None
        publish(tiny_build(tmp_path, "family/other"))
        assert provenance.verify(tmp_path) == []


def test_an_unchanged_build_takes_an_older_root_in(tmp_path):
    root = _before(tmp_path)
    publish(tiny_build(root, NESTED, outer=OUTER))
    before = list(entries(root))
    (root / "drops/x").mkdir(parents=True)
    (root / "drops/x/provenance.json").write_text("{}")
    record = root / "megatron/kd/provenance/p1.json"
    edited = json.loads(record.read_bytes()) | {"deleted_inputs": ["family/gone", "../x", "/x", ""]}
    record.write_text(json.dumps(edited))
    shutil.rmtree(folder_of(root))
    (root / ".gristmill/inventory.new/left").mkdir(parents=True)
    assert publish(tiny_build(root)).rebuilt is False
    assert [pair for pair in entries(root) if pair[0] != Entry("family/gone")] == before
    assert (Entry("family/gone"), State.REMOVED) in list(entries(root))
    assert not (root / ".gristmill/inventory.new").exists()


def test_a_read_only_root_stays_as_it_is(tmp_path, monkeypatch):
    publish(tiny_build(tmp_path))
    shutil.rmtree(folder_of(tmp_path))

    def refused(number: int) -> Callable[..., None]:
        def mkdir(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        return mkdir

    monkeypatch.setattr(Path, "mkdir", refused(30))
    assert publish(tiny_build(tmp_path)).rebuilt is False
    monkeypatch.setattr(Path, "mkdir", refused(28))
    with pytest.raises(OSError, match="No space"):
        publish(tiny_build(tmp_path))
