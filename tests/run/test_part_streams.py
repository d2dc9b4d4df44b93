"""Streams of parts: appended in task order, the same for any number of workers and any store."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.run.parts import (
    VARIABLE,
    LatePartStore,
    Made,
    PartStore,
    StreamFiles,
    run_streams,
    seconds_without_parts,
    time,
)

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


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_a_stream_is_that_of_all_parts_in_task_order(
    tmp_path: Path, workers: int, kept: bool
) -> None:
    store = PartStore(tmp_path / "parts") if kept else None
    (tmp_path / "parts").mkdir()
    out = tmp_path / "out"
    out.mkdir()
    for _ in range(2 if kept else 1):
        sizes, numbers = _build(out, store, workers)
        rows, rejects = (out / "rows/all").read_bytes(), (out / "rejects/all").read_bytes()
        assert rows == b"".join(bytes([n]) * (n * 700_000) for n in range(5))
        assert rejects == b"0;1;2;3;4;"
        assert sizes == {"rows": len(rows), "rejects": len(rejects)}
        assert numbers == [0, 1, 2, 3, 4]
    assert sorted(path.name for path in out.iterdir()) == ["rejects", "rows"]


def test_one_worker_keeps_no_part_of_a_short_build(tmp_path: Path) -> None:
    tmp_path.joinpath("parts").mkdir()
    store = LatePartStore(tmp_path / "parts", keep_from=math.inf)
    for streams, _ in run_streams(_make, TASKS, store, 1, scratch=tmp_path):
        assert dict(streams).keys() == {"rows", "rejects"}
        assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_part_that_was_finished_is_taken_over_whether_or_not_parts_are_kept(
    tmp_path: Path, workers: int
) -> None:
    kept = PartStore(tmp_path)
    assert len(list(run_streams(_make, TASKS[2:4], kept, 1, scratch=tmp_path))) == 2
    store = LatePartStore(tmp_path, keep_from=math.inf)
    numbers = [
        summary["number"]
        for _, summary in run_streams(_make, TASKS, store, workers, scratch=tmp_path)
    ]
    assert numbers == [0, 1, 2, 3, 4]
    assert store.use.taken_over == 2


def test_parts_are_kept_from_a_time_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    store = LatePartStore(tmp_path, keep_from=3)
    list(run_streams(_make, TASKS, store, 1, scratch=tmp_path))
    assert [name for name, _ in TASKS if store.is_listed(name)] == ["part-3", "part-4"]


def test_a_part_that_is_cut_while_it_is_read_is_named(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    parts = run_streams(_make, TASKS[1:], store, 1, scratch=tmp_path)
    streams, _ = next(parts)
    os.truncate(store.data("part-1"), 3)
    with pytest.raises(GristmillError, match=r"part-1\.part: the part has lost its end"):
        list(streams)


@pytest.mark.parametrize(("text", "seconds"), [("", 30.0), ("0", 0.0), (" 2.5 ", 2.5)])
def test_the_seconds_without_parts_are_those_of_the_variable(
    text: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert seconds_without_parts() == seconds


@pytest.mark.parametrize("text", ["-1", "soon", "nan"])
def test_seconds_that_are_none_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(GristmillError, match=rf"GRISTMILL_PARTS_SECONDS={text}: .* 0 or more"):
        seconds_without_parts()
