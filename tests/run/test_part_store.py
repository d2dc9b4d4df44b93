"""Makers of parts that begin and end at once keep each other's parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gristmill.run.parts import PartStore


@pytest.fixture
def store(tmp_path: Path) -> PartStore:
    """A store with one finished part."""
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    with store.writing("first") as (path, _):
        path.write_bytes(b"first")
    return store


def test_makers_of_equal_inputs_keep_all_parts(store: PartStore) -> None:
    store.begin("rank0", "same")
    store.begin("rank1", "same")
    store.begin("rank0", "same")
    store.end("rank1")
    assert store.finished("first") == {}


def test_a_maker_that_did_not_end_and_read_other_inputs_costs_all_parts(store: PartStore) -> None:
    store.begin("rank0", "before")
    store.begin("rank1", "after")
    assert store.finished("first") is None
    notes = {path.name: path.read_text() for path in store.folder.iterdir()}
    assert notes == {"rank0.inputs": "after", "rank1.inputs": "after"}


def test_a_note_that_cannot_be_read_whole_costs_all_parts(store: PartStore) -> None:
    store.begin("rank0", "same")
    (store.folder / "rank0.inputs").write_bytes(b"sa")
    store.begin("rank0", "same")
    assert store.finished("first") is None


def test_a_maker_that_ends_while_another_begins_is_passed_over(
    store: PartStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def late(self: Path) -> bytes:
        store.end("rank0")
        return read(self)

    store.begin("rank0", "same")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", late)
        store.begin("rank1", "same")
    assert store.finished("first") == {}


def test_a_note_appears_whole(store: PartStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def watched(self: Path, text: str) -> int:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_text", write)
            write(self, "")  # opened, and nothing written yet
            store.begin("rank1", "same")
        return write(self, text)

    monkeypatch.setattr(Path, "write_text", watched)
    store.begin("rank0", "same")
    assert store.finished("first") == {}
    assert (store.folder / "rank0.inputs").read_text() == "same"


def test_many_makers_at_once_keep_all_parts(store: PartStore) -> None:
    def work(number: int) -> None:
        for _ in range(50):
            store.begin(f"rank{number}", "same")
            store.end(f"rank{number}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert store.finished("first") == {}


def test_a_note_that_was_never_renamed_is_removed(store: PartStore) -> None:
    (store.folder / "rank0.inputs.writing").touch()
    store.begin("rank1", "same")
    store.remove_unfinished()
    assert {path.name for path in store.folder.iterdir()} == {
        "first.part",
        "first.json",
        "rank1.inputs",
    }
