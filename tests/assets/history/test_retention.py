"""What is pruned from an instance, and what every prune keeps."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from assets.history import retention
from assets.history.instance_files import InstanceFiles
from assets.history.retention import Pruned, prune
from assets.history.tables import OtherStorage
from bench.large_instance import PACK, RAW_DROP, add_run, fill

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


def age(home: Path, days: float, *runs: str) -> None:
    """Let runs have ended some days ago, and their logs be as old."""
    ended = time.time() - days * DAY
    with sqlite3.connect(home / "history/runs.db") as database:
        for run in runs:
            database.execute("UPDATE runs SET end_time = ? WHERE run_id = ?", (ended, run))
            os.utime(home / f"history/runs/{run}.db", (ended, ended))


def ids(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


def built(instance: dg.DagsterInstance, asset: dg.AssetKey = PACK) -> dict[str, int]:
    """Storage id of each partition's latest materialization."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    return dict(instance.get_latest_storage_id_by_partition(asset, kind))


def log_of(home: Path, run: str) -> Path:
    return home / f"history/runs/{run}.db"


def test_old_runs_go_with_their_logs_and_the_newest_of_a_partition_stays(
    instance: dg.DagsterInstance, home: Path
) -> None:
    first, second = (add_run(instance, PACK, ["a", "b"]) for _ in range(2))
    third = add_run(instance, PACK, ["a"])
    recent = add_run(instance, PACK, ["c"])
    age(home, 31, first, second, third)
    stood = built(instance)
    logs = home / "storage" / first / "compute_logs"
    logs.mkdir(parents=True)
    (logs / "step.err").write_text("log")
    pruned = prune(instance, keep_days=30)
    assert ids(instance) == {second, third, recent}
    assert built(instance) == stood
    assert (pruned.runs, pruned.emptied, pruned.kept) == (1, 2, 3)
    assert pruned.log_bytes > 3 * 50_000
    assert pruned.after < pruned.before
    assert pruned.not_compacted is None
    assert not (home / "storage" / first).exists()
    assert [log_of(home, run).exists() for run in (first, second, third, recent)] == [
        *(False, False, False),
        True,
    ]
    record = instance.fetch_materializations(PACK, limit=10).records
    assert {one.run_id for one in record} == {second, third, recent}
    with sqlite3.connect(home / "history/runs/index.db") as index:
        query = "SELECT count(*) FROM asset_event_tags WHERE event_id NOT IN"
        assert index.execute(f"{query} (SELECT id FROM event_logs)").fetchone() == (0,)
        assert index.execute("SELECT count(*) FROM asset_event_tags").fetchone() == (4,)


@pytest.mark.parametrize(("days", "stays"), [(29.9, True), (30.1, False)])
def test_days_are_counted_from_the_end_of_a_run(
    instance: dg.DagsterInstance, home: Path, days: float, stays: bool
) -> None:
    old = add_run(instance, PACK, ["a"])
    add_run(instance, PACK, ["a"])
    age(home, days, old)
    prune(instance, keep_days=30)
    assert (old in ids(instance)) is stays


def test_no_more_runs_stay_than_are_wanted(instance: dg.DagsterInstance) -> None:
    runs = [add_run(instance, PACK, ["a"]) for _ in range(6)]
    assert prune(instance, keep_runs=2).runs == 4
    assert ids(instance) == set(runs[4:])
    assert prune(instance, keep_runs=0).runs == 1
    assert ids(instance) == {runs[5]}


def test_at_least_a_day_stays(instance: dg.DagsterInstance, home: Path) -> None:
    old, new = (add_run(instance, PACK, ["a"]) for _ in range(2))
    add_run(instance, PACK, ["a"])
    age(home, 1.1, old)
    age(home, 0.9, new)
    prune(instance, keep_days=0)
    assert old not in ids(instance)
    assert new in ids(instance)


@pytest.mark.parametrize(
    "status",
    [STATUS.NOT_STARTED, STATUS.STARTING, STATUS.STARTED, STATUS.CANCELING],
)
def test_a_run_that_has_not_ended_is_never_touched(
    instance: dg.DagsterInstance, home: Path, status: dg.DagsterRunStatus
) -> None:
    run = add_run(instance, PACK, ["a"], status=status)
    ended = [
        add_run(instance, PACK, ["a"], status=end) for end in (STATUS.FAILURE, STATUS.CANCELED)
    ]
    add_run(instance, PACK, ["a"])
    age(home, 1000, run, *ended)
    pruned = prune(instance, keep_runs=0)
    assert run in ids(instance)
    assert log_of(home, run).exists()
    assert not ids(instance) & set(ended)
    assert pruned.not_compacted == "runs are under way"


def test_a_run_that_failed_last_keeps_its_log(instance: dg.DagsterInstance, home: Path) -> None:
    succeeded = add_run(instance, PACK, ["a"])
    failed = add_run(instance, PACK, ["b"], status=STATUS.FAILURE)
    age(home, 1000, succeeded, failed)
    assert prune(instance).emptied == 1
    assert not log_of(home, succeeded).exists()
    assert log_of(home, failed).exists()


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("under_way", ["REQUESTED", "CANCELING", "FAILING"])
@pytest.mark.parametrize("ended", ["COMPLETED_SUCCESS", "COMPLETED_FAILED", "CANCELED", "FAILED"])
def test_runs_of_a_backfill_under_way_stay(
    instance: dg.DagsterInstance, home: Path, under_way: str, ended: str
) -> None:
    for name, status in (("on", BulkActionStatus[under_way]), ("off", BulkActionStatus[ended])):
        instance.add_backfill(
            PartitionBackfill(
                backfill_id=name,
                status=status,
                from_failure=False,
                tags={},
                backfill_timestamp=time.time(),
            )
        )
    on, off = (
        add_run(instance, PACK, ["a"], tags={"dagster/backfill": name}) for name in ("on", "off")
    )
    add_run(instance, PACK, ["a"])
    age(home, 100, on, off)
    prune(instance)
    assert on in ids(instance)
    assert off not in ids(instance)


def test_the_newest_run_of_an_asset_without_partitions_stays(
    instance: dg.DagsterInstance, home: Path
) -> None:
    asset = dg.AssetKey(["synth", "harmony_manifest"])
    old, new = (add_run(instance, asset, [None]) for _ in range(2))
    age(home, 100, old, new)
    prune(instance)
    assert ids(instance) == {new}
    latest = instance.get_latest_materialization_event(asset)
    assert latest is not None and latest.run_id == new


def test_a_dry_run_counts_and_changes_nothing(instance: dg.DagsterInstance, home: Path) -> None:
    first, second = (add_run(instance, PACK, ["a"]) for _ in range(2))
    age(home, 100, first, second)
    counted = prune(instance, dry_run=True)
    assert ids(instance) == {first, second}
    assert log_of(home, first).exists() and log_of(home, second).exists()
    assert counted.after <= counted.before
    done = prune(instance)
    keys = ("runs", "emptied", "log_bytes", "events", "ticks", "kept")
    assert [getattr(counted, key) for key in keys] == [getattr(done, key) for key in keys]
    again = prune(instance)
    # SQLite takes a log into its database whenever its last connection is closed.
    assert again.after <= again.before
    assert again == Pruned(0, 0, 0, 0, 0, again.before, again.after, 1, "nothing was removed")


def test_events_of_arrivals_that_were_replaced_go(instance: dg.DagsterInstance, home: Path) -> None:
    fill(instance, ["a", "b"], 2)
    kinds = (dg.AssetObservation, dg.AssetMaterialization)
    for kind in kinds:
        instance.report_runless_asset_event(kind(asset_key=RAW_DROP, partition="a"))
    assert prune(instance).events == 0
    for name in ("index", ""):
        with sqlite3.connect(home / f"history/runs/{name}.db") as database:
            database.execute("UPDATE event_logs SET timestamp = '2020-01-01 00:00:00'")
    stood = built(instance, RAW_DROP)
    assert prune(instance).events == 2
    assert built(instance, RAW_DROP) == stood
    with sqlite3.connect(home / "history/runs/.db") as log:
        assert log.execute("SELECT count(*) FROM event_logs").fetchone() == (0,)
    assert instance.fetch_observations(RAW_DROP, limit=10).records[0].partition_key == "a"


def test_old_ticks_go(instance: dg.DagsterInstance, home: Path) -> None:
    with sqlite3.connect(home / "schedules/schedules.db") as database:
        for days in (1, 29, 31, 90):
            database.execute(
                "INSERT INTO job_ticks (selector_id, status, type, timestamp, tick_body)"
                " VALUES ('s', 'SKIPPED', 'SENSOR', datetime('now', ?), '{}')",
                (f"-{days} days",),
            )
    assert prune(instance).ticks == 2
    with sqlite3.connect(home / "schedules/schedules.db") as database:
        assert database.execute("SELECT count(*) FROM job_ticks").fetchone() == (2,)


def test_logs_that_no_run_has_go_when_they_are_old(
    instance: dg.DagsterInstance, home: Path
) -> None:
    run = add_run(instance, PACK, ["a"])
    for name, days in (("gone", 31), ("fresh", 29)):
        shutil.copy(log_of(home, run), log_of(home, name))
        ended = time.time() - days * DAY
        os.utime(log_of(home, name), (ended, ended))
    prune(instance)
    assert not log_of(home, "gone").exists()
    assert log_of(home, "fresh").exists()
    assert log_of(home, run).exists()


STEPS = ("delete_events", "delete_runs", "delete_logs", "delete_runless", "delete_ticks", "compact")


@pytest.mark.slow
def test_a_kill_at_any_step_loses_nothing_that_stays(
    instance: dg.DagsterInstance, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step, after in itertools.product(STEPS, (False, True)):
        old = [add_run(instance, PACK, ["a"]) for _ in range(2)]
        age(home, 100, *old)
        stood, original = built(instance), getattr(InstanceFiles, step)

        def killed(self: InstanceFiles, *words: object, step=original, after=after) -> None:
            if after:
                step(self, *words)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(InstanceFiles, step, killed)
            with pytest.raises(KeyboardInterrupt):
                prune(instance)
        assert built(instance) == stood
        assert old[1] in ids(instance)
        prune(instance)
        assert ids(instance) == {old[1]}
        assert built(instance) == stood
        assert not any(log_of(home, run).exists() for run in old)
        records = instance.fetch_materializations(PACK, limit=9).records
        assert [one.run_id for one in records] == [old[1]]


def test_an_error_inside_of_a_transaction_changes_nothing(
    instance: dg.DagsterInstance, home: Path
) -> None:
    run = add_run(instance, PACK, ["a"])
    with sqlite3.connect(home / "history/runs/index.db") as index:
        index.execute("DROP TABLE asset_check_executions")
    with pytest.raises(sqlite3.OperationalError):
        InstanceFiles(instance).delete_events([run])
    assert built(instance)
    assert log_of(home, run).exists()


def test_a_database_that_cannot_be_compacted_is_named(
    instance: dg.DagsterInstance, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = (add_run(instance, PACK, ["a"]) for _ in range(2))
    age(home, 100, old)
    monkeypatch.setattr("assets.history.instance_files._BUSY_SECONDS", 0.1)
    monkeypatch.setattr(InstanceFiles, "delete_ticks", lambda *_: holder.execute("BEGIN IMMEDIATE"))
    holder = sqlite3.connect(home / "history/runs/index.db", isolation_level=None)
    pruned = prune(instance)
    holder.close()
    assert "index.db: database is locked" in str(pruned.not_compacted)
    assert old not in ids(instance)


def test_another_storage_is_left_to_its_own_tools() -> None:
    with (
        dg.DagsterInstance.ephemeral() as instance,
        pytest.raises(OtherStorage, match="neither in SQLite files nor in Postgres"),
    ):
        prune(instance)


def test_a_small_instance_is_bounded(instance: dg.DagsterInstance, home: Path) -> None:
    keys = [f"d{number}" for number in range(6)]
    runs = fill(instance, keys, per_run=3, rounds=4)
    stood = built(instance)
    pruned = prune(instance, keep_runs=4)
    assert ids(instance) == set(runs[-4:])
    assert pruned.runs == 4
    assert built(instance) == stood


@pytest.mark.slow
@pytest.mark.sampled(0)
def test_an_instance_of_thousands_is_bounded(instance: dg.DagsterInstance, home: Path) -> None:
    """5,000 partitions and 1,000 runs: each partition was built by 20 runs of 100."""
    keys = [f"d{number:05}" for number in range(5000)]
    fill(instance, keys, per_run=100)
    for start in range(950):
        add_run(instance, PACK, keys[start % 50 : start % 50 + 3])
    stood = built(instance)
    assert len(stood) == 5000 and len(ids(instance)) == 1000
    pruned = prune(instance, keep_runs=100)
    assert built(instance) == stood
    assert len(ids(instance)) <= 100 + 50 + 52
    assert pruned.after < pruned.before / 3
    again = prune(instance, keep_runs=100)
    assert (again.runs, again.before) == (0, again.after)
    assert retention.KEEP_RUNS == 1000


def test_every_state_of_a_backfill_is_known() -> None:
    """A new version of Dagster may have more of them: decide which ones end a backfill."""
    assert {status.value for status in BulkActionStatus} == {
        *retention._BACKFILLS_UNDER_WAY,
        *("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED"),
    }
