"""Parts come in task order, from the store where it has them; broken and foreign ones do not."""

import json
import math
import os
import pickle
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput, GristmillError, Summary
from gristmill.hashing import HashedFile
from gristmill.publish.build import Attempt, Slot
from gristmill.publish.publish import publish
from gristmill.run import parts
from gristmill.run.parts import (
    SHA256,
    VARIABLE,
    BuildMark,
    LatePartStore,
    Made,
    NotTheBuild,
    PartStore,
    StreamFiles,
    marked,
    run_parts,
    run_streams,
    seconds_without_parts,
    time,
)
from gristmill.run.progress import Progress, Report
from gristmill.run.workers import WorkerDied, on_other_machines, ordered_map
from tests.publish.tiny import (
    TinyConfig,
    build_tiny,
    garbage,
    payload,
    raw_file,
    raw_input,
    tiny_build,
)
from tests.run import tiny_work
from tests.run.tiny_work import Task, make


class PowerLoss(BaseException):
    """Stops a build as a kill would, but leaves the test alive."""


def _stopped_after_parts(root: Path, config: TinyConfig, **options: object) -> Path:
    """Build until all parts are finished, fail then, and return the folder of parts."""

    def make(attempt: Attempt) -> Summary:
        build_tiny(attempt, config, "")
        raise PowerLoss

    build = tiny_build(root, config=config, make=make, **options)  # type: ignore[arg-type]
    with pytest.raises(PowerLoss):
        publish(build)
    return Slot.of(build).work / "parts" / build.parts_key


def _computed(root: Path, config: TinyConfig, **options: object) -> float:
    published = publish(tiny_build(root, config=config, **options))  # type: ignore[arg-type]
    assert garbage(root) == []
    return published.record.counts["computed"]


def test_finished_parts_are_adopted_and_the_bytes_are_the_same(tmp_path):
    plain, resumed = tmp_path / "plain", tmp_path / "resumed"
    assert _computed(plain, TinyConfig()) == 3
    parts = _stopped_after_parts(resumed, TinyConfig())
    assert sorted(path.name for path in parts.glob("*.part")) == [
        f"rows-{index}.part" for index in range(3)
    ]
    assert _computed(resumed, TinyConfig(workers=2)) == 0
    place = {"place.json": b""}
    assert payload(plain / "family/tiny") | place == payload(resumed / "family/tiny") | place


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: (parts / "rows-1.part").write_bytes(b"x" * 16),
        lambda parts: os.truncate(parts / "rows-1.part", 8),
        lambda parts: (parts / "rows-1.part").unlink(),
        lambda parts: (parts / "rows-1.json").unlink(),
        lambda parts: (parts / "rows-1.json").write_bytes(b'{"sha256": "'),
        lambda parts: (parts / "rows-1.json").write_bytes(b"[]"),
    ],
)
def test_a_spoiled_part_is_made_again(tmp_path, spoil):
    spoil(_stopped_after_parts(tmp_path, TinyConfig()))
    assert _computed(tmp_path, TinyConfig()) == 1


def test_half_written_parts_and_those_of_another_fingerprint_are_swept(tmp_path):
    parts = _stopped_after_parts(tmp_path, TinyConfig())
    (parts / "rows-1.json").unlink()
    (parts / "rows-1.writing").write_bytes(b"half")
    (parts / ".boards-x1").mkdir()
    (parts / ".boards-x1/rows").write_bytes(b"half")
    (parts / "rows-1.writing-journal").write_bytes(b"hot")
    # tiny_work opens its path with "x": anything left there would fail the build.
    assert _computed(tmp_path, TinyConfig()) == 1
    (tmp_path := tmp_path / "next").mkdir()
    parts = _stopped_after_parts(tmp_path, TinyConfig(seed=1))
    assert _computed(tmp_path, TinyConfig(seed=2)) == 3
    assert not parts.exists()


def test_parts_made_while_a_raw_file_was_replaced_and_put_back_are_not_adopted(tmp_path):
    raw = raw_file(tmp_path)
    before = raw_input(tmp_path, "drops/raw")
    _stopped_after_parts(tmp_path, TinyConfig(), inputs=[before])
    os.utime(raw, ns=(0, 12345))
    after = raw_input(tmp_path, "drops/raw")
    assert replace_time(before) == replace_time(after)
    assert _computed(tmp_path, TinyConfig(), inputs=[after]) == 3


def replace_time(item: object) -> object:
    return item.model_copy(update={"mtime_ns": 0})  # type: ignore[attr-defined]


def test_no_parts_are_left_after_a_failure_and_runs_share_a_scratch_folder(tmp_path):
    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "half").write_bytes(b"half")
        raise BadInput("drops/a.txt", "is not what it should be", row=3)

    with pytest.raises(BadInput, match=r"drops/a.txt:3: is not what it should be"):
        publish(tiny_build(tmp_path, make=make))
    assert garbage(tmp_path) == []
    for _, outer, _ in run_parts(tiny_work.make, _tasks(3), None, 1, scratch=tmp_path):
        for _, inner, _ in run_parts(tiny_work.make, _tasks(1), None, 1, scratch=tmp_path):
            assert inner != outer
        assert outer.exists()


def _tasks(count: int) -> list[tuple[str, tiny_work.Task]]:
    return [(f"rows-{index}", tiny_work.Task(1, index, index)) for index in range(count)]


def _store(folder: Path) -> PartStore:
    folder.mkdir()
    return PartStore(folder)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_parts_come_in_the_order_of_the_tasks(tmp_path, workers, kept):
    store = _store(tmp_path / "parts") if kept else None
    tasks = [
        (name, tiny_work.Task(1, i, i, 0.1 * (i == 0))) for i, (name, _) in enumerate(_tasks(9))
    ]
    finished = [
        (name, path.stat().st_size, summary)
        for name, path, summary in run_parts(
            tiny_work.make, tasks, store, workers, scratch=tmp_path
        )
    ]
    assert finished == [(f"rows-{i}", 8 * i, {"rows": i}) for i in range(9)]


def test_parts_that_the_store_has_are_not_made_again(tmp_path):
    store = _store(tmp_path / "parts")
    list(run_parts(tiny_work.make, _tasks(3), store, 1, scratch=tmp_path))
    made: list[int] = []

    def make(task: tiny_work.Task, path: Path) -> dict[str, Any]:
        made.append(task.index)
        return tiny_work.make(task, path)

    finished = list(run_parts(make, _tasks(5), store, 1, scratch=tmp_path))
    assert made == [3, 4]
    assert [summary["rows"] for _, _, summary in finished] == [0, 1, 2, 3, 4]
    assert all(store.finished(name) == summary for name, _, summary in finished)


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_of_an_earlier_build_are_counted(tmp_path, workers):
    earlier = _store(tmp_path / "parts")
    assert earlier.count() == PartStore(tmp_path / "none").count() == 0
    list(run_parts(tiny_work.make, _tasks(3), earlier, workers, scratch=tmp_path))
    assert (earlier.use.taken_over, earlier.use.parts) == (0, 3)
    assert earlier.use.notes() == []
    store = PartStore(tmp_path / "parts")
    assert store.count() == 3
    list(run_parts(tiny_work.make, _tasks(5), store, workers, scratch=tmp_path))
    assert store.use.notes() == ["3 of 5 parts taken over from an earlier build"]
    assert store == earlier


def test_a_build_says_what_it_took_over_from_a_killed_one(tmp_path):
    parts = _stopped_after_parts(tmp_path, TinyConfig())
    (parts / "rows-1.json").unlink()
    reports: list[Report] = []
    progress = Progress(reports.append)
    published = publish(tiny_build(tmp_path, config=TinyConfig()), progress=progress)
    assert published.notes == ["2 of 3 parts taken over from an earlier build"]
    notes = [report.note for report in reports if report.moment == "note"]
    assert notes == ["takes over 2 finished parts of an earlier build"]
    again = publish(tiny_build(tmp_path, config=TinyConfig(seed=9)), progress=progress)
    assert again.notes == ["built again: config changed (seed 1 -> 9)"]
    assert len([report for report in reports if report.moment == "note"]) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_without_a_store_a_part_goes_when_the_next_one_is_asked_for(tmp_path, workers):
    before: Path | None = None
    for _, path, _ in run_parts(tiny_work.make, _tasks(20), None, workers, scratch=tmp_path):
        assert path.exists()
        assert path.is_relative_to(tmp_path)
        assert before is None or not before.exists()
        # Two a worker under way, and the one that was given out.
        assert len(list(path.parent.iterdir())) <= 2 * workers + 1
        before = path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_caller_that_stops_early_leaves_nothing_in_the_scratch_folder(tmp_path, workers):
    finished = run_parts(tiny_work.make, _tasks(20), None, workers, scratch=tmp_path)
    next(finished)
    finished.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_are_taken_no_faster_than_parts_are(tmp_path, workers):
    taken = 0

    def tasks() -> Iterator[tuple[str, tiny_work.Task]]:
        nonlocal taken
        for task in _tasks(30):
            taken += 1
            yield task

    finished = run_parts(tiny_work.make, tasks(), None, workers, scratch=tmp_path)
    for count, _ in enumerate(finished, start=1):
        assert taken <= count + 2 * workers


def test_one_worker_makes_the_parts_in_this_thread_one_after_the_other(tmp_path):
    threads: list[int] = []
    results: list[int] = []

    def make(task: int, path: Path) -> dict[str, Any]:
        threads.append(threading.get_ident())
        path.touch()
        return {"number": task}

    def tasks() -> Iterator[tuple[str, int]]:
        for index in range(4):
            yield str(index), sum(results) + 1

    for _, _, summary in run_parts(make, tasks(), None, 1, scratch=tmp_path):
        results.append(summary["number"])
    assert results == [1, 2, 4, 8]
    assert set(threads) == {threading.get_ident()}


def test_parts_finished_before_a_worker_was_killed_are_used_again(tmp_path):
    store = _store(tmp_path / "parts")
    tasks = [(str(index), index) for index in range(9)]
    with pytest.raises(WorkerDied):
        list(run_parts(tiny_work.die_as_part, tasks, store, 2, scratch=tmp_path))
    assert store.finished("3") is None
    store.remove_unfinished()
    kept = {path.name: path.stat().st_ino for path in store.folder.glob("*.part")}
    list(run_parts(tiny_work.die_as_part, tasks[:3], store, 1, scratch=tmp_path))
    assert kept
    assert {name: (store.folder / name).stat().st_ino for name in kept} == kept


def test_the_engine_runs_the_tasks(tmp_path):
    asked: list[int] = []

    def engine(
        function: Callable[[Any], Any], tasks: Iterable[Any], workers: int
    ) -> Generator[Any]:
        asked.append(workers)
        yield from ordered_map(function, tasks, 1)

    finished = run_parts(tiny_work.make, _tasks(2), None, 7, scratch=tmp_path, engine=engine)
    assert [name for name, _, _ in finished] == ["rows-0", "rows-1"]
    assert asked == [7]


@pytest.mark.parametrize("kept", [False, True])
def test_the_hash_that_a_part_was_written_with_is_not_in_its_summary(tmp_path, kept):
    def make(task: int, path: Path) -> dict[str, Any]:
        with HashedFile(path) as file:
            file.write(bytes(task))
        return {"number": task, SHA256: file.sha256}

    store = _store(tmp_path / "parts") if kept else None
    done = run_parts(make, [("one", 1), ("two", 2)], store, 1, scratch=tmp_path)
    assert [summary for _, _, summary in done] == [{"number": 1}, {"number": 2}]
    if store is not None:
        assert store.finished("two") == {"number": 2}
        store.data("two").write_bytes(b"x")
        assert store.finished("two") is None


def test_a_part_is_hashed_once_if_its_writer_hashed_it(tmp_path, monkeypatch):
    read: list[Path] = []
    monkeypatch.setattr(parts, "sha256_file", lambda path: read.append(path) or "read")
    store = _store(tmp_path / "parts")
    tasks = [("one", {SHA256: "noted"}), ("two", {})]

    def make(task: dict[str, Any], path: Path) -> dict[str, Any]:
        path.touch()
        return dict(task)

    list(run_parts(make, tasks, store, 1, scratch=tmp_path))
    hashes = [json.loads((store.folder / f"{name}.json").read_text()) for name in ("one", "two")]
    assert [entry["sha256"] for entry in hashes] == ["noted", "read"]


@pytest.fixture
def store(tmp_path: Path) -> PartStore:
    """A store with one finished part."""
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    with store.writing("first") as (path, _):
        path.write_bytes(b"first")
    return store


def test_makers_of_equal_inputs_keep_all_parts_and_a_broken_note_costs_them(store):
    def work(number: int) -> None:
        for _ in range(50):
            store.begin(f"rank{number}", "same")
            store.end(f"rank{number}")

    for name in ("rank0", "rank1", "rank0"):
        store.begin(name, "same")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert store.finished("first") == {}
    store.begin("rank0", "same")
    (store.folder / "rank0.inputs").write_bytes(b"sa")
    store.begin("rank0", "same")
    assert store.finished("first") is None


def test_what_was_begun_and_not_finished_is_no_part_and_is_removed(store):
    with pytest.raises(ZeroDivisionError), store.writing("a") as (path, summary):
        path.write_bytes(b"half")
        summary["rows"] = 1 // 0
    assert store.finished("a") is None
    (store.folder / "rank0.inputs.writing").touch()  # a note that was never renamed
    (store.folder / "rows-0.writing").write_bytes(b"half")
    list(run_parts(tiny_work.make, _tasks(1), store, 1, scratch=store.folder))
    assert store.finished("rows-0") == {"rows": 0}
    store.remove_unfinished()
    names = ("first.json", "first.part", "rows-0.json", "rows-0.part")
    assert tuple(sorted(path.name for path in store.folder.iterdir())) == names


def test_a_maker_that_did_not_end_and_read_other_inputs_costs_all_parts(store):
    store.begin("rank0", "before")
    store.begin("rank1", "after")
    assert store.finished("first") is None
    notes = {path.name: path.read_text() for path in store.folder.iterdir()}
    assert notes == {"rank0.inputs": "after", "rank1.inputs": "after"}


def test_a_maker_that_ends_while_another_begins_is_passed_over(store, monkeypatch):
    read = Path.read_bytes

    def late(self: Path) -> bytes:
        store.end("rank0")
        return read(self)

    store.begin("rank0", "same")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", late)
        store.begin("rank1", "same")
    assert store.finished("first") == {}


def test_a_note_appears_whole(store, monkeypatch):
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


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No waiting for a network file system; the waits."""
    waits: list[float] = []
    monkeypatch.setattr(parts.time, "sleep", waits.append)
    return waits


def test_each_attempt_has_a_name_of_its_own_while_the_build_lasts(tmp_path, hurried):
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


def test_a_machine_without_the_folder_makes_nothing(tmp_path, hurried):
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


def test_a_mark_that_a_network_file_system_shows_late_is_seen(tmp_path, monkeypatch):
    with marked(tmp_path) as mark:
        text = mark.path.read_text()
        mark.path.unlink()
        monkeypatch.setattr(parts.time, "sleep", lambda _: mark.path.write_text(text))
        assert mark.attempt()


def test_a_machine_with_other_code_makes_nothing_and_says_what_differs(tmp_path):
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


def test_the_code_is_that_of_the_sources(tmp_path, monkeypatch):
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


def test_a_part_that_another_attempt_finished_stays(tmp_path):
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


def test_an_attempt_that_ends_after_its_build_adds_nothing(tmp_path):
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
def test_another_engine_makes_the_parts_of_builds_with_workers(tmp_path, kept):
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


TASKS = [(f"part-{number}", number) for number in range(5)]


def _make(number: int) -> Made:
    streams = {"rows": bytes([number]) * (number * 700_000), "rejects": f"{number};".encode()}
    return streams, {"number": number}


def _build(folder: Path, store: PartStore | None, workers: int) -> tuple[dict[str, int], list[int]]:
    numbers = []
    with StreamFiles({name: folder / name / "all" for name in ("rows", "rejects")}) as written:
        for streams, summary in run_streams(_make, TASKS, store, workers, scratch=folder):
            for name, data in streams:
                written.write(name, data)
            numbers.append(summary["number"])
    return written.sizes, numbers


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_a_stream_is_that_of_all_parts_in_task_order(tmp_path, workers, kept):
    store = PartStore(tmp_path / "parts") if kept else None
    (tmp_path / "parts").mkdir()
    for out in (tmp_path / "out", tmp_path / "again")[: 2 if kept else 1]:
        out.mkdir()
        sizes, numbers = _build(out, store, workers)
        rows, rejects = (out / "rows/all").read_bytes(), (out / "rejects/all").read_bytes()
        assert rows == b"".join(bytes([n]) * (n * 700_000) for n in range(5))
        assert rejects == b"0;1;2;3;4;"
        assert sizes == {"rows": len(rows), "rejects": len(rejects)}
        assert numbers == [0, 1, 2, 3, 4]
        assert sorted(path.name for path in out.iterdir()) == ["rejects", "rows"]


def test_a_short_build_keeps_no_part_and_one_that_is_cut_is_named(tmp_path, monkeypatch):
    tmp_path.joinpath("parts").mkdir()
    store = LatePartStore(tmp_path / "parts", keep_from=math.inf)
    for streams, _ in run_streams(_make, TASKS, store, 1, scratch=tmp_path):
        assert dict(streams).keys() == {"rows", "rejects"}
        assert list(store.folder.iterdir()) == []
    (tmp_path := tmp_path / "next").mkdir()
    store = PartStore(tmp_path)
    parts = run_streams(_make, TASKS[1:], store, 1, scratch=tmp_path)
    streams, _ = next(parts)
    os.truncate(store.data("part-1"), 3)
    with pytest.raises(GristmillError, match=r"part-1\.part: the part has lost its end"):
        list(streams)
    (tmp_path := tmp_path / "next").mkdir()
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    store = LatePartStore(tmp_path, keep_from=3)
    list(run_streams(_make, TASKS, store, 1, scratch=tmp_path))
    assert [name for name, _ in TASKS if store.is_listed(name)] == ["part-3", "part-4"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_part_that_was_finished_is_taken_over_whether_or_not_parts_are_kept(tmp_path, workers):
    kept = PartStore(tmp_path)
    assert len(list(run_streams(_make, TASKS[2:4], kept, 1, scratch=tmp_path))) == 2
    store = LatePartStore(tmp_path, keep_from=math.inf)
    numbers = [
        summary["number"]
        for _, summary in run_streams(_make, TASKS, store, workers, scratch=tmp_path)
    ]
    assert numbers == [0, 1, 2, 3, 4]
    assert store.use.taken_over == 2


@pytest.mark.parametrize(("text", "seconds"), [("", 30.0), ("0", 0.0), (" 2.5 ", 2.5)])
def test_the_seconds_without_parts_are_those_of_the_variable(text, seconds, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    assert seconds_without_parts() == seconds


@pytest.mark.parametrize("text", ["-1", "soon", "nan"])
def test_seconds_that_are_none_are_refused(text, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(GristmillError, match=rf"GRISTMILL_PARTS_SECONDS={text}: .* 0 or more"):
        seconds_without_parts()
