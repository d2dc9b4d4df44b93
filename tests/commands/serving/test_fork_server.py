"""The program that forks runs: its answers, and what builds pay that start processes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.serving import fork_server
from commands.serving.fork_server import ForkServer
from commands.serving.loaded_files import LoadedFiles
from tests.paths import CHECKOUT


def test_a_process_that_imports_it_imports_nothing_heavy() -> None:
    """Processes that a forked run starts import it as the main module of their parent."""
    code = "import sys, commands.serving.fork_server; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert not {"dagster", "numpy", "click"} & set(done.stdout.split())


def test_the_definitions_of_the_project_can_be_forked() -> None:
    """Else each run would load them again, and nothing but a line on the terminal would say so."""
    code = (
        "import definitions\n"
        "definitions.build_defs().get_repository_def()\n"
        "from commands.serving import fork_server\n"
        "print(fork_server._cannot_fork())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"


def test_a_system_without_proc_does_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "Path", lambda _: Path("/nowhere"))
    assert "cannot watch processes" in str(fork_server._cannot_fork())


def test_a_system_without_descriptors_of_processes_does_not_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert "cannot watch processes" in str(fork_server._cannot_fork())


def test_no_request_is_the_end() -> None:
    words = [sys.executable, "-m", fork_server.__name__]
    done = subprocess.run(words, cwd=CHECKOUT, input=b"", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_half_a_request_is_the_end() -> None:
    """Whoever asks was killed while it wrote."""
    read, write = os.pipe()
    os.write(write, b'{"run": "ab')
    os.close(write)
    answers = io.BytesIO()
    with os.fdopen(read, "rb") as requests:
        assert ForkServer(None, LoadedFiles(0), requests, answers).serve() is None
    assert answers.getvalue() == b""


def test_a_system_that_gives_no_process_is_said_and_survived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    read, write = os.pipe()
    os.write(write, b'{"run": "a"}\n')
    os.close(write)
    answers = io.BytesIO()
    with os.fdopen(read, "rb") as requests:
        server = ForkServer(None, LoadedFiles(time.time_ns()), requests, answers)
        assert server.serve() is None
    assert json.loads(answers.getvalue()) == {
        "refused": "[Errno 11] Resource temporarily unavailable"
    }


def test_nobody_there_to_hear_an_answer_is_the_end() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb", buffering=0) as answers, io.BytesIO() as requests:
        server = ForkServer(None, LoadedFiles(0), requests, answers)
        server.answer(loaded=True)
        assert server.serve() is None
