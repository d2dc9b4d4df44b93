"""What Dagster does not export is where we import it from; what happens where it is not."""

import importlib
import os
import signal
import sys

import dagster as dg
import pytest
from sqlalchemy.pool import NullPool

import definitions
from commands import dagster_private
from gristmill.run import interrupts
from resources import LOCATION
from tests import dagster_caches
from tests.paths import CHECKOUT


@pytest.mark.parametrize("has", ["HAS_HEALTH", "HAS_ORIGIN", "HAS_ENGINES"])
def test_this_release_of_dagster_has_the_names_that_are_taken(has):
    """If this fails: find where the names went, and import them from there."""
    assert getattr(dagster_private, has)


def test_a_process_that_is_gone_failed_and_handlers_are_as_before_after_a_run():
    answer = dagster_private.health("the process is gone")
    assert (answer.status.value, answer.msg) == ("FAILED", "the process is gone")
    assert dagster_private.health(None).status.value == "RUNNING"
    # If this fails: find where these names went, and take them from there.
    from dagster._core.execution import compute_logs
    from dagster._utils import interrupts as of_dagster

    tail, replace = compute_logs.execute_posix_tail, of_dagster._replace_interrupt_signal
    with dg.DagsterInstance.local_temp() as instance:
        _ran(instance)
        assert compute_logs.execute_posix_tail is tail
        assert of_dagster._replace_interrupt_signal is replace


def test_without_health_checks_the_launcher_says_so(monkeypatch):
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


def test_a_run_of_this_process_names_its_code_location_its_repository_and_its_job():
    """The timeline of the UI leaves out runs without an origin."""
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
    workspace = (CHECKOUT / "workspace.yaml").read_text()
    assert f"location_name: {LOCATION}\n" in workspace
    assert definitions.build_defs().get_repository_def().name == "__repository__"


def test_without_these_names_runs_take_the_public_way(monkeypatch):
    monkeypatch.setattr(dagster_private, "HAS_ORIGIN", False)
    with dg.DagsterInstance.local_temp() as instance:
        assert _ran(instance).remote_job_origin is None


@pytest.mark.parametrize("moment", ["create", "start", "step"])
def test_a_run_that_is_interrupted_is_closed(moment, monkeypatch):
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


def test_an_engine_of_a_database_is_made_once_and_few_are_kept():
    made: list[str] = []

    def make(address: str, **options: object) -> object:
        made.append(address)
        return object()

    engine = dagster_private._keeping(make)
    first = engine("a", poolclass=int, connect_args={"timeout": 1})
    assert engine("a", connect_args={"timeout": 1}, poolclass=int) is first
    assert engine("a", poolclass=int) is not first
    assert made == ["a", "a"]
    for number in range(7):
        engine(f"b{number}")
        assert engine("a", poolclass=int, connect_args={"timeout": 1}) is first
    engine("a", poolclass=int)  # the one that was used least recently is gone
    assert made == ["a", "a", *(f"b{number}" for number in range(7)), "a"]


def test_an_instance_uses_one_engine_a_database_and_keeps_no_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(dagster_caches, "keeps_connections", False)
    dagster_private.keep_engines()
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        storage = instance.event_log_storage
        with storage.index_connection() as one:
            first = one.engine
        with storage.index_connection() as other:
            assert other.engine is first
        assert isinstance(first.pool, NullPool)
        instance.add_dynamic_partitions("mine", ["a"])
        assert instance.get_dynamic_partitions("mine") == ["a"]
