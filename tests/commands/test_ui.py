"""`gristmill ui`: which process it becomes, and where."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from bench.servers import copy_checkout, plain_environment
from tests.commands.drops import Command


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that a process was replaced by."""
    lines: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: lines.append([path, *words[1:]]))
    return lines


def test_it_becomes_dagster_dev_on_this_machine_alone(
    run: Command, data: Path, tmp_path: Path, executed: list[list[str]]
) -> None:
    assert run("ui").exit_code == 0
    (words,) = executed
    assert words[:4] == [sys.executable, "-m", "dagster", "dev"]
    assert words[4:] == ["-w", "workspace.yaml", "-h", "127.0.0.1", "-p", "3000"]
    assert Path.cwd() == tmp_path
    assert os.environ["GRISTMILL_DATA"] == str(data)


def test_port_and_data_root_are_options(
    run: Command, tmp_path: Path, executed: list[list[str]]
) -> None:
    assert run("ui", "--port", "3999", "--data-root", "elsewhere").exit_code == 0
    assert executed[0][-1] == "3999"
    assert os.environ["GRISTMILL_DATA"] == str(tmp_path / "elsewhere")


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none_is_a_usage_error(
    run: Command, executed: list[list[str]], port: str
) -> None:
    assert run("ui", "--port", port).exit_code == 2
    assert executed == []


@pytest.mark.slow
def test_it_serves_until_a_signal_stops_it(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    copy_checkout(checkout)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["ui", "--port", str(port), "--data-root", str(tmp_path / "data")]
    with subprocess.Popen(
        # Where pytest was started in the background, SIGINT would be ignored.
        ["env", "--default-signal=INT,TERM", sys.executable, "-m", "gristmill.cli", *words],
        cwd=checkout,
        env=plain_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert answers(f"http://127.0.0.1:{port}/server_info")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
    assert not answers(f"http://127.0.0.1:{port}/server_info", seconds=0)


def test_a_port_that_is_taken_is_named_before_anything_starts(
    run: Command, data: Path, executed: list[list[str]]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = run("ui", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in result.output
    assert executed == []


def answers(address: str, seconds: float = 90) -> bool:
    """Whether a server answers at `address` within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.25)
