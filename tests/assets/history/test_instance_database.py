"""What is pruned from an instance in Postgres: the same as from one in SQLite files."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.events.log import EventLogEntry
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.scheduler.instigation import InstigatorType, TickData, TickStatus

from assets.history.instance_database import InstanceDatabase
from assets.history.retention import Pruned, prune
from bench.large_instance import PACK, RAW_DROP, add_run
from tests.postgres import Postgres, postgres, use_in

pytestmark = [pytest.mark.slow, pytest.mark.engines]
DAY = 86_400.0
STATUS = dg.DagsterRunStatus
COUNTS = ("runs", "emptied", "events", "ticks", "kept")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, server: Postgres) -> Path:
    """The folder of an instance in a database of its own, whose zone is not UTC."""
    folder = tmp_path / "postgres"
    folder.mkdir()
    use_in(folder, server.database(f"h{time.time_ns()}"))
    logs = {"module": "dagster._core.storage.local_compute_log_manager"}
    logs |= {"class": "LocalComputeLogManager", "config": {"base_dir": str(folder / "logs")}}
    file = folder / "dagster.yaml"
    file.write_text(file.read_text() + yaml.safe_dump({"compute_logs": logs}))
    return folder


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(home)) as made:
        execute(made, "ALTER ROLE dagster SET timezone TO 'Pacific/Kiritimati'")
        yield made
        execute(made, "ALTER ROLE dagster RESET timezone")


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as made:
        yield made


def execute(instance: dg.DagsterInstance, statement: str, **values: object) -> list[Any]:
    """Execute a statement in the database of an instance, with its rows."""
    storage: Any = instance.event_log_storage
    with InstanceDatabase._changed(storage.index_connection()) as database:
        return database.execute(statement, **values)


def age(instance: dg.DagsterInstance, run: str, days: float) -> None:
    """Let a run have ended some days ago."""
    storage: Any = instance.run_storage
    ended = time.time() - days * DAY
    with storage.connect() as connection:
        connection.exec_driver_sql(
            f"UPDATE runs SET end_time = {ended} WHERE run_id = '{run}'",
        )


def say(instance: dg.DagsterInstance, run: str, text: str = "a line of the log") -> None:
    """Write a line to the log of a run."""
    instance.event_log_storage.store_event(
        EventLogEntry(
            error_info=None,
            level=10,
            user_message=text,
            run_id=run,
            timestamp=time.time(),
            job_name="job",
        )
    )


@dataclass
class Drawn:
    """A history that is the same in every instance."""

    seed: int

    def write(self, instance: dg.DagsterInstance) -> list[str]:
        """Write it; the ids of its runs in their order."""
        dice = random.Random(self.seed)
        for name, status in (("on", "REQUESTED"), ("off", "COMPLETED_SUCCESS")):
            instance.add_backfill(
                PartitionBackfill(
                    backfill_id=name,
                    status=BulkActionStatus[status],
                    from_failure=False,
                    tags={},
                    backfill_timestamp=time.time(),
                )
            )
        runs = []
        for _ in range(25):
            keys = dice.sample(["a", "b", "c", None], dice.randrange(1, 3))
            status = dice.choice([STATUS.SUCCESS] * 4 + [STATUS.FAILURE, STATUS.STARTED])
            tags = dice.choice([{}, {}, {"dagster/backfill": dice.choice(["on", "off"])}])
            run = add_run(instance, PACK, keys, status=status, tags=tags)
            say(instance, run)
            age(instance, run, dice.choice([0.0, 5.0, 29.9, 30.1, 400.0]))
            runs.append(run)
        for kind in (dg.AssetMaterialization, dg.AssetObservation):
            for key in "aab":
                instance.report_runless_asset_event(kind(asset_key=RAW_DROP, partition=key))
        for days in (0.5, 29.9, 30.1, 99):
            at = time.time() - days * DAY
            ticked = TickData("o", "sensor", InstigatorType.SENSOR, TickStatus.SKIPPED, at)
            instance.create_tick(ticked)
        return runs


def state(instance: dg.DagsterInstance, runs: list[str]) -> dict[str, Any]:
    """What an instance still knows, with its runs by their order."""
    number = {run: index for index, run in enumerate(runs)}

    def of(fetch: Callable[..., Any], asset: dg.AssetKey) -> list[tuple[int | None, str | None]]:
        found = fetch(asset, limit=500).records
        return [(number.get(one.run_id), one.partition_key) for one in found]

    return {
        "runs": {number[run.run_id] for run in instance.get_runs()},
        "built": of(instance.fetch_materializations, PACK),
        "arrived": of(instance.fetch_materializations, RAW_DROP),
        "observed": of(instance.fetch_observations, RAW_DROP),
        "logs": [index for index, run in enumerate(runs) if has_log(instance, run)],
        "ticks": len(instance.get_ticks("o", "selector")),
    }


def has_log(instance: dg.DagsterInstance, run: str) -> bool:
    """Whether the line of `say` is still in the log of a run."""
    storage: Any = instance.event_log_storage
    if hasattr(storage, "path_for_shard"):
        return Path(storage.path_for_shard(run)).exists()
    return any("a line" in entry.user_message for entry in instance.all_logs(run))


def counts(pruned: Pruned) -> list[int]:
    return [getattr(pruned, name) for name in COUNTS]


@pytest.mark.parametrize("seed", range(4))
def test_both_databases_keep_the_same(
    instance: dg.DagsterInstance, embedded: dg.DagsterInstance, seed: int
) -> None:
    drawn = Drawn(seed)
    ours, theirs = drawn.write(instance), drawn.write(embedded)
    for days, most in ((365, 1000), (30, 1000), (30, 8), (1, 0)):
        expected = prune(embedded, days, most)
        assert counts(prune(instance, days, most, dry_run=True)) == counts(expected)
        assert counts(prune(instance, days, most)) == counts(expected)
        assert state(instance, ours) == state(embedded, theirs), (days, most)


def test_no_row_of_a_removed_run_is_left(instance: dg.DagsterInstance, home: Path) -> None:
    old, new = (add_run(instance, PACK, ["a"], tags={"one": "tag"}) for _ in range(2))
    for run in (old, new):
        say(instance, run)
        folder = home / "logs" / run / "compute_logs"
        folder.mkdir(parents=True)
        (folder / "step.err").write_text("printed")
    pruned = prune(instance, keep_runs=0)
    assert (pruned.runs, pruned.emptied) == (1, 1)
    assert pruned.log_bytes > 2 * len("printed")
    assert not (home / "logs" / old).exists() and not (home / "logs" / new).exists()
    for table in ("runs", "run_tags", "event_logs"):
        left = execute(instance, f"SELECT DISTINCT run_id FROM {table}")
        assert left == [(new,)], table
    assert execute(instance, "SELECT count(*) FROM asset_event_tags") == [(1,)]
    assert pruned.not_compacted is not None and "VACUUM FULL" in pruned.not_compacted


def test_what_a_run_says_of_its_state_stays_with_it(instance: dg.DagsterInstance) -> None:
    run = add_run(instance, PACK, ["a"])
    found = instance.get_run_by_id(run)
    assert found is not None
    instance.report_run_canceled(found)
    say(instance, run)
    before = {entry.dagster_event_type for entry in instance.all_logs(run)}
    prune(instance, keep_runs=0)
    after = {entry.dagster_event_type for entry in instance.all_logs(run)}
    assert before - after == {None}
    assert dg.DagsterEventType.RUN_CANCELED in after


@pytest.mark.parametrize(("days", "goes"), [(29.9, 0), (30.1, 1)])
def test_old_arrivals_that_were_replaced_go(
    instance: dg.DagsterInstance, days: float, goes: int
) -> None:
    for _ in range(2):
        instance.report_runless_asset_event(dg.AssetMaterialization(RAW_DROP, partition="a"))
    at = datetime.now(UTC) - timedelta(days=days)
    execute(instance, "UPDATE event_logs SET timestamp = :at", at=at)
    assert prune(instance).events == goes
    assert len(instance.fetch_materializations(RAW_DROP, limit=9).records) == 2 - goes


@pytest.mark.parametrize(("days", "goes"), [(29.9, False), (30.1, True)])
def test_logs_that_no_run_has_go_when_they_are_old(
    instance: dg.DagsterInstance, days: float, goes: bool
) -> None:
    say(instance, "gone")
    at = datetime.now(UTC) - timedelta(days=days)
    execute(instance, "UPDATE event_logs SET timestamp = :at", at=at)
    prune(instance)
    assert (execute(instance, "SELECT count(*) FROM event_logs") == [(0,)]) is goes


STEPS = ("delete_events", "delete_runs", "delete_logs", "delete_runless", "delete_ticks")


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_loses_nothing_that_stays(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    original = getattr(InstanceDatabase, step)
    for after in (False, True):
        old = [add_run(instance, PACK, ["a"]) for _ in range(2)]

        def killed(self: InstanceDatabase, *words: object, after: bool = after) -> None:
            if after:
                original(self, *words)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(InstanceDatabase, step, killed)
            with pytest.raises(KeyboardInterrupt):
                prune(instance, keep_runs=0)
        prune(instance, keep_runs=0)
        assert {run.run_id for run in instance.get_runs()} == {old[1]}
        records = instance.fetch_materializations(PACK, limit=9).records
        assert [one.run_id for one in records] == [old[1]]


def test_an_error_inside_of_a_transaction_changes_nothing(
    instance: dg.DagsterInstance, home: Path
) -> None:
    run = add_run(instance, PACK, ["a"])
    folder = home / "logs" / run
    folder.mkdir(parents=True)
    execute(instance, "ALTER TABLE asset_check_executions RENAME TO elsewhere")
    with pytest.raises(Exception, match="asset_check_executions"):
        InstanceDatabase(instance).delete_events([run])
    assert len(instance.fetch_materializations(PACK, limit=9).records) == 1
    assert folder.exists()
    shutil.rmtree(folder)


def test_more_runs_than_one_statement_takes_go(instance: dg.DagsterInstance) -> None:
    runs = [add_run(instance, PACK, ["a"]) for _ in range(402)]
    assert prune(instance, keep_runs=0).runs == 401
    assert {run.run_id for run in instance.get_runs()} == {runs[-1]}
    assert execute(instance, "SELECT DISTINCT run_id FROM event_logs") == [(runs[-1],)]
