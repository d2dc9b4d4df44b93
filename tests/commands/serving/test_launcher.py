"""The launcher says that a run's process is gone. See also `tests/e2e/test_dead_workers.py`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.events import EngineEventData

from assets import worker
from commands.serving import forked_runs, launcher
from tests.commands.serving.forked_location import Location, ended, said
from tests.paths import CHECKOUT


@dg.op
def nothing() -> None: ...


@dg.job
def idle() -> None:
    nothing()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(
        overrides={
            "run_launcher": {
                "module": "commands.serving.launcher",
                "class": "LocalHealthLauncher",
            }
        }
    ) as made:
        yield made


def gone() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["sleep", "60"])
    process.kill()
    process.wait()
    return process


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


def test_it_is_the_launcher_of_the_checkout() -> None:
    config = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    named = config["run_launcher"]
    assert named["module"] == launcher.__name__
    assert issubclass(getattr(launcher, named["class"]), dg.DefaultRunLauncher)
    monitoring = config["run_monitoring"]
    assert monitoring["enabled"] and monitoring["poll_interval_seconds"] <= 5
    assert monitoring["max_resume_run_attempts"] == 0


def test_the_first_process_of_a_run_decides(instance: dg.DagsterInstance) -> None:
    assert instance.run_launcher.supports_check_run_worker_health
    dead = gone().pid
    assert started(instance, (os.getpid(),)) == "RUNNING"
    assert started(instance, (dead,)) == "FAILED"
    # Later ones are of steps, which may end before the run does.
    assert started(instance, (os.getpid(), dead)) == "RUNNING"
    assert started(instance, (dead, os.getpid())) == "FAILED"


def test_a_run_that_has_named_no_process_is_left_alone(instance: dg.DagsterInstance) -> None:
    assert started(instance) == "RUNNING"


def test_the_tag_comes_before_events(instance: dg.DagsterInstance) -> None:
    mine = str(worker.identity(os.getpid()))
    boot, process, _ = mine.split(":")
    assert started(instance, (gone().pid,), mine) == "RUNNING"
    assert started(instance, (os.getpid(),), f"{boot}:{process}:1") == "FAILED"


def test_a_later_process_with_the_same_id_is_another_one(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = instance.create_run_for_job(idle, status=dg.DagsterRunStatus.STARTED)
    instance.report_engine_event("started", run, EngineEventData.in_process(os.getpid()))
    (event,) = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    assert worker.was_there(os.getpid(), event.timestamp)
    assert not worker.was_there(1_000_000_000, event.timestamp)
    ticks = int(str(worker.identity(os.getpid())).rpartition(":")[2])
    start = worker._booted() + ticks / os.sysconf("SC_CLK_TCK")
    assert worker.was_there(os.getpid(), start - 1.9)
    assert not worker.was_there(os.getpid(), start - 2.1)


class Launches:
    """The launcher of an instance, with a code location that is served in some way."""

    def __init__(
        self, instance: dg.DagsterInstance, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
        monkeypatch.chdir(folder)
        self.instance, self.location = instance, Location(folder)
        self.launcher: Any = instance.run_launcher
        self.of_dagster: list[str] = []
        """Runs that Dagster's own launcher was asked to start."""
        monkeypatch.setattr(
            dg.DefaultRunLauncher,
            "launch_run",
            lambda _, context: self.of_dagster.append(context.dagster_run.run_id),
        )

    def launch(
        self, asset: str = "built", socket: str | None = "/a/socket", name: str = "gristmill"
    ) -> dg.DagsterRun:
        run = self.location.run(self.instance, asset, name)
        served = SimpleNamespace(client=SimpleNamespace(socket=socket))
        workspace = SimpleNamespace(get_code_location={name: served}.__getitem__)
        self.launcher.launch_run(SimpleNamespace(dagster_run=run, workspace=workspace))
        return run

    def tags(self, run: dg.DagsterRun) -> dict[str, str]:
        found = self.instance.get_run_by_id(run.run_id)
        assert found is not None
        return dict(found.tags)


@pytest.fixture
def launches(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Launches:
    return Launches(instance, tmp_path, monkeypatch)


def test_a_run_is_forked_and_names_its_process_at_once(launches: Launches) -> None:
    run = launches.launch("slow")
    signature = launches.tags(run)[worker.TAG]
    assert worker.is_alive(signature)
    assert launches.instance.run_launcher.check_run_worker_health(run).status.value == "RUNNING"
    (launches.location.folder / "slow-may-end").touch()
    assert ended(launches.instance, run) is dg.DagsterRunStatus.SUCCESS
    assert not launches.of_dagster
    launches.launcher.join(60)


def test_a_run_that_is_terminated_cancels_itself(launches: Launches) -> None:
    run = launches.launch("slow")
    begins = launches.location.folder / "slow-begins"
    while not begins.exists():
        time.sleep(0.02)
    assert launches.instance.run_launcher.terminate(run.run_id)
    assert ended(launches.instance, run) is dg.DagsterRunStatus.CANCELED
    assert not launches.instance.run_launcher.terminate(run.run_id), "it has ended"


def test_a_run_without_a_process_cannot_be_terminated(launches: Launches) -> None:
    run = launches.location.run(launches.instance, "built")
    boot, process, _ = str(worker.identity(os.getpid())).split(":")
    tags = {worker.TAG: f"{boot}:{process}:1", worker.FORKED: "true"}
    launches.instance.add_run_tags(run.run_id, tags)
    assert not launches.launcher.terminate(run.run_id)
    found = launches.instance.get_run_by_id(run.run_id)
    assert found is not None and found.status is dg.DagsterRunStatus.CANCELING


def test_a_run_of_a_command_is_not_interrupted(launches: Launches) -> None:
    """The process of `gristmill materialize` has other runs to do."""
    run = launches.location.run(launches.instance, "built")
    with subprocess.Popen(["sleep", "60"]) as process:
        tags = {worker.TAG: str(worker.identity(process.pid))}
        launches.instance.add_run_tags(run.run_id, tags)
        assert not launches.launcher.terminate(run.run_id)
        time.sleep(0.1)
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize(
    "served", [{"socket": None}, {"name": "of-somebody-else"}], ids=["by a port", "another"]
)
def test_code_of_another_machine_or_project_starts_as_dagster_does(
    launches: Launches, served: dict[str, Any]
) -> None:
    run = launches.launch(**served)
    assert launches.of_dagster == [run.run_id]
    assert worker.FORKED not in launches.tags(run)


def test_a_run_that_cannot_be_forked_starts_as_dagster_does(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked_runs.ForkedRuns, "start", lambda *_: None)
    run = launches.launch()
    assert launches.of_dagster == [run.run_id]
    assert worker.TAG not in launches.tags(run)


@pytest.mark.parametrize(("config", "is_forked"), [({}, True), ({"fork_runs": False}, False)])
def test_dagster_yaml_says_whether_runs_are_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, bool], is_forked: bool
) -> None:
    block = {"module": launcher.__name__, "class": "LocalHealthLauncher", "config": config}
    with dg.instance_for_test(overrides={"run_launcher": block}) as instance:
        launches = Launches(instance, tmp_path, monkeypatch)
        run = launches.launch()
        assert launches.of_dagster == ([] if is_forked else [run.run_id])
        if is_forked:
            said(instance, run)


def test_a_run_that_ends_before_it_is_signed_has_no_process(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked_runs.ForkedRuns, "start", lambda *_: gone().pid)
    run = launches.launch()
    assert not launches.of_dagster
    assert worker.FORKED not in launches.tags(run)
    launches.instance.report_run_failed(run)


def test_what_starts_runs_ends_with_the_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = {"module": launcher.__name__, "class": "LocalHealthLauncher"}
    with dg.instance_for_test(overrides={"run_launcher": block}) as instance:
        launches = Launches(instance, tmp_path, monkeypatch)
        server = worker.identity(said(instance, launches.launch())["parent"])
    assert server is not None and not worker.is_alive(server)
