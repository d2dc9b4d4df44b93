"""`gristmill ui`: what it serves, and where. See also `tests/e2e/test_ui.py`."""

import os
import socket
import time
from functools import partial
from pathlib import Path

import click
import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from assets import worker
from commands.serving import services
from tests.commands.drops import land, printed
from tests.commands.test_prune import gone, started

Served = list[tuple[Path, str, int]]
_REFUSE = services.refuse_other_daemons


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """Checkout, address and port of what was served."""
    calls: Served = []
    monkeypatch.setattr(services, "serve", lambda *words, **_: calls.append(words[:3]))
    return calls


def test_it_serves_this_machine_alone(run, data, tmp_path, served):
    assert run("ui").exit_code == 0
    assert served == [(tmp_path, "127.0.0.1", 3000)]
    assert Path.cwd() == tmp_path
    assert os.environ["GRISTMILL_DATA"] == str(data)
    assert os.environ["DAGSTER_HOME"] == str(tmp_path)


def test_port_and_data_root_are_options(run, tmp_path, served):
    (tmp_path / "elsewhere").mkdir()
    assert run("ui", "--port", "3999", "--data-root", "elsewhere").exit_code == 0
    assert served[0][2] == 3999
    assert os.environ["GRISTMILL_DATA"] == str(tmp_path / "elsewhere")


def test_an_instance_is_served_once(run, tmp_path, served, monkeypatch):
    with services.instance_lock(tmp_path / ".dagster/ui.lock"):
        assert f"process {os.getpid()} serves this instance already" in printed(run("ui"), 1)
        assert served == []
        (tmp_path / "another").mkdir()
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "another"))
        assert run("ui").exit_code == 0
    assert (tmp_path / "another/ui.lock").exists()
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "another")


def test_it_says_what_it_serves(run, data, served):
    result = run("ui", "--port", "3999")
    assert f"serving the data root {data} with 0 artifacts" in result.output
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    assert f"serving the data root {data} with 1 artifact\n" in run("ui").output
    count = len(served)
    refused = run("ui", "--data-root", "elsewhere")
    assert refused.exit_code == 1
    assert "elsewhere: the data root is not there" in refused.stderr
    assert len(served) == count


def test_runs_of_dead_processes_are_closed_before_it_serves(run, instance, served):
    mine = started(instance, {worker.TAG: str(worker.identity(os.getpid()))})
    dead = started(instance, {worker.TAG: gone()})
    result = run("ui")
    assert f"closed run {dead[:8]} (STARTED): its process is gone" in result.output
    assert len(served) == 1
    statuses = {item.run_id: item.status.value for item in instance.get_runs()}
    assert statuses == {mine: "STARTED", dead: "FAILURE"}


def test_a_daemon_at_work_is_refused_and_changes_nothing(run, instance, served, monkeypatch):
    dead = started(instance, {worker.TAG: gone()})
    instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "other"))

    def sleep(_: float) -> None:
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "other"))

    monkeypatch.setattr(services, "refuse_other_daemons", partial(_REFUSE, sleep=sleep))
    assert "another Dagster daemon works on this instance" in printed(run("ui"), 1)
    assert served == []
    run_of = instance.get_run_by_id(dead)
    assert run_of is not None and run_of.status is dg.DagsterRunStatus.STARTED
    assert instance.get_daemon_heartbeats()


def test_the_next_start_need_not_wait_for_what_ended_in_order(run, instance, monkeypatch):
    def serve(*_: object) -> None:
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "own"))
        raise click.ClickException("the web server ended")

    monkeypatch.setattr(services, "serve", serve)
    assert run("ui").exit_code == 1
    assert not instance.get_daemon_heartbeats()


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none_is_a_usage_error(run, served, port):
    assert run("ui", "--port", port).exit_code == 2
    assert served == []


def test_a_port_that_is_taken_is_named_before_anything_starts(run, data, served):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = run("ui", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in result.output
    assert served == []


def test_an_interrupt_before_it_serves_is_one_line(run, monkeypatch):
    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(services, "refuse_other_daemons", refuse)
    assert printed(run("ui"), 130) == "interrupted; nothing is served\n"
