"""The history of a Dagster instance in Postgres: the tables of its database, and their size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg

from assets.history.tables import NEWEST, RUNLESS, RUNS_IN_STATEMENT, RunLogs

# Rows of a run's log: neither of an asset, a check nor a change of the run's state.
_OF_LOG: Final = (
    "asset_key IS NULL AND (dagster_event_type IS NULL OR"
    " dagster_event_type !~ '^(ASSET|PIPELINE|RUN)_')"
)


class InstanceDatabase:
    """The tables of one instance."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._events: Any = instance.event_log_storage
        self._runs: Any = instance.run_storage
        self._schedules: Any = instance.schedule_storage
        self._logs = RunLogs(instance)

    def newest_runs(self) -> set[str]:
        """Returns the runs with the newest event of a kind of a partition, or of a check."""
        with self._changed(self._events.index_connection()) as events:
            rows = events.execute(
                "SELECT DISTINCT run_id FROM event_logs WHERE id IN (SELECT max(id) FROM event_logs"
                " WHERE asset_key IS NOT NULL AND dagster_event_type = ANY(:kinds)"
                " GROUP BY asset_key, partition, dagster_event_type)"
                " UNION SELECT run_id FROM asset_check_executions WHERE id IN"
                " (SELECT max(id) FROM asset_check_executions GROUP BY asset_key, check_name)",
                kinds=list(NEWEST),
            )
        return {str(row[0]) for row in rows}

    def delete_events(self, runs: Sequence[str]) -> None:
        """Delete all events of some runs, and their logs."""
        for some in _portions(runs):
            with self._changed(self._events.index_connection()) as events:
                events.execute(
                    "DELETE FROM asset_event_tags WHERE event_id IN"
                    " (SELECT id FROM event_logs WHERE run_id = ANY(:runs))",
                    runs=some,
                )
                for table in ("event_logs", "asset_check_executions"):
                    events.execute(f"DELETE FROM {table} WHERE run_id = ANY(:runs)", runs=some)
            self._logs.delete(some)

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete runs whose events are deleted, with their tags."""
        for some in _portions(runs):
            with self._changed(self._runs.connect()) as database:
                for table in ("run_tags", "runs"):
                    database.execute(f"DELETE FROM {table} WHERE run_id = ANY(:runs)", runs=some)

    def delete_logs(self, runs: Collection[str]) -> None:
        """Delete the logs of runs; events of assets and checks, and the runs' states, stay."""
        for some in _portions(list(runs)):
            with self._changed(self._events.index_connection()) as events:
                events.execute(
                    f"DELETE FROM event_logs WHERE run_id = ANY(:runs) AND {_OF_LOG}", runs=some
                )
            self._logs.delete(some)

    def logged(self) -> dict[str, int]:
        """Returns the bytes of logs by run id, those of runs that are gone included."""
        with self._changed(self._events.index_connection()) as events:
            rows = events.execute(
                "SELECT run_id, sum(octet_length(event)) FROM event_logs"
                f" WHERE run_id <> :runless AND {_OF_LOG} GROUP BY run_id",
                runless=RUNLESS,
            )
        sizes = {str(run): int(size) for run, size in rows}
        for run, size in self._logs.sizes().items():
            sizes[run] = sizes.get(run, 0) + size
        return sizes

    def is_old(self, run: str, before: float) -> bool:
        """Returns whether no log of a run was changed since a time."""
        with self._changed(self._events.index_connection()) as events:
            ((newer,),) = events.execute(
                "SELECT count(*) FROM event_logs WHERE run_id = :run AND timestamp >= :before",
                run=run,
                before=_time(before),
            )
        return newer == 0 and self._logs.changed_at(run) < before

    def runless(self, before: float) -> list[int]:
        """Returns the storage ids of old events without a run that a newer one has replaced."""
        with self._changed(self._events.index_connection()) as events:
            rows = events.execute(
                "SELECT id FROM event_logs WHERE run_id = :runless AND timestamp < :before"
                " AND asset_key IS NOT NULL AND dagster_event_type = ANY(:kinds)"
                " AND id NOT IN (SELECT max(id) FROM event_logs"
                " WHERE asset_key IS NOT NULL GROUP BY asset_key, partition, dagster_event_type)",
                runless=RUNLESS,
                before=_time(before),
                kinds=list(NEWEST[:2]),
            )
        return [int(row[0]) for row in rows]

    def delete_runless(self, events: Sequence[int], before: float) -> None:
        """Delete events without a run, and their log before a time."""
        with self._changed(self._events.index_connection()) as database:
            for some in _portions(list(events)):
                database.execute(
                    "DELETE FROM asset_event_tags WHERE event_id = ANY(:ids)", ids=some
                )
                database.execute("DELETE FROM event_logs WHERE id = ANY(:ids)", ids=some)
            database.execute(
                "DELETE FROM event_logs WHERE run_id = :runless AND timestamp < :before"
                f" AND {_OF_LOG}",
                runless=RUNLESS,
                before=_time(before),
            )

    def ticks(self, before: float) -> int:
        """Returns the number of ticks of sensors and schedules before a time."""
        with self._changed(self._schedules.connect()) as schedules:
            ((count,),) = schedules.execute(
                "SELECT count(*) FROM job_ticks WHERE timestamp < :before", before=_time(before)
            )
        return int(count)

    def delete_ticks(self, before: float) -> None:
        """Delete the ticks of sensors and schedules before a time."""
        with self._changed(self._schedules.connect()) as schedules:
            schedules.execute(
                "DELETE FROM job_ticks WHERE timestamp < :before", before=_time(before)
            )

    def compact(self) -> str | None:
        """Do nothing: the server uses what is freed again. Returns that."""
        return "Postgres: `VACUUM FULL`, which locks its tables, would give it back to the disk"

    def size(self) -> int:
        """Returns the bytes of the database and of the logs."""
        with self._changed(self._events.index_connection()) as events:
            ((size,),) = events.execute("SELECT pg_database_size(current_database())")
        return int(size) + self._logs.size()

    @staticmethod
    @contextmanager
    def _changed(connected: Any) -> Iterator[_Statements]:
        """One transaction: all of it is stored, or nothing."""
        with connected as connection:
            # Dagster's own connections commit each statement.
            opened = connection.execution_options(isolation_level="READ COMMITTED")
            with opened.begin():
                yield _Statements(opened)


class _Statements:
    """Statements in one transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows."""
        from sqlalchemy import text

        result = self._connection.execute(text(statement), values)
        return list(result) if result.returns_rows else []


def has_database(instance: dg.DagsterInstance) -> bool:
    """Returns whether an instance keeps all of its history in Postgres."""
    storages = (instance.event_log_storage, instance.run_storage, instance.schedule_storage)
    return all(hasattr(storage, "postgres_url") for storage in storages)


def _portions(items: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), RUNS_IN_STATEMENT):
        yield list(items[start : start + RUNS_IN_STATEMENT])


def _time(seconds: float) -> datetime:
    """A time with its zone, as Dagster writes it: the server's zone may be any."""
    return datetime.fromtimestamp(seconds, UTC)
