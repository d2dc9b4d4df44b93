"""The launcher says that a run's process is gone. See also `tests/e2e/test_dead_workers.py`."""

import os
from collections.abc import Iterator

import dagster as dg
import pytest
import yaml
from dagster._core.events import EngineEventData

from assets import worker
from commands.serving import launcher
from tests.commands.test_prune import gone, idle
from tests.paths import CHECKOUT

BLOCK = {"module": launcher.__name__, "class": "LocalHealthLauncher"}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(overrides={"run_launcher": BLOCK}) as made:
        yield made


def dead_process() -> int:
    return int(gone().split(":")[1])


def started(instance: dg.DagsterInstance, pids: tuple[int, ...] = (), tag: str = "") -> str:
    """A run under way whose engine events name processes; the status that its health has."""
    run = instance.create_run_for_job(
        idle, status=dg.DagsterRunStatus.STARTED, tags={worker.TAG: tag} if tag else {}
    )
    instance.report_engine_event("an event without a process", run)
    for pid in pids:
        data = EngineEventData.in_process(pid)
        instance.report_engine_event(f"Started process for run (pid: {pid}).", run, data)
    return str(instance.run_launcher.check_run_worker_health(run).status.value)


def test_it_is_the_launcher_of_the_checkout():
    config = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    named = config["run_launcher"]
    assert named["module"] == launcher.__name__
    assert issubclass(getattr(launcher, named["class"]), dg.DefaultRunLauncher)
    monitoring = config["run_monitoring"]
    assert monitoring["enabled"] and monitoring["poll_interval_seconds"] <= 5
    assert monitoring["max_resume_run_attempts"] == 0


def test_the_first_process_of_a_run_decides(instance):
    assert instance.run_launcher.supports_check_run_worker_health
    dead = dead_process()
    assert started(instance, (os.getpid(),)) == "RUNNING"
    assert started(instance, (dead,)) == "FAILED"
    # Later ones are of steps, which may end before the run does.
    assert started(instance, (os.getpid(), dead)) == "RUNNING"
    assert started(instance, (dead, os.getpid())) == "FAILED"


def test_a_run_without_a_process_is_left_alone_and_a_tag_comes_before_events(instance):
    assert started(instance) == "RUNNING"
    mine = str(worker.identity(os.getpid()))
    boot, process, _ = mine.split(":")
    assert started(instance, (dead_process(),), mine) == "RUNNING"
    assert started(instance, (os.getpid(),), f"{boot}:{process}:1") == "FAILED"


def test_a_later_process_with_the_same_id_is_another_one(instance, monkeypatch):
    run = instance.create_run_for_job(idle, status=dg.DagsterRunStatus.STARTED)
    instance.report_engine_event("started", run, EngineEventData.in_process(os.getpid()))
    (event,) = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    assert worker.was_there(os.getpid(), event.timestamp)
    assert not worker.was_there(1_000_000_000, event.timestamp)
    ticks = int(str(worker.identity(os.getpid())).rpartition(":")[2])
    start = worker._booted() + ticks / os.sysconf("SC_CLK_TCK")
    assert worker.was_there(os.getpid(), start - 1.9)
    assert not worker.was_there(os.getpid(), start - 2.1)


@pytest.mark.parametrize("config", [{}, {"fork_runs": False}], ids=["none", "of 0.8.0"])
def test_a_block_of_dagster_yaml_that_an_earlier_version_took_is_taken(config):
    with dg.instance_for_test(overrides={"run_launcher": BLOCK | {"config": config}}) as instance:
        assert type(instance.run_launcher) is launcher.LocalHealthLauncher
        assert started(instance, (dead_process(),)) == "FAILED"
