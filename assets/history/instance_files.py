"""The files of a Dagster instance on SQLite: its databases, the logs of runs, and their sizes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import dagster as dg

from assets.history.tables import NEWEST, RUNLESS, RUNS_IN_STATEMENT, RunLogs, changed_at, size

_BUSY_SECONDS: Final = 30.0


def databases(instance: dg.DagsterInstance) -> tuple[Path, Path, Path]:
    """Returns the files of events, runs, and ticks."""
    storage: Any = instance.event_log_storage
    index = Path(storage.path_for_shard("index"))
    history = index.parent.parent  # at the top of a disk, a folder is its own parent
    return index, history / "runs.db", history.parent / "schedules" / "schedules.db"


class InstanceFiles:
    """The databases and log folders of one instance."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._index, self._runs, self._schedules = databases(instance)
        self._logs = RunLogs(instance)

    def newest_runs(self) -> set[str]:
        """Returns the runs with the newest event of a kind of a partition or of a check.

        The kinds are: materialized, observed, planned. Without these runs a partition would no
        longer be materialized, failed, or checked.
        """
        kinds = ", ".join("?" * len(NEWEST))
        with closing(self._connect(self._index)) as index:
            rows = index.execute(
                "SELECT DISTINCT run_id FROM event_logs WHERE id IN (SELECT max(id) FROM event_logs"
                f" WHERE asset_key IS NOT NULL AND dagster_event_type IN ({kinds})"
                " GROUP BY asset_key, partition, dagster_event_type)"
                " UNION SELECT run_id FROM asset_check_executions WHERE id IN"
                " (SELECT max(id) FROM asset_check_executions GROUP BY asset_key, check_name)",
                NEWEST,
            ).fetchall()
        return {str(row[0]) for row in rows}

    def delete_events(self, runs: Sequence[str]) -> None:
        """Delete the events of some runs that have ended from the index, and their logs."""
        for start in range(0, len(runs), RUNS_IN_STATEMENT):
            some = runs[start : start + RUNS_IN_STATEMENT]
            marks = ", ".join("?" * len(some))
            with self._changed(self._index) as index:
                index.execute(
                    "DELETE FROM asset_event_tags WHERE event_id IN"
                    f" (SELECT id FROM event_logs WHERE run_id IN ({marks}))",
                    some,
                )
                for table in ("event_logs", "asset_check_executions"):
                    index.execute(f"DELETE FROM {table} WHERE run_id IN ({marks})", some)
            self.delete_logs(some)

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete runs whose events are deleted, with their tags."""
        for start in range(0, len(runs), RUNS_IN_STATEMENT):
            some = runs[start : start + RUNS_IN_STATEMENT]
            marks = ", ".join("?" * len(some))
            with self._changed(self._runs) as database:
                for table in ("run_tags", "runs"):
                    database.execute(f"DELETE FROM {table} WHERE run_id IN ({marks})", some)

    def runless(self, before: float) -> list[int]:
        """Returns the storage ids of old events without a run that a newer one has replaced."""
        with closing(self._connect(self._index)) as index:
            rows = index.execute(
                "SELECT id FROM event_logs WHERE run_id = ?"
                " AND timestamp < datetime(?, 'unixepoch')"
                " AND asset_key IS NOT NULL AND id NOT IN (SELECT max(id) FROM event_logs"
                " WHERE asset_key IS NOT NULL GROUP BY asset_key, partition, dagster_event_type)"
                " AND dagster_event_type IN (?, ?)",
                (RUNLESS, before, *NEWEST[:2]),
            ).fetchall()
        return [int(row[0]) for row in rows]

    def delete_runless(self, events: Sequence[int], before: float) -> None:
        """Delete events without a run, and their log before a time."""
        with self._changed(self._index) as index:
            ids = [(event,) for event in events]
            index.executemany("DELETE FROM asset_event_tags WHERE event_id = ?", ids)
            index.executemany("DELETE FROM event_logs WHERE id = ?", ids)
        log = self._index.parent / f"{RUNLESS}.db"
        if log.exists():
            with self._changed(log) as database:
                database.execute(
                    "DELETE FROM event_logs WHERE timestamp < datetime(?, 'unixepoch')", (before,)
                )

    def ticks(self, before: float) -> int:
        """Returns the number of ticks of sensors and schedules before a time."""
        with closing(self._connect(self._schedules)) as schedules:
            (count,) = schedules.execute(
                "SELECT count(*) FROM job_ticks WHERE timestamp < datetime(?, 'unixepoch')",
                (before,),
            ).fetchone()
        return int(count)

    def delete_ticks(self, before: float) -> None:
        """Delete the ticks of sensors and schedules before a time."""
        with self._changed(self._schedules) as schedules:
            schedules.execute(
                "DELETE FROM job_ticks WHERE timestamp < datetime(?, 'unixepoch')", (before,)
            )

    def logged(self) -> dict[str, int]:
        """Returns the bytes of log files by run id, those of runs that are gone included."""
        sizes: dict[str, int] = {}
        for path in self._index.parent.glob("*.db*"):
            run = path.name.partition(".db")[0]
            if run not in (self._index.stem, RUNLESS):
                sizes[run] = sizes.get(run, 0) + size(path)
        for run, printed in self._logs.sizes().items():
            sizes[run] = sizes.get(run, 0) + printed
        return sizes

    def is_old(self, run: str, before: float) -> bool:
        """Returns whether no log file of a run was changed since a time."""
        file = self._index.parent / f"{run}.db"
        return max(changed_at(file), self._logs.changed_at(run)) < before

    def delete_logs(self, runs: Collection[str]) -> None:
        """Delete the log files of runs; what the partitions were built from stays in the index."""
        for run in runs:
            for suffix in (".db-wal", ".db-shm", ".db"):
                (self._index.parent / f"{run}{suffix}").unlink(missing_ok=True)
        self._logs.delete(runs)

    def compact(self) -> str | None:
        """Give the space of what was deleted back to the disk; returns why that failed, or None."""
        for path in (self._index, self._runs, self._schedules):
            try:
                with closing(self._connect(path)) as database:
                    database.execute("VACUUM")
                    # Whoever holds the database open (see `open_databases.py`) also holds its log,
                    # which is as large as all that was written at once.
                    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as error:
                return f"{path}: {error}"
        return None

    def size(self) -> int:
        """Returns the bytes of all databases and logs."""
        history = self._index.parent.parent
        return size(history) + size(self._schedules.parent) + self._logs.size()

    @staticmethod
    def _connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)

    @contextmanager
    def _changed(self, path: Path) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is stored, or nothing."""
        with closing(self._connect(path)) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")


def has_files(instance: dg.DagsterInstance) -> bool:
    """Returns whether an instance keeps its history in SQLite files."""
    return hasattr(instance.event_log_storage, "path_for_shard")
