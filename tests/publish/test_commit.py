"""A shared folder whose records or files are not as publishing left them: each has a way out."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gristmill import dispatch, provenance
from gristmill.provenance.inventory import Entry
from gristmill.publish import atomic_fs, commit
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.publish.remove import remove_published
from tests.publish.tiny import TinyConfig, garbage, payload, snapshot, tiny_build

FOLDER = "megatron/kd"
KEPT = "megatron/.gristmill/unlisted/kd"


def _build(root: Path, partition: str) -> Build:
    config = TinyConfig(seed=int(partition[1]) + 1)
    return tiny_build(root, FOLDER, partition=partition, shared=True, config=config)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for partition in ("p0", "p1", "p2"):
        publish(_build(tmp_path, partition))
    return tmp_path


def _records(root: Path) -> Path:
    return root / FOLDER / "provenance"


def _cut(root: Path) -> None:
    (_records(root) / "p1.json").write_bytes(b"{")


def _take_an_output_out(root: Path) -> None:
    path = _records(root) / "p1.json"
    record = provenance.read_record(path)
    path.write_bytes(record.model_copy(update={"outputs": record.outputs[1:]}).to_bytes())


def _exchange(root: Path) -> None:
    left, right = _records(root) / "p0.json", _records(root) / "p1.json"
    data = left.read_bytes()
    left.write_bytes(right.read_bytes())
    right.write_bytes(data)


def _take_one_from_elsewhere(root: Path) -> None:
    other = tiny_build(root, "megatron/other", partition="p1", shared=True)
    publish(other)
    (_records(root) / "p1.json").write_bytes(other.record_path.read_bytes())


def _add_a_file(root: Path) -> None:
    (root / FOLDER / ".DS_Store").write_bytes(b"junk")


DAMAGES: list[Callable[[Path], object]] = [
    lambda root: (_records(root) / "p1.json").unlink(),
    lambda root: shutil.copy(_records(root) / "p2.json", _records(root) / "p1.json"),
    *(_cut, _take_an_output_out, _exchange, _take_one_from_elsewhere, _add_a_file),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("order", [("p0", "p1"), ("p1", "p0")])
@pytest.mark.parametrize("removes", [False, True], ids=["rebuild", "remove"])
def test_building_what_is_damaged_again_mends_the_folder(root, damage, order, removes):
    before = payload(root / FOLDER)
    damage(root)
    assert provenance.verify(root) != []
    for partition in order:
        if removes:
            remove_published(root, Entry(FOLDER, partition))
        publish(_build(root, partition), rebuild=True)
        # No other partition loses a file: the folder has it, or, without a record, it is kept.
        there = snapshot(root / KEPT) if (root / KEPT).exists() else {}
        there |= payload(root / FOLDER)
        others = {path: data for path, data in before.items() if partition not in path}
        assert {path: there.get(path) for path in others} == others
    assert provenance.verify(root) == []
    assert payload(root / FOLDER) == before
    assert garbage(root) == []


def test_a_file_of_no_record_is_kept_beside_the_folder_and_named(root):
    _add_a_file(root)
    (root / KEPT).mkdir(parents=True)
    (root / KEPT / ".DS_Store").write_bytes(b"earlier junk")
    (note,) = publish(_build(root, "p0"), rebuild=True).notes[:1]
    assert note == f"moved to {root / KEPT}, as no record lists them: .DS_Store"
    assert (root / KEPT / ".DS_Store").read_bytes() == b"junk"
    assert not (root / FOLDER / ".DS_Store").exists()


@pytest.mark.parametrize("names", [("a", "a/b/c"), ("a/b/c", "a"), ("a/b", "a/b/c")])
def test_a_folder_may_be_kept_where_a_file_was_and_a_file_where_a_folder_was(root, names):
    for name in names:
        file = root / FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        publish(_build(root, "p0"), rebuild=True)
        assert snapshot(root / KEPT) == {name: name.encode()}
        assert provenance.verify(root) == []


def test_files_that_may_be_of_a_damaged_partition_stay_while_another_is_built(root):
    _cut(root)
    before = payload(root / FOLDER)
    publish(_build(root, "p0"), rebuild=True)
    assert payload(root / FOLDER) == before
    assert not (root / KEPT).exists()


def test_removing_a_copied_record_leaves_the_files_of_the_original(root):
    before = payload(root / FOLDER)
    (_records(root) / "p3.json").write_bytes((_records(root) / "p2.json").read_bytes())
    remove_published(root, Entry(FOLDER, "p3"))
    assert payload(root / FOLDER) == before
    assert provenance.verify(root) == []


def _replaced_while_listed(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], bool]:
    """Let another commit replace the shared folder while its `name` is listed; whether it did."""
    folder, real, happened = root / FOLDER, os.scandir, list[Path]()
    listed = folder / name

    def scandir(path: Path) -> Iterator[os.DirEntry[str]]:
        entries = real(path)
        if str(path) == str(listed) and not happened:
            happened.append(listed)
            fresh = root / "fresh"
            shutil.copytree(folder, fresh)
            atomic_fs.exchange(fresh, folder)
            shutil.rmtree(fresh)
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    return lambda: bool(happened)


def test_a_folder_that_another_partition_replaces_always_has_records(root, monkeypatch):
    happened = _replaced_while_listed(root, "provenance", monkeypatch)
    commit.check_place(_build(root, "p3"))
    assert happened()
    happened = _replaced_while_listed(root, "provenance", monkeypatch)
    assert provenance.holds_record(root / FOLDER)
    assert happened()
    happened = _replaced_while_listed(root, "provenance", monkeypatch)
    assert list(dispatch.recorded_assets(root / FOLDER)) == ["p0", "p1", "p2"]
    assert happened()


def test_an_empty_folder_of_another_partition_meanwhile_is_taken(tmp_path, monkeypatch):
    (tmp_path / FOLDER).mkdir(parents=True)
    real, calls = provenance.holds_record, list[Path]()

    def holds_record(folder: Path) -> bool:
        held = real(folder)
        if folder == tmp_path / FOLDER and not calls:
            calls.append(folder)
            publish(_build(tmp_path, "p0"))
        return held

    monkeypatch.setattr(provenance, "holds_record", holds_record)
    commit.check_place(_build(tmp_path, "p1"))
