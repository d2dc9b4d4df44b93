"""Worker processes that return results in order and die with their parent."""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Lock
from types import ModuleType
from typing import Any, Protocol, TypeVar

from gristmill.contract import GristmillError

Task = TypeVar("Task")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1


class Engine(Protocol):
    """What runs tasks: `ordered_map`, or a function like it."""

    def __call__(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
    ) -> Generator[Result]:
        """Yield `function(task)` for each task, in the order of the tasks."""
        ...


_OTHER_MACHINES: ContextVar[Engine | None] = ContextVar("other_machines", default=None)


@contextmanager
def on_other_machines(engine: Engine | None) -> Iterator[None]:
    """Let `run_parts` give its tasks to an engine of other machines within, in this thread.

    It takes the place of local processes and threads wherever a build has more than one worker.
    """
    token = _OTHER_MACHINES.set(engine)
    try:
        yield
    finally:
        _OTHER_MACHINES.reset(token)


def other_machines() -> Engine | None:
    """The engine of `on_other_machines`, None where there is none."""
    return _OTHER_MACHINES.get()


class WorkerDied(GristmillError):
    """A worker process ended before its task did."""


def die_with(parent: int) -> None:
    """Ask the kernel for SIGKILL at the parent's death; leave at once if it came first.

    Ctrl-C in a terminal comes to all of its processes: this one ends without a stack trace.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class _Process(SpawnProcess):
    """A spawned process that does not import its parent's main module.

    The main module of `operate.py` loads Dagster: 0.7 s and 60 MB for each worker.
    """

    _lock = Lock()

    def start(self) -> None:
        with self._lock:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = main


class Context(SpawnContext):
    """Spawns processes that do not import their parent's main module."""

    Process = _Process


def _start(workers: int) -> ProcessPoolExecutor | None:
    """A pool of spawned processes, or None where the machine gives no semaphores."""
    try:
        context = Context()
        # The executor makes its semaphores only when the first task comes, too
        # late to choose another way; so make one now.
        context.Semaphore(1)
        return ProcessPoolExecutor(
            workers, mp_context=context, initializer=die_with, initargs=(os.getpid(),)
        )
    except (ImportError, OSError, PermissionError) as error:
        log.warning("no worker processes here (%s): continuing in one process", error)
        return None


_KEPT: ContextVar[dict[int, ProcessPoolExecutor] | None] = ContextVar("kept_workers", default=None)


@contextmanager
def kept_workers() -> Iterator[None]:
    """Let the workers of one `ordered_map` serve the next one within, in this thread.

    A process takes half a second to start, and a build has several rounds, and laws. Within another
    `kept_workers` they serve until that one ends.
    """
    if _KEPT.get() is not None:
        yield
        return
    pools: dict[int, ProcessPoolExecutor] = {}
    token = _KEPT.set(pools)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for pool in pools.values():
            pool.shutdown(wait=True, cancel_futures=True)


def ordered_map(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Generator[Result]:
    """Yield `function(task)` for each task, in the order of the tasks.

    With `workers` of 0 or 1 everything runs here. Otherwise `function` and the
    tasks must pickle, by names of modules other than `__main__`, and at most two
    tasks a worker are in flight, so memory does not grow with their number.
    Workers are spawned, never forked: a fork of a process with threads (Dagster,
    polars) can hang. They are killed by the kernel when this process dies, and
    cancelled when the caller stops early.

    Raises WorkerDied where a worker was killed or crashed, and whatever
    `function` raises.

    Must be iterated in the thread that lives as long as the pool: the kernel
    ties a worker's life to the thread that spawned it.
    """
    pools = _KEPT.get()
    executor = pools.pop(workers, None) if pools else None
    executor = executor or (_start(workers) if workers > 1 else None)
    if executor is None:
        for task in tasks:
            yield function(task)
        return
    is_whole = False
    try:
        yield from _in_order(executor, function, tasks, workers)
        is_whole = True
    except BrokenProcessPool as error:
        raise WorkerDied(
            "a worker process died before its task was done: it was killed or crashed, often "
            "because memory ran out (see the kernel's log): use fewer workers"
        ) from error
    finally:
        if not (is_whole and pools is not None) or pools.setdefault(workers, executor) != executor:
            executor.shutdown(wait=True, cancel_futures=True)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Callable[[object], object]:
    function: Callable[[object], object] = pickle.loads(packed)  # of the process that started this
    return function


def _run(packed: bytes, task: Task) -> Any:
    return _unpacked(packed)(task)


def threaded_map(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Generator[Result]:
    """Yield `function(task)` for each task, in the order of the tasks, computed in threads.

    For functions that wait for other processes, or let go of Python's lock. With `workers` of 0
    or 1 everything runs here. Otherwise at most two tasks a thread are in flight. Raises whatever
    `function` raises. Closing the generator waits for the tasks that run.
    """
    if workers <= 1:
        yield from map(function, tasks)
        return
    with ThreadPoolExecutor(workers) as executor:
        try:
            yield from _in_order(executor, function, tasks, workers)
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def _in_order(
    executor: Executor,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    workers: int,
) -> Generator[Result]:
    """Yield the results in the order of the tasks, with at most two tasks a worker in flight.

    A process reads what all tasks share once, not with each task.
    """
    if isinstance(executor, ProcessPoolExecutor):
        function = partial(_run, pickle.dumps(function, pickle.HIGHEST_PROTOCOL))
    pending: deque[Future[Result]] = deque()
    for task in tasks:
        pending.append(executor.submit(function, task))
        if len(pending) >= 2 * workers:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
