"""The program that has loaded the definitions, and forks a process for each run.

`python -m commands.serving.fork_server`, started by `forked_runs.py`. Each request is one line of
JSON on standard input, each answer one on standard output. The first request is `{"origin": TEXT,
"run": TEXT}` and is answered `{"loaded": true}`, or `{"refused": WHY}` where this process cannot
fork. Each later one is `{"run": TEXT}` and is answered `{"process": ID}`, or `{"changed": PATH}`
where code that this process has loaded is no longer what the disk has, or `{"refused": WHY}` where
the system gives no process. At the end of its input it waits for the runs that are under way, and
ends.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

# Processes that builds start import this module, too: what is heavy is imported where it is used.
from commands.serving.loaded_files import LoadedFiles

Work = Callable[[], object]


def main() -> None:
    """Serve; in a process that was forked, do its work."""
    work = _serve(time.time_ns())
    if work is not None and work() is False:
        sys.exit(1)


def _serve(began: int) -> Work | None:
    # A terminal sends it to all: what ends this process is the end of its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # What code prints while it is loaded, and what runs print, is no answer.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    first = requests.readline()
    if not first:
        return None
    asked = json.loads(first)
    code = _load(asked["origin"], asked["run"])
    server = ForkServer(code, LoadedFiles(began, (Path(".env"),)), requests, answers)
    if (why := _cannot_fork()) is not None:
        server.answer(refused=why)
        return None
    server.answer(loaded=True)
    # The collector of a fork does not touch what was loaded, so that its pages stay shared.
    gc.collect()
    gc.freeze()
    return server.serve()


def _load(origin: str, run: str) -> Any:
    from commands import dagster_private

    return dagster_private.load_code(origin, run)


def _cannot_fork() -> str | None:
    """Why a fork of this process would not be whole, or None.

    A fork has one thread: locks that others held would stay locked for ever.
    """
    try:
        threads = sum(1 for _ in Path("/proc/self/task").iterdir())
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError) as error:
        return f"this system cannot watch processes ({error})"
    return None if threads == 1 else f"the loaded code has started {threads - 1} threads"


class ForkServer:
    """Forks runs and waits for them.

    code: what `dagster_private.execute` takes.
    requests, answers: pipes to the process that asks.
    """

    def __init__(
        self, code: Any, files: LoadedFiles, requests: BinaryIO, answers: BinaryIO
    ) -> None:
        self._code, self._files = code, files
        self._requests, self._answers = requests, answers
        self._is_asked = True
        # By the descriptor of a process: its id, and the run that it executes, if any.
        self._forks: dict[int, tuple[int, str | None]] = {}

    def answer(self, **said: object) -> None:
        """Answer the last request; whoever asked may be gone."""
        try:
            self._answers.write(json.dumps(said).encode() + b"\n")
        except BrokenPipeError:
            self._is_asked = False

    def serve(self) -> Work | None:
        """Serve until the requests and all forks have ended; in a fork, returns its work."""
        while self._is_asked or self._forks:
            asked = [self._requests.fileno()] if self._is_asked else []
            ready, _, _ = select.select([*asked, *self._forks], [], [])
            for descriptor in ready:
                work = self._ended(descriptor) if descriptor in self._forks else self._request()
                if work is not None:
                    return work
        return None

    def _request(self) -> Work | None:
        line = self._requests.readline()
        if not line.endswith(b"\n"):
            self._is_asked = False
            return None
        run = json.loads(line)["run"]
        if (path := self._files.changed()) is not None:
            self.answer(changed=str(path))
            return None
        return self._fork(partial(_execute, self._code, run), run)

    def _fork(self, work: Work, run: str | None) -> Work | None:
        """Fork a process that does a work; returns the work in that process alone."""
        try:
            process = os.fork()
        except OSError as error:
            # Too many processes, or too little memory: whoever asked may start it in another way.
            if run is not None:
                self.answer(refused=str(error))
            return None
        if process:
            self._forks[os.pidfd_open(process)] = process, run
            if run is not None:
                self.answer(process=process)
            return None
        # Who asked must see the end of the answers when the server ends, though runs go on.
        self._requests.close()
        self._answers.close()
        for descriptor in self._forks:
            os.close(descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return work

    def _ended(self, descriptor: int) -> Work | None:
        process, run = self._forks.pop(descriptor)
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if run is None or status == 0:
            return None
        return self._fork(partial(_report, run, status), None)


def _execute(code: Any, run: str) -> bool:
    from commands import dagster_private

    return dagster_private.execute(code, run)


def _report(run: str, status: int) -> None:
    from commands import dagster_private

    dagster_private.report_crash(run, status)


if __name__ == "__main__":
    main()
