"""Another daemon on the instance is noticed by its heartbeats."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import click
import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from commands.serving.other_daemons import daemons, forget_heartbeats, refuse_other_daemons


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def beat(instance: dg.DagsterInstance, ago: float, kind: str = "SENSOR", who: str = "a") -> None:
    instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - ago, kind, who))


def waited(
    instance: dg.DagsterInstance, after: int = 10**9, who: str = "a"
) -> tuple[float, list[str]]:
    """Seconds that a start waits, and what it says; the heartbeat is renewed after some looks."""
    slept: list[float] = []
    said: list[str] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == after:
            beat(instance, 0, who=who)

    refuse_other_daemons(instance, said.append, sleep)
    return sum(slept), said


def test_an_instance_without_recent_heartbeats_is_served_at_once(
    instance: dg.DagsterInstance,
) -> None:
    assert waited(instance) == (0, [])
    beat(instance, 61)
    assert waited(instance) == (0, [])


def test_recent_heartbeats_are_waited_for_with_a_reason(instance: dg.DagsterInstance) -> None:
    beat(instance, 59, "SCHEDULER")
    beat(instance, 40)
    seconds, (line,) = waited(instance)
    assert seconds == 35
    assert "a daemon worked on this instance 40 seconds ago" in line
    assert "35 seconds" in line


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_heartbeat_that_is_renewed_refuses_the_start(
    instance: dg.DagsterInstance, who: str
) -> None:
    beat(instance, 20)
    with pytest.raises(click.ClickException, match="another Dagster daemon works on this instance"):
        waited(instance, after=8, who=who)


def test_what_ended_in_order_is_not_waited_for(instance: dg.DagsterInstance) -> None:
    beat(instance, 1)
    forget_heartbeats(instance)
    assert waited(instance) == (0, [])


def test_processes_that_may_be_the_daemon_are_named(tmp_path: Path) -> None:
    for pid, line in {
        31: b"/x/bin/python\0/x/bin/dagster-daemon\0run\0",
        4: b"python\0-m\0dagster._daemon\0run\0",
        5: b"/x/bin/dagster dev\0-w\0workspace.yaml\0",
        6: b"vim\0dagster.yaml\0",
        os.getpid(): b"dagster-daemon\0",
    }.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(line)
    (tmp_path / "7").mkdir()
    (tmp_path / "self").mkdir()
    assert [line.partition(":")[0] for line in daemons(tmp_path)] == [
        "process 4",
        "process 5",
        "process 31",
    ]
