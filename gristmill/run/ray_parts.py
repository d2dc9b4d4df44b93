"""Parts of a build as tasks of a Ray cluster.

`ray`, which the extra `ray` brings, is imported here alone, and only once a build asks for it. What
a part is, and how attempts at one part keep out of each other's way, belongs to `parts.py` and
`parts.py`. Source: `docs/clusters.md#parts-on-ray`.
"""

from __future__ import annotations

import logging
import os
import pickle
import secrets
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeVar

from gristmill.contract import GristmillError
from gristmill.run.kernels import CACHE_DIR
from gristmill.run.workers import WorkerDied

Task = TypeVar("Task")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_VARIABLES: Final = ("GRISTMILL_", CACHE_DIR)
"""Begins of the names of variables that a worker gets from the build, where it has none."""
_WAIT_SECONDS: Final = 10.0
_QUIET_SECONDS: Final = 60.0
"""After so long without a result the log says what the cluster has free."""


class RayError(GristmillError):
    """There is no Ray, or no cluster at the address."""


class TracebackOnNode(Exception):
    """The traceback of an error in a task, as the cause of the error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class RayParts:
    """An engine that runs tasks on a Ray cluster.

    address: of the cluster, as `ray.init` takes it; "auto" is the one that this machine is in.
    memory: bytes that Ray sets aside for a task; 0: it does not look at memory.
    retries: how often a task is given to another worker after its worker or node died.
    """

    address: str = "auto"
    cpus: float = 1.0
    memory: int = 0
    retries: int = 3

    def __call__(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
    ) -> Generator[Result]:
        """Yield `function(task)` for each task, in the order of the tasks; all of these pickle."""
        ray = _connected(self.address)
        run = ray.remote(
            num_cpus=self.cpus, memory=self.memory or None, max_retries=0, max_calls=0
        )(_run)
        packed = ray.put(pickle.dumps(function, pickle.HIGHEST_PROTOCOL))
        flight = _Flight(ray, self, run, packed, secrets.token_hex(8))
        try:
            yield from flight.results(iter(tasks), workers)
        finally:
            flight.cancel()


@dataclass
class _Sent:
    """One task: its place in the order, its pickle, and how often its worker died."""

    index: int
    task: bytes
    losses: int = 0


class _Flight:
    """The tasks of one build that are with Ray."""

    def __init__(self, ray: Any, engine: RayParts, run: Any, packed: Any, key: str) -> None:
        self._ray, self._engine, self._run = ray, engine, run
        self._function = (packed, key)
        self._sent: dict[Any, _Sent] = {}
        self._done: dict[int, Any] = {}
        self._lost = (
            ray.exceptions.WorkerCrashedError,
            ray.exceptions.NodeDiedError,
            ray.exceptions.OutOfMemoryError,
            ray.exceptions.ObjectLostError,
        )
        self._looked = 0.0
        self._room = 0

    def results(self, tasks: Iterator[Any], workers: int) -> Iterator[Any]:
        """Yield the results in order; two tasks for each place in the cluster are in flight."""
        taken = yielded = 0
        more = True
        while True:
            while more and taken - yielded < 2 * max(workers, self._places()):
                try:
                    task = next(tasks)
                except StopIteration:
                    more = False
                    break
                self._send(_Sent(taken, pickle.dumps(task, pickle.HIGHEST_PROTOCOL)))
                taken += 1
            if yielded == taken:
                return
            while yielded not in self._done:
                self._receive()
            yield self._done.pop(yielded)
            yielded += 1

    def cancel(self) -> None:
        """End the tasks that are not done, and wait until they have ended."""
        pending = list(self._sent)
        for each in pending:
            with suppress(self._ray.exceptions.RayError, ValueError):
                self._ray.cancel(each, force=True)
        if pending:
            with suppress(self._ray.exceptions.RayError):
                self._ray.wait(pending, num_returns=len(pending), timeout=_WAIT_SECONDS)
        self._sent.clear()

    def _send(self, sent: _Sent) -> None:
        names = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
        self._sent[self._run.remote(*self._function, sent.task, names)] = sent

    def _receive(self) -> None:
        """Take one result that is there, or wait for one."""
        began = time.monotonic()
        while True:
            ready, _ = self._ray.wait(list(self._sent), num_returns=1, timeout=_WAIT_SECONDS)
            if ready:
                break
            if time.monotonic() - began > _QUIET_SECONDS:
                free = self._ray.available_resources().get("CPU", 0)
                log.warning(
                    "no part was finished for %.0f s; the Ray cluster has %g CPUs free, and a part "
                    "asks for %g",
                    _QUIET_SECONDS,
                    free,
                    self._engine.cpus,
                )
                began = time.monotonic()
        sent = self._sent.pop(ready[0])
        try:
            outcome = self._ray.get(ready[0])
        except self._lost as error:
            self._send_again(sent, error)
            return
        value, failure = pickle.loads(outcome)  # of a task of this very build
        if failure is not None:
            raise value from TracebackOnNode(failure)
        self._done[sent.index] = value

    def _send_again(self, sent: _Sent, error: Exception) -> None:
        sent.losses += 1
        why = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
        if sent.losses > self._engine.retries:
            raise WorkerDied(
                f"a part was lost {sent.losses} times with the Ray worker or node that made it, "
                f"the last time by {type(error).__name__}: {why}. If memory ran out, give parts "
                "more (ray_memory)"
            ) from error
        log.warning("a part is made again, since its worker on Ray died: %s", why)
        self._send(sent)

    def _places(self) -> int:
        """How many tasks the cluster can run at once; asked for every few seconds."""
        now = time.monotonic()
        if not self._looked or now - self._looked > _WAIT_SECONDS:
            self._looked = now
            there = self._ray.cluster_resources()
            self._room = int(there.get("CPU", 0) / self._engine.cpus)
            if self._engine.memory:
                self._room = min(self._room, int(there.get("memory", 0) / self._engine.memory))
        return self._room


def _connected(address: str) -> Any:
    """The module `ray`, connected to the cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise RayError(
            "parts on Ray (engine = \"ray\") need the extra `ray`: pip install 'gristmill[ray]' "
            f"({error})"
        ) from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (OSError, RuntimeError, ValueError, TimeoutError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise RayError(f"no Ray cluster at {address!r} (ray_address): {reason}") from error
    return ray


_unpacked: tuple[str, Any] | None = None


def _run(packed: bytes, key: str, task: bytes, variables: dict[str, str]) -> bytes:
    """Run a task in a worker of Ray: a pickle of its result and None, or error and traceback.

    Pickles are made here, since arrays that Ray itself unpickles cannot be written.
    """
    global _unpacked
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    try:
        if _unpacked is None or _unpacked[0] != key:
            _unpacked = (key, pickle.loads(packed))
        return pickle.dumps((_unpacked[1](pickle.loads(task)), None))
    except Exception as error:  # noqa: BLE001
        return pickle.dumps((error, traceback.format_exc()))
