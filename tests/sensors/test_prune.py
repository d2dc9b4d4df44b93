"""Which runs are pruned from an instance, what every prune keeps, and the schedule."""

import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from assets.checking.rules import CHECKED
from bench.large_instance import PACK, add_run, fill
from definitions import build_defs
from sensors import prune as retention
from sensors.prune import PruneRun, prune
from tests.sensors.test_unfinished import PARTITIONS, Toy, pack, values
from tests.toy_inbox import add_inboxes, toy_kind

DAY = 86_400.0
STATUS = dg.DagsterRunStatus


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of an instance without a run."""
    folder = tmp_path_factory.mktemp("empty")
    with dg.instance_for_test(temp_dir=str(folder)) as made:
        made.get_runs_count()
    return folder


@pytest.fixture
def home(tmp_path: Path, empty: Path) -> Path:
    shutil.copytree(empty, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(home)) as made:
        yield made


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 40 days pass before anything is pruned."""
    clock = SimpleNamespace(time=lambda: time.time() + 40 * DAY)
    monkeypatch.setattr(retention, "time", clock)


def age(home: Path, days: float, *runs: str) -> None:
    """Let runs have ended some days ago."""
    with sqlite3.connect(home / "history/runs.db") as database:
        for run in runs:
            ended = (time.time() - days * DAY, run)
            database.execute("UPDATE runs SET end_time = ? WHERE run_id = ?", ended)


def ids(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


PARTS = dg.StaticPartitionsDefinition(["a", "b"])
CHECK, ARRIVALS = (dg.AssetCheckKey(dg.AssetKey("parted"), name) for name in ("fine", "arrivals"))


DOING = {"what": "builds", "on": "a"}


@dg.asset(partitions_def=PARTS)
def parted() -> None:
    if DOING["what"] == "fails":
        raise dg.Failure("no")


@dg.asset
def whole() -> None:
    if DOING["what"] == "fails":
        raise dg.Failure("no")


@dg.asset_check(asset=parted)
def fine() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


@dg.asset_check(asset=parted)
def arrivals() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


@dg.op
def look(context: dg.OpExecutionContext) -> None:
    context.log_event(dg.AssetObservation("parted", partition=DOING["on"]))


@dg.job
def looks() -> None:
    look()


DEFS = dg.Definitions([parted, whole], asset_checks=[fine, arrivals])


def did(instance: dg.DagsterInstance, what: str) -> str:
    """The id of a run: `builds a`, `fails whole`, `observes b`, `checks`."""
    DOING["what"], _, on = what.partition(" ")
    DOING["on"] = on
    job = DEFS.resolve_implicit_global_asset_job_def()
    if DOING["what"] == "observes":
        return looks.execute_in_process(instance=instance).run_id
    if DOING["what"] == "checks":
        check = dg.AssetCheckKey(parted.key, on)
        job = job.get_subset(asset_selection=set(), asset_check_selection={check})
        return job.execute_in_process(instance=instance).run_id
    return job.execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey("whole" if on == "whole" else "parted")],
        partition_key=None if on == "whole" else on,
        raise_on_error=False,
    ).run_id


def shown(instance: dg.DagsterInstance) -> Mapping[str, object]:
    """What pages say of the partitions, of the asset without, and of the check."""
    kinds = (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION)
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key([CHECK, ARRIVALS])
    (entry,) = [one.asset_entry for one in instance.get_asset_records([whole.key])] or [None]
    return {
        "states": instance.get_status_by_partition(parted.key, ["a", "b"], PARTS),
        "newest": [instance.get_latest_storage_id_by_partition(parted.key, kind) for kind in kinds],
        "whole": entry and (entry.last_run_id, entry.last_materialization),
        "check": {key: record.run_id for key, record in latest.items()},
        "runs": all(record.run_id in ids(instance) for record in latest.values()),
    }


@pytest.mark.parametrize(
    ("runs", "kept"),
    [
        (["builds a", "builds b"], [0, 1]),
        (["builds a", "builds a"], [1]),
        (["builds a", "fails a"], [0, 1]),
        (["fails a", "builds a"], [1]),
        (["fails a", "fails a", "builds b"], [1, 2]),
        (["observes a", "builds a", "observes b"], [0, 1, 2]),
        (["observes a", "observes a"], [1]),
        (["builds whole", "builds whole"], [1]),
        (["builds whole", "fails whole"], [0, 1]),
        (["fails whole", "builds whole"], [1]),
        (["checks fine", "checks arrivals", "builds whole"], [0, 1, 2]),
        (["checks fine", "checks fine", "builds whole"], [1, 2]),
        (["checks fine", "checks arrivals", "builds a"], [2]),
    ],
    ids=str,
)
def test_the_newest_run_stays_that_did_something(later, monkeypatch, runs, kept):
    known: Any = SimpleNamespace(rules={"fine": None}, key=lambda _: CHECK)
    monkeypatch.setitem(CHECKED, "parted", known)
    with dg.DagsterInstance.ephemeral() as instance:
        made = [did(instance, what) for what in runs]
        before = shown(instance)
        pruned = prune(instance)
        assert [number for number, run in enumerate(made) if run in ids(instance)] == kept
        assert pruned == (len(runs) - len(kept), len(kept))
        assert shown(instance) == before


def test_old_runs_go_with_their_logs(instance, home):
    first, second = (add_run(instance, PACK, ["a", "b"]) for _ in range(2))
    third = add_run(instance, PACK, ["a"])
    failed = add_run(instance, PACK, ["d"], status=STATUS.FAILURE)
    recent = add_run(instance, PACK, ["c"])
    age(home, 31, first, second, third, failed)
    runs = (first, second, third, failed, recent)
    for run in runs:
        logs = home / "storage" / run / "compute_logs"
        logs.mkdir(parents=True)
        (logs / "step.err").write_text("log")
    assert prune(instance, dry_run=True) == (1, 4)
    assert ids(instance) == set(runs)
    assert prune(instance) == (1, 4)
    assert ids(instance) == {second, third, failed, recent}
    # Of those that stay, what failed keeps its log, and what is recent.
    with_log = [False, False, False, True, True]
    assert [(home / f"history/runs/{run}.db").exists() for run in runs] == with_log
    assert [(home / "storage" / run).exists() for run in runs] == with_log
    record = instance.fetch_materializations(PACK, limit=10).records
    assert {one.run_id for one in record} == {second, third, failed, recent}
    assert prune(instance) == (0, 4)


@pytest.mark.parametrize(("days", "stays"), [(29.9, True), (30.1, False)])
def test_days_are_counted_from_the_end_of_a_run(instance, home, days, stays):
    old = add_run(instance, PACK, ["a"])
    add_run(instance, PACK, ["a"])
    age(home, days, old)
    prune(instance, keep_days=30)
    assert (old in ids(instance)) is stays


def test_no_more_runs_stay_than_are_wanted(instance):
    runs = [add_run(instance, PACK, ["a"]) for _ in range(6)]
    assert prune(instance, keep_runs=2) == (4, 2)
    assert ids(instance) == set(runs[4:])
    assert prune(instance, keep_runs=0) == (1, 1)
    assert ids(instance) == {runs[5]}


@pytest.mark.parametrize(
    "status", [STATUS.NOT_STARTED, STATUS.STARTING, STATUS.STARTED, STATUS.CANCELING]
)
def test_a_run_that_has_not_ended_is_never_touched(instance, home, status):
    run = add_run(instance, PACK, ["a"], status=status)
    ended = [
        add_run(instance, PACK, ["a"], status=end) for end in (STATUS.FAILURE, STATUS.CANCELED)
    ]
    add_run(instance, PACK, ["a"])
    age(home, 1000, run, *ended)
    prune(instance, keep_runs=0)
    assert run in ids(instance)
    assert (home / f"history/runs/{run}.db").exists()
    assert not ids(instance) & set(ended)


def test_runs_of_a_backfill_under_way_stay(instance, later):
    runs = {}
    for status in BulkActionStatus:
        instance.add_backfill(
            PartitionBackfill(
                backfill_id=status.value,
                status=status,
                from_failure=False,
                tags={},
                backfill_timestamp=time.time(),
            )
        )
        runs[status.value] = add_run(instance, PACK, ["a"], tags={"dagster/backfill": status.value})
    add_run(instance, PACK, ["a"])
    prune(instance)
    stay = {status for status, run in runs.items() if run in ids(instance)}
    # A new version of Dagster may have more states: decide which ones end a backfill.
    assert set(runs) - stay == {
        *("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
    }


@pytest.mark.slow
def test_an_instance_of_thousands_is_bounded(instance):
    """10,000 partitions and 3,000 runs: each partition was built by 10 runs of 100."""
    keys = [f"d{number:05}" for number in range(10_000)]
    fill(instance, keys, per_run=100, rounds=10)
    for start in range(2000):
        add_run(instance, PACK, keys[start % 50 : start % 50 + 3])
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    stood = dict(instance.get_latest_storage_id_by_partition(PACK, kind))
    assert len(stood) == 10_000 and len(ids(instance)) == 3000
    begun = time.process_time()
    assert prune(instance, keep_runs=2900) == (100, 2900)
    assert time.process_time() - begun < 30
    assert dict(instance.get_latest_storage_id_by_partition(PACK, kind)) == stood


def run_job(instance: dg.DagsterInstance, **config: int) -> dg.ExecuteInProcessResult:
    """The job of the schedule, in this process."""
    job = build_defs().resolve_job_def("prune")
    chosen = {"ops": {"prune_history": {"config": config}}}
    return job.execute_in_process(instance=instance, run_config=chosen)


def test_the_job_prunes_by_its_config_and_keeps_its_own_run():
    with dg.instance_for_test() as instance:
        runs = [add_run(instance, PACK, ["a"]) for _ in range(3)]
        done = run_job(instance, keep_runs=1)
        assert {run.run_id for run in instance.get_runs()} == {runs[2], done.run_id}


def test_a_wrong_number_is_refused():
    for wrong in ({"keep_days": 0}, {"keep_runs": -1}):
        with pytest.raises(ValueError, match=rf"{next(iter(wrong))}\n.*should be"):
            PruneRun(**wrong)


@pytest.mark.slow
def test_300_partitions_stay_green_and_no_run_is_asked_for(tmp_path, monkeypatch):
    add_inboxes(monkeypatch, toy=toy_kind())
    keys = [f"d{number:03}" for number in range(300)]
    with dg.DagsterInstance.ephemeral() as instance:
        toy = Toy(tmp_path, instance)
        for key in keys:
            toy.land(key)
        asked = [key for _ in range(17) for key, _ in toy.tick()]
        assert set(asked) == set(keys)
        for some in (keys[:100], keys[100:200], keys[200:], keys[:150]):
            for asset in (pack, values):
                add_run(instance, asset.key, some)
        assert toy.tick() == []
        clock = SimpleNamespace(time=lambda: time.time() + 40 * 86_400)
        monkeypatch.setattr(retention, "time", clock)
        run_job(instance)
        assert instance.get_runs_count(dg.RunsFilter(job_name="__ASSET_JOB")) == 6
        for asset in (pack, values):
            states = instance.get_status_by_partition(asset.key, keys, PARTITIONS) or {}
            assert len(states) == 300
            assert {state and state.value for state in states.values()} == {"MATERIALIZED"}
        # The second time the sensor has no cursor, so that it asks the instance alone.
        for _ in range(2):
            assert [toy.tick(), toy.tick()] == [[], []]
            toy.look.cursor = None
