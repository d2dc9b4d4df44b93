"""`gristmill ui`: what it serves, and where. See also `tests/e2e/test_ui.py`."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from commands import services
from tests.commands.drops import Command


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str, int]]:
    """Checkout, address and port of what was served."""
    calls: list[tuple[Path, str, int]] = []
    monkeypatch.setattr(services, "serve", lambda *words: calls.append(words[:3]))
    return calls


def test_it_serves_this_machine_alone(
    run: Command, data: Path, tmp_path: Path, served: list[tuple[Path, str, int]]
) -> None:
    assert run("ui").exit_code == 0
    assert served == [(tmp_path, "127.0.0.1", 3000)]
    assert Path.cwd() == tmp_path
    assert os.environ["GRISTMILL_DATA"] == str(data)
    assert os.environ["DAGSTER_HOME"] == str(tmp_path)


def test_port_and_data_root_are_options(
    run: Command, tmp_path: Path, served: list[tuple[Path, str, int]]
) -> None:
    assert run("ui", "--port", "3999", "--data-root", "elsewhere").exit_code == 0
    assert served[0][2] == 3999
    assert os.environ["GRISTMILL_DATA"] == str(tmp_path / "elsewhere")


def test_an_instance_is_served_once(
    run: Command,
    tmp_path: Path,
    served: list[tuple[Path, str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with services.instance_lock(tmp_path / ".dagster/ui.lock"):
        refused = run("ui")
        assert refused.exit_code == 1
        assert f"process {os.getpid()} serves this instance already" in refused.output
        assert served == []
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "another"))
        assert run("ui").exit_code == 0
    assert (tmp_path / "another/ui.lock").exists()
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "another")


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none_is_a_usage_error(
    run: Command, served: list[tuple[Path, str, int]], port: str
) -> None:
    assert run("ui", "--port", port).exit_code == 2
    assert served == []


def test_a_port_that_is_taken_is_named_before_anything_starts(
    run: Command, data: Path, served: list[tuple[Path, str, int]]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = run("ui", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in result.output
    assert served == []
