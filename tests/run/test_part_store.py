"""Makers of parts that begin and end at once keep each other's parts."""

from __future__ import annotations

import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gristmill.run import parts
from gristmill.run.parts import BuildMark, NotTheBuild, PartStore, marked, run_parts
from gristmill.run.workers import on_other_machines, ordered_map
from tests.run.tiny_work import Task, make


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


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No waiting for a network file system; the waits."""
    waits: list[float] = []
    monkeypatch.setattr(parts.time, "sleep", waits.append)
    return waits


def test_each_attempt_has_a_name_of_its_own_while_the_build_lasts(
    tmp_path: Path, hurried: list[float]
) -> None:
    with marked(tmp_path) as mark:
        assert mark.path.parent == tmp_path
        there = pickle.loads(pickle.dumps(mark))
        names = {there.attempt() for _ in range(50)}
        assert len(names) == 50 and all(re.fullmatch("[0-9a-f]{8}", name) for name in names)
        there.check()
    assert list(tmp_path.iterdir()) == [] and hurried == []
    with pytest.raises(NotTheBuild, match="has ended: no part is added"):
        there.check()
    assert hurried == []


def test_a_machine_without_the_folder_makes_nothing(tmp_path: Path, hurried: list[float]) -> None:
    with marked(tmp_path) as mark:
        other = BuildMark(tmp_path / "elsewhere", "host", mark.text, mark.code)
        with pytest.raises(NotTheBuild, match=r"does not see .*elsewhere.*on host"):
            other.attempt()
        assert len(hurried) == 9  # looks ten times
        # A folder of the same path with the mark of another build is no better.
        mark.path.write_text("another")
        with pytest.raises(NotTheBuild, match="does not see"):
            mark.attempt()
        mark.path.write_bytes(b"\xff")
        with pytest.raises(NotTheBuild, match="has ended"):
            mark.check()


def test_a_mark_that_a_network_file_system_shows_late_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with marked(tmp_path) as mark:
        text = mark.path.read_text()
        mark.path.unlink()
        monkeypatch.setattr(parts.time, "sleep", lambda _: mark.path.write_text(text))
        assert mark.attempt()


def test_a_machine_with_other_code_makes_nothing_and_says_what_differs(tmp_path: Path) -> None:
    with marked(tmp_path) as mark:
        of_it = dict(mark.code)
        assert {"gristmill", "python", "numpy"} <= set(of_it)
        changed = of_it | {"numpy": "0.0"}
        del changed["polars"]
        other = BuildMark(mark.path, mark.host, mark.text, tuple(sorted(changed.items())))
        with pytest.raises(NotTheBuild) as refused:
            other.attempt()
    said = str(refused.value)
    assert f"numpy {of_it['numpy']} (the build: 0.0)" in said
    assert f"polars {of_it['polars']} (the build: missing)" in said
    assert "python" not in said


def test_the_code_is_that_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest() -> str:
        return dict(parts.code.__wrapped__())["gristmill"]

    monkeypatch.setattr(parts, "_SOURCES", tmp_path)
    (tmp_path / "a.py").write_text("1")
    first = digest()
    assert digest() == first
    (tmp_path / "a.py").write_text("2")
    second = digest()
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, digest()}) == 3


def parts_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.part")}


def named(count: int) -> list[tuple[str, Task]]:
    return [(task.name, task) for task in (Task(1, index, 3) for index in range(count))]


def test_a_part_that_another_attempt_finished_stays(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    with marked(tmp_path) as mark, store.writing("a", mark) as (late, summary):
        late.write_bytes(b"the same")
        with store.writing("a", mark) as (first, other):
            assert first != late
            first.write_bytes(b"the same")
            other["rows"] = 1
        summary["rows"] = 2
    assert store.finished("a") == {"rows": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.part"]


def test_an_attempt_that_ends_after_its_build_adds_nothing(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    with marked(tmp_path) as mark:
        writing = store.writing("a", mark)
        path, _ = writing.__enter__()
        path.write_bytes(b"late")
    with pytest.raises(NotTheBuild, match="has ended"):
        writing.__exit__(None, None, None)
    assert store.finished("a") is None and parts_of(tmp_path) == {}
    store.remove_unfinished()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", [True, False])
def test_another_engine_makes_the_parts_of_builds_with_workers(tmp_path: Path, kept: bool) -> None:
    calls: list[int] = []

    def elsewhere(function: Any, tasks: Any, workers: int) -> Any:
        calls.append(workers)
        return ordered_map(pickle.loads(pickle.dumps(function)), tasks, 0)

    store = PartStore(tmp_path) if kept else None

    def made(workers: int) -> list[tuple[str, bytes, Any]]:
        some = run_parts(make, named(3), store, workers, scratch=tmp_path)
        return [(name, path.read_bytes(), summary) for name, path, summary in some]

    expected = made(0)
    if store is not None:
        for name, _ in named(2):
            store.forget(name)
    with on_other_machines(elsewhere):
        assert made(1) == expected and calls == []
        if store is not None:
            store.forget("rows-0"), store.forget("rows-1")
        assert made(2) == expected and calls == [2]
        with on_other_machines(None):
            assert made(2) == expected and calls == [2]
    left = sorted(path.name for path in tmp_path.iterdir())
    parts = [f"rows-{index}.{end}" for index in range(3) for end in ("json", "part")]
    assert left == (parts if kept else [])
    if store is not None:
        assert (store.use.parts, store.use.taken_over) == (12, 1 + 1 + 3)
