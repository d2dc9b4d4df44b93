"""Starts runs as forks of a process that has loaded the definitions: `fork_server.py`.

A process that is started for one run imports Dagster and loads the definitions first, which takes
longer than most builds of small partitions.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Final

import dagster as dg

from commands import dagster_private
from commands.serving import fork_server

_LOAD_SECONDS: Final = 120.0
_FORK_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05


class ForkedRuns:
    """The fork server of this process, which is started when the first run asks for it.

    Where the code on the disk is another one than that which a server has loaded, it is replaced.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None
        # They wait for the runs that they have forked.
        self._ending: list[_Server] = []
        self._refusal: str | None = None

    def start(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> int | None:
        """Start a run; returns the id of its process, or None where it must start in another way.

        Raises RuntimeError where a server ended while it was asked: nobody knows whether the run
        has started.
        """
        request = dagster_private.fork_request(instance, run)
        if request is None:
            return None
        with self._lock:
            # A second time with a new server, where the code of the first one had changed.
            for _ in range(2):
                server = self._loaded(*request)
                if server is None:
                    return None
                process = server.fork(request[1])
                if process is not None:
                    return process
                self._end()
        return None

    def close(self, seconds: float) -> None:
        """End the server, once the runs that it has forked have ended."""
        with self._lock:
            self._end()
            deadline = time.monotonic() + seconds
            while self._ending and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
                self._ending = [server for server in self._ending if not server.is_gone()]

    def _loaded(self, origin: str, run: str) -> _Server | None:
        """A server that has loaded the code, or None where none can be had."""
        if self._server is not None and (self._server.origin != origin or self._server.is_gone()):
            self._end()
        if self._server is None and self._refusal is None:
            begun = _Server(origin)
            answer = begun.ask({"origin": origin, "run": run}, _LOAD_SECONDS)
            if answer is not None and "loaded" in answer:
                self._server = begun
            else:
                # It has forked nothing yet, and may still be at it.
                begun.kill()
                # Code that cannot be loaded today may be mended; it has printed what is wrong.
                self._refusal = (answer or {}).get("refused")
                if self._refusal is not None:
                    print(f"runs are not forked: {self._refusal}", file=sys.stderr)  # noqa: T201
        return self._server

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
            self._ending.append(self._server)
            self._server = None
        self._ending = [server for server in self._ending if not server.is_gone()]


class _Server:
    """A process of `fork_server.py`, and what is asked of it. origin: of the code it loads."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._process = subprocess.Popen(
            [sys.executable, "-m", fork_server.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def fork(self, run: str) -> int | None:
        """Fork a process for a run; None where the code has changed, or the system gives none."""
        answer = self.ask({"run": run}, _FORK_SECONDS)
        if answer is None:
            self.kill()
            raise RuntimeError(
                f"process {self._process.pid}, which starts runs, ended or hung while it started "
                "this one: launch the run again"
            )
        return answer.get("process")

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """The answer to a request; None where the process ended, or does not answer in time."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None
        try:
            requests.write(json.dumps(request).encode() + b"\n")
            requests.flush()
        except BrokenPipeError:
            return None
        ready, _, _ = select.select([answers], [], [], seconds)
        line = answers.readline() if ready else b""
        return json.loads(line) if line.endswith(b"\n") else None

    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()
        self.close()
        self._process.wait()

    def close(self) -> None:
        """End its requests: it waits for its runs and ends."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
