"""Kills builds at chosen calls and looks at what is left."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from gristmill import provenance
from gristmill.history.rows import ROWS, key_of, scan
from gristmill.layout import HISTORY, WORK
from gristmill.publish import remove, storage
from gristmill.publish.publish import publish
from tests.paths import CHECKOUT
from tests.publish.scenarios import SCENARIOS
from tests.publish.tiny import garbage

Item = TypeVar("Item")

FORMS = EXCHANGE, LINK = "exchange", "link"
REFUSED = {"KILLPOINT_REFUSE": "1", storage.VARIABLE: "auto"}
"""Variables of a build that is to find that folders cannot be exchanged."""


@dataclass(frozen=True)
class Kill:
    """Kill at the `nth` time that the build of `scenario` comes to `place`.

    how: as KILLPOINT_HOW in `killpoint.c`; a number is the errno with which the call fails.
    """

    scenario: str
    place: str
    nth: int = 1
    how: str = "before"


@dataclass(frozen=True)
class Call:
    """One line of a trace: who called what on which path (relative to the data root)."""

    place: str
    role: str
    name: str
    path: str
    source: str


@dataclass
class State:
    """Every published file below a data root: those that a record vouches for, and records."""

    files: dict[str, bytes] = field(default_factory=dict)
    records: dict[str, bytes] = field(default_factory=dict)

    @staticmethod
    def of(root: Path) -> State:
        state = State()
        below = (
            Path(here, name) for here, _, names in os.walk(root, followlinks=True) for name in names
        )
        for path in sorted(below):
            name = path.relative_to(root).as_posix()
            if f"{WORK}/" in name:
                continue
            data = path.read_bytes().replace(os.fsencode(root), b"ROOT")
            is_record = path.name == provenance.RECORD or path.parent.name == "provenance"
            (state.records if is_record else state.files)[name] = data
        return state

    def built_as(self, other: State) -> bool:
        """Whether the files are the same, and records, which carry times, lie alike."""
        return self.files == other.files and self.records.keys() == other.records.keys()


class Server:
    """A process that serves as `kill_server` does, with more variables."""

    def __init__(self, shim: Path, serves: str = "serve", **more: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from tests.publish.kill_server import {serves}; {serves}()"],
            cwd=CHECKOUT,
            env={**os.environ, **more, "LD_PRELOAD": str(shim)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: dict[str, Any]) -> tuple[int, int]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        process, status = json.loads(self._process.stdout.readline())
        return process, status

    def close(self) -> None:
        self._process.communicate(timeout=300)


class Killer:
    """Builds scenarios on servers; several threads may ask at once.

    more: environment variables of the builds that are killed.
    converts: those builds may leave nothing at the artifact's path until the slot is cleaned.
    scenarios: those that are prepared; default: all.
    """

    def __init__(
        self,
        shim: Path,
        folder: Path,
        servers: int = 2,
        *,
        more: Mapping[str, str] | None = None,
        converts: bool = False,
        scenarios: Iterable[str] = tuple(SCENARIOS),
    ) -> None:
        self._folder = folder
        self._more = dict(more or {})
        self._converts = converts
        self._all = [Server(shim) for _ in range(servers)]
        self._free: queue.Queue[Server] = queue.Queue()
        for server in self._all:
            self._free.put(server)
        self._before: dict[str, Path] = {}
        self._after: dict[str, State] = {}
        for name in scenarios:
            scenario = SCENARIOS[name]
            self._before[name] = folder / "before" / name
            self._before[name].mkdir(parents=True)
            scenario.before(self._before[name])
            with self._copy(name) as root:
                publish(scenario.build(root, 1))
                self._after[name] = State.of(root)

    def close(self) -> None:
        for server in self._all:
            server.close()

    @contextmanager
    def _copy(self, scenario: str) -> Iterator[Path]:
        """A data root as it stands before the build, at times the record knows."""
        place = self._folder / "roots" / os.urandom(6).hex()
        shutil.copytree(self._before[scenario], place / "root", symlinks=True)
        yield place / "root"
        shutil.rmtree(place)

    def _run(self, root: Path, kill: Kill, workers: int, trace: bool) -> tuple[int, int]:
        shared, log = root.with_name("shared"), root.with_name("log")
        shared.write_bytes(bytes(16))
        environment = {"KILLPOINT_ROOT": str(root), "KILLPOINT_SHARED": str(shared)}
        environment |= self._more
        if trace:
            root.with_name("trace").touch()
            environment["KILLPOINT_TRACE"] = str(root.with_name("trace"))
        else:
            environment |= {
                "KILLPOINT_PLACE": kill.place,
                "KILLPOINT_NTH": str(kill.nth),
                "KILLPOINT_HOW": kill.how,
            }
        request = {
            "scenario": kill.scenario,
            "root": str(root),
            "workers": workers,
            "log": str(log),
            "environment": environment,
        }
        server = self._free.get()
        try:
            return server.ask(request)
        finally:
            self._free.put(server)

    def trace(self, scenario: str, workers: int) -> list[Call]:
        """Every call of an undisturbed build that changes the data root, in order."""
        with self._copy(scenario) as root:
            _, status = self._run(root, Kill(scenario, ""), workers, trace=True)
            assert status == 0, root.with_name("log").read_text()
            assert State.of(root).built_as(self._after[scenario])
            lines = root.with_name("trace").read_text().splitlines()
            return [Call(*line.split("\t")) for line in lines]

    def kill(self, kill: Kill, workers: int) -> str:
        """Kill a build, check all that must hold then, and return which stood: old or new."""
        with self._copy(kill.scenario) as root:
            before, after = State.of(root), self._after[kill.scenario]
            process, status = self._run(root, kill, workers, trace=False)
            log = root.with_name("log").read_text()
            if kill.how == "alone":
                assert status == 1, f"{kill}: the main process went on"
                assert "WorkerDied: a worker process died" in log, f"{kill}: {log}"
            elif kill.how.isdigit():
                assert status in (0, 1), f"{kill}: {log}"
            else:
                assert status == -signal.SIGKILL, f"{kill}: was not killed: {log}"
            assert not wait_for_end(process), f"{kill}: processes outlive the build"
            found = State.of(root)
            if self._converts and found == State() != before:
                for slot in list(remove.abandoned_slots(root)):
                    remove.clean_slot(slot)
                found = State.of(root)
                assert found == before, f"{kill}: the old version does not stand again"
            assert found == before or found.built_as(after), f"{kill}: a mix: {found}"
            _check_records(kill, root, before, after, found)
            self._check_recovery(kill, root, after)
            return "old" if found == before else "new"

    def recomputed(self, kill: Kill, workers: int) -> float:
        """How many parts the build after the kill computes, the others being adopted."""
        with self._copy(kill.scenario) as root:
            _, status = self._run(root, kill, workers, trace=False)
            assert status == -signal.SIGKILL
            published = publish(SCENARIOS[kill.scenario].build(root, workers))
            assert State.of(root).built_as(self._after[kill.scenario])
            return published.record.counts["computed"]

    def _check_recovery(self, kill: Kill, root: Path, after: State) -> None:
        build = SCENARIOS[kill.scenario].build(root, 1)
        published = publish(build)
        assert published.record.data_version == provenance.data_version(published.record.outputs)
        assert State.of(root).built_as(after), f"{kill}: the next build gives other bytes"
        assert provenance.verify(root) == [], f"{kill}: after the next build"
        assert garbage(root) == [], f"{kill}: left behind"
        assert publish(build).rebuilt is False


def _check_records(kill: Kill, root: Path, before: State, after: State, found: State) -> None:
    if not found.records:
        assert found == State() == before, f"{kill}: files without a record"
        return
    assert provenance.verify(root) == [], f"{kill}: verify"
    # A record of the new version says what was built; the others are untouched.
    built = SCENARIOS[kill.scenario].build(root, 1).record_path.relative_to(root).as_posix()
    for name, data in found.records.items():
        if name in before.records and name != built:
            assert data == before.records[name], f"{kill}: {name} was changed"
    if found != before:
        versions = [json.loads(state.records[built])["data_version"] for state in (found, after)]
        assert versions[0] == versions[1], f"{kill}: another data version"
    kept = [path.parent.name for path in (root / WORK / HISTORY).rglob(f"*/{provenance.RECORD}")]
    for name, data in before.records.items():
        version = json.loads(data)["data_version"]
        now = found.records.get(name)
        if now is None or json.loads(now)["data_version"] != version:
            assert version in kept, f"{kill}: {name} was replaced and not kept"
            for place in (root / WORK / HISTORY).rglob(version):
                rows = scan(place / ROWS, key_of(root)).collect()
                assert len(rows) == 3, f"{kill}: not all rows of {name} were kept"


def in_two_threads(act: Callable[[Item], str], items: Iterable[Item]) -> list[str]:
    """What `act` returns for each item; a thread takes its next item when it is free."""
    todo, lock = iter(items), Lock()

    def act_on() -> list[str]:
        found = []
        while True:
            with lock:
                item = next(todo, None)
            if item is None:
                return found
            found.append(act(item))

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(act_on) for _ in range(2)]
        return [name for one in both for name in one.result()]


def wait_for_end(session: int, seconds: float = 60.0) -> list[int]:
    """Processes of a session that still run after so long."""
    deadline = time.monotonic() + seconds
    while (alive := _processes(session)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return alive


def _processes(session: int) -> list[int]:
    alive = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it ended
            state, _, _, its_session = stat.rpartition(")")[2].split()[:4]
            if int(its_session) == session and state not in "ZX":
                alive.append(int(entry.name))
    return alive


def kills_at_every_place(scenario: str, calls: list[Call], every: bool) -> Iterator[Kill]:
    """One kill a place, or one an occurrence; writes are also torn."""
    for place, count in Counter(call.place for call in calls).items():
        for nth in range(1, count + 1 if every else 2):
            yield Kill(scenario, place, nth)
            if place.split()[1] == "write":
                yield Kill(scenario, place, nth, "torn")
