"""Results in order, errors as they are, and no worker that outlives its parent."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.run.workers import WorkerDied, kept_workers, ordered_map, threaded_map
from tests import budget
from tests.paths import CHECKOUT, ran
from tests.publish.killing import wait_for_end
from tests.run import tiny_work


def _double(number: int) -> int:
    time.sleep(0.02 if number == 0 else 0)
    return 2 * number


def _refuse(number: int) -> int:
    if number == 2:
        raise BadInput("a.jsonl", "is not a number", row=number)
    return number


engines = pytest.mark.parametrize(
    ("engine", "workers"),
    [*((ordered_map, count) for count in (0, 1, 2)), (threaded_map, 1), (threaded_map, 3)],
)


@pytest.mark.slow
@engines
def test_results_come_in_the_order_of_the_tasks(engine, workers):
    assert list(engine(_double, range(9), workers)) == list(range(0, 18, 2))


@pytest.mark.slow
@engines
def test_an_error_of_a_worker_arrives_as_it_was_raised(engine, workers):
    results = engine(_refuse, range(5), workers)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(BadInput, match=r"^a\.jsonl:2: is not a number$") as caught:
        next(results)
    assert (caught.value.file, caught.value.row) == ("a.jsonl", 2)


def _process(_: int) -> int:
    return os.getpid()


@pytest.mark.slow
def test_kept_workers_serve_the_next_round_and_end_with_the_last():
    with kept_workers():
        one, other = (set(ordered_map(_process, range(8), 2)) for _ in range(2))
        assert one & other and os.getpid() not in one | other
        with kept_workers():
            assert one & set(ordered_map(_process, range(8), 2))
        stopped = ordered_map(_process, range(8), 2)
        next(stopped)
        stopped.close()
        last = set(ordered_map(_process, range(8), 2))
        assert not last & (one | other)
    assert not any(Path(f"/proc/{each}").exists() for each in one | other | last)


def test_threads_work_side_by_side_and_end_with_the_generator():
    meeting = threading.Barrier(2)
    results = threaded_map(lambda _: meeting.wait(timeout=120), range(2), 2)
    assert sorted([next(results), next(results)]) == [0, 1]
    before = set(threading.enumerate())
    results.close()
    # A thread of another test may end meanwhile, too.
    assert len(before - set(threading.enumerate())) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", [ordered_map, threaded_map])
def test_tasks_are_taken_no_faster_than_results_are(engine):
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for number in range(50):
            taken += 1
            yield number

    for done, _ in enumerate(engine(_double, tasks(), 2), start=1):
        assert taken <= done + 4


def test_a_killed_worker_is_a_clear_error_and_bad_input_keeps_its_parts():
    with pytest.raises(WorkerDied, match=r"a worker process died .* memory .* fewer workers"):
        list(ordered_map(tiny_work.die, range(9), 2))
    assert issubclass(WorkerDied, GristmillError)
    error = pickle.loads(pickle.dumps(BadInput("a", "rule", row=4)))
    assert (str(error), error.file, error.rule, error.row) == ("a:4: rule", "a", "rule", 4)


PARENT = """
import os, sys
from gristmill.run.workers import ordered_map
from tests.run import tiny_work
os.setsid()
list(ordered_map(tiny_work.sleep_and_sign, [sys.argv[1]] * 4, 2))
"""


def _start_parent(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], cwd=CHECKOUT)


def test_workers_at_work_die_with_their_parent(tmp_path):
    parent = _start_parent(tmp_path)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert len(workers) == 2 and parent.pid not in workers
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert wait_for_end(parent.pid) == []


def test_workers_that_are_starting_die_with_their_parent(tmp_path):
    """Killed at instants of the seed that are spread over the start of parent and workers."""
    chance = budget.dice("workers that are starting")
    for instant in range(4):
        folder = tmp_path / str(instant)
        folder.mkdir()
        parent = _start_parent(folder)
        time.sleep(0.06 + 0.06 * (instant + chance.random()))
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert wait_for_end(parent.pid) == []


@pytest.mark.slow
def test_stopping_early_leaves_no_process():
    before = _workers()
    for result in ordered_map(_double, range(1000), 2):
        if result == 4:
            break
    deadline = time.monotonic() + 120
    while (left := _workers() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def _workers() -> set[int]:
    """The children of this process, but for the one that cleans up after Python's semaphores."""
    children: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended
            children.update(map(int, (thread / "children").read_text().split()))
    return {child for child in children if "resource_tracker" not in _command(child)}


def _command(process: int) -> str:
    with contextlib.suppress(OSError):  # it ended
        return Path(f"/proc/{process}/cmdline").read_bytes().decode()
    return ""


def test_workers_do_not_run_the_script_that_starts_them(tmp_path):
    script = tmp_path / "build.py"
    script.write_text(
        "print('begun', flush=True)\n"
        "from gristmill.run.workers import ordered_map\n"
        "print(*ordered_map(abs, [-3, -1, -2], 2))\n"
        "print(__name__, __file__)\n"
    )
    done = ran(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        check=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == ["begun", "3 1 2", f"__main__ {script}"]


def test_without_semaphores_the_work_goes_on_here(monkeypatch, caplog):
    def refuse(*_: object) -> None:
        raise OSError("no semaphores")

    monkeypatch.setattr("gristmill.run.workers.Context.Semaphore", refuse)
    here: list[int] = []

    def task(number: int) -> int:
        here.append(threading.get_ident())
        return number

    assert list(ordered_map(task, range(3), 2)) == [0, 1, 2]
    assert set(here) == {threading.get_ident()}
    assert "no worker processes here (no semaphores)" in caplog.text
