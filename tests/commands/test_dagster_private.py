"""What Dagster does not export is where we import it from; what happens where it is not."""

from __future__ import annotations

import importlib
import os
import signal
import sys

import dagster as dg
import pytest

import definitions
from commands import dagster_private
from gristmill.run import interrupts
from resources.lake import LOCATION
from tests.paths import CHECKOUT


def test_this_release_of_dagster_has_health_checks_of_launchers() -> None:
    """If this fails: find where `CheckRunHealthResult` went, and import it from there."""
    assert dagster_private.HAS_HEALTH


def test_a_process_that_is_gone_is_a_failed_worker() -> None:
    answer = dagster_private.health("the process is gone")
    assert (answer.status.value, answer.msg) == ("FAILED", "the process is gone")
    assert dagster_private.health(None).status.value == "RUNNING"


def test_without_health_checks_the_launcher_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from commands.serving.launcher import LocalHealthLauncher

    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "dagster._core.launcher.base", None)
        importlib.reload(dagster_private)
        assert not dagster_private.HAS_HEALTH
        assert not LocalHealthLauncher().supports_check_run_worker_health
        with pytest.raises(RuntimeError, match="has no health checks"):
            dagster_private.health(None)
    importlib.reload(dagster_private)
    assert LocalHealthLauncher().supports_check_run_worker_health


def _ran(instance: dg.DagsterInstance) -> dg.DagsterRun:
    @dg.asset(
        key=["a", "b"],
        partitions_def=dg.StaticPartitionsDefinition(["x"]),
        check_specs=[dg.AssetCheckSpec("whole", asset=["a", "b"])],
    )
    def built(context):
        yield dg.MaterializeResult(metadata={"key": context.partition_key})
        yield dg.AssetCheckResult(check_name="whole", passed=True)

    @dg.asset
    def other() -> None:
        raise AssertionError("is not selected")

    defs = dg.Definitions([built, other], executor=dg.in_process_executor)
    job = defs.resolve_implicit_global_asset_job_def()
    result = dagster_private.run_here(
        instance, job, built.key, {"mine": "1", "dagster/partition": "x"}
    )
    assert result.success
    assert len(result.get_asset_check_evaluations()) == 1
    (event,) = result.get_asset_materialization_events()
    assert event.step_materialization_data.materialization.partition == "x"
    run = instance.get_run_by_id(result.run_id)
    assert run is not None and run.asset_selection == {built.key}
    assert run.tags["mine"] == "1"
    return run


def test_a_run_of_this_process_names_its_code_location_and_its_job() -> None:
    """The timeline of the UI leaves out runs without an origin."""
    assert dagster_private.HAS_ORIGIN, "find out where Dagster has these names now"
    with dg.DagsterInstance.local_temp() as instance:
        run = _ran(instance)
    assert run.remote_job_origin is not None
    origin = run.remote_job_origin.repository_origin
    assert (origin.code_location_origin.location_name, origin.repository_name) == (
        "gristmill",
        "__repository__",
    )
    assert run.remote_job_origin.job_name == run.job_name == "__ASSET_JOB"
    assert run.tags["dagster/code_location"] == "gristmill"


def test_the_origin_names_the_code_location_of_the_workspace_and_its_repository() -> None:
    workspace = (CHECKOUT / "workspace.yaml").read_text()
    assert f"location_name: {LOCATION}\n" in workspace
    assert definitions.build_defs().get_repository_def().name == "__repository__"


def test_without_these_names_runs_take_the_public_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dagster_private, "HAS_ORIGIN", False)
    with dg.DagsterInstance.local_temp() as instance:
        assert _ran(instance).remote_job_origin is None


def _queued(instance: dg.DagsterInstance) -> dg.DagsterRun:
    from dagster._core.definitions.reconstruct import ReconstructableRepository
    from dagster._core.origin import JobPythonOrigin

    run = _ran(instance)
    code = ReconstructableRepository.for_file("definitions.py", "defs", str(CHECKOUT))
    return run._replace(job_code_origin=JobPythonOrigin(run.job_name, code.get_python_origin()))


def test_this_release_of_dagster_has_what_forked_runs_need() -> None:
    """If this fails: find where Dagster has these names now. `forked_runs.py` uses them."""
    from dagster._core.origin import RepositoryPythonOrigin
    from dagster._grpc.impl import start_run_in_subprocess
    from dagster._grpc.types import ExecuteExternalJobArgs
    from dagster._serdes import deserialize_value, serialize_value
    from dagster._utils import get_run_crash_explanation
    from dagster._utils.hosted_user_process import recon_repository_from_origin

    assert all([deserialize_value, serialize_value, get_run_crash_explanation])
    assert all([ExecuteExternalJobArgs, RepositoryPythonOrigin])
    assert all([recon_repository_from_origin, start_run_in_subprocess])


def test_the_request_to_fork_a_run_names_its_code_and_the_run() -> None:
    with dg.DagsterInstance.local_temp() as instance:
        run = _queued(instance)
        request = dagster_private.fork_request(instance, run)
        assert request is not None
        origin, asked = request
        assert str(CHECKOUT) in origin and run.run_id not in origin
        assert run.run_id in asked and instance.root_directory in asked
        for lacking in ("job_code_origin", "remote_job_origin"):
            assert dagster_private.fork_request(instance, run._replace(**{lacking: None})) is None


@pytest.mark.parametrize("name", ["dagster._grpc.types", "dagster._serdes"])
def test_without_these_names_no_run_is_forked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with dg.DagsterInstance.local_temp() as instance:
        run = _queued(instance)
        monkeypatch.setitem(sys.modules, name, None)
        assert dagster_private.fork_request(instance, run) is None


def test_a_run_that_is_not_there_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    with dg.DagsterInstance.local_temp() as instance:
        run = _queued(instance)
        request = dagster_private.fork_request(instance, run)
        assert request is not None
        instance.delete_run(run.run_id)
        code = dagster_private.load_code(*request)
        assert not dagster_private.execute(code, request[1])
        assert f"could not load run {run.run_id}" in capsys.readouterr().err
        # It has nothing to close, either.
        dagster_private.report_crash(request[1], -9)


def test_a_crash_does_not_change_a_run_that_has_ended() -> None:
    with dg.DagsterInstance.local_temp() as instance:
        run = _queued(instance)
        request = dagster_private.fork_request(instance, run)
        assert request is not None
        dagster_private.report_crash(request[1], -9)
        found = instance.get_run_by_id(run.run_id)
        assert found is not None and found.status is dg.DagsterRunStatus.SUCCESS


@pytest.mark.parametrize("moment", ["create", "start", "step"])
def test_a_run_that_is_interrupted_is_closed(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    @dg.asset
    def whole() -> None:
        if moment == "step":
            interrupt()

    job = dg.Definitions([whole], executor=dg.in_process_executor)
    implicit = job.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.local_temp() as instance:
        create, start = instance.create_run_for_job, dagster_private.execute_run
        if moment == "create":
            monkeypatch.setattr(
                instance, "create_run_for_job", lambda **words: [create(**words), interrupt()][0]
            )
        if moment == "start":
            monkeypatch.setattr(
                dagster_private, "execute_run", lambda *words: [interrupt(), start(*words)][1]
            )
        with interrupts.watched(), pytest.raises(KeyboardInterrupt):
            dagster_private.run_here(instance, implicit, whole.key, {})
            interrupts.raise_again()
        (run,) = instance.get_runs()
        assert run.is_finished
    signal.signal(signal.SIGINT, before)


def test_dagsters_handlers_and_tails_are_as_they_were_after_a_run() -> None:
    """If this fails: find where these names went, and take them from there."""
    from dagster._core.execution import compute_logs
    from dagster._utils import interrupts as of_dagster

    tail, replace = compute_logs.execute_posix_tail, of_dagster._replace_interrupt_signal
    with dg.DagsterInstance.local_temp() as instance:
        _ran(instance)
        assert compute_logs.execute_posix_tail is tail
        assert of_dagster._replace_interrupt_signal is replace
