"""What both databases of an instance have alike, and which of the two an instance has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import dagster as dg

NEWEST: Final = (
    dg.DagsterEventType.ASSET_MATERIALIZATION.value,
    dg.DagsterEventType.ASSET_OBSERVATION.value,
    dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value,
)
"""The kinds of events whose newest one of each partition stays: without it the partition would no
longer be materialized, failed, or checked."""
RUNLESS: Final = ""
"""The run id of events that no run reported."""
RUNS_IN_STATEMENT: Final = 200


class OtherStorage(Exception):
    """The instance keeps its history neither in SQLite files nor in Postgres; the text says so."""


class History(Protocol):
    """The history that one instance keeps of runs. Times are seconds since 1970."""

    def newest_runs(self) -> set[str]:
        """Returns the runs with the newest event of a kind of a partition, or of a check."""
        ...

    def delete_events(self, runs: Sequence[str]) -> None:
        """Delete all events and logs of ended runs, none of them in `newest_runs`."""
        ...

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete runs whose events are deleted, with their tags."""
        ...

    def delete_logs(self, runs: Collection[str]) -> None:
        """Delete the logs of runs that have ended; what the partitions were built from stays."""
        ...

    def logged(self) -> dict[str, int]:
        """Returns the bytes of logs by run id, those of runs that are gone included."""
        ...

    def is_old(self, run: str, before: float) -> bool:
        """Returns whether no log of a run was changed since a time."""
        ...

    def runless(self, before: float) -> list[int]:
        """Returns the storage ids of old events without a run that a newer one has replaced."""
        ...

    def delete_runless(self, events: Sequence[int], before: float) -> None:
        """Delete events without a run, and their log before a time."""
        ...

    def ticks(self, before: float) -> int:
        """Returns the number of ticks of sensors and schedules before a time."""
        ...

    def delete_ticks(self, before: float) -> None:
        """Delete the ticks of sensors and schedules before a time."""
        ...

    def compact(self) -> str | None:
        """Give the space of what was deleted back to the disk; returns why not, or None."""
        ...

    def size(self) -> int:
        """Returns the bytes of all databases and logs."""
        ...


class RunLogs:
    """The folders of an instance; none where it keeps what was printed elsewhere."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        folder = getattr(instance.compute_log_manager, "_base_dir", None)
        self.folder = Path(folder) if folder else None

    def sizes(self) -> dict[str, int]:
        """Returns the bytes by run id, those of runs that are gone included."""
        if self.folder is None or not self.folder.is_dir():
            return {}
        return {folder.name: size(folder) for folder in self.folder.iterdir()}

    def changed_at(self, run: str) -> float:
        """Returns when the log of a run was changed, in seconds since 1970; 0 where it has none."""
        return 0.0 if self.folder is None else changed_at(self.folder / run)

    def delete(self, runs: Collection[str]) -> None:
        """Delete the logs of runs."""
        if self.folder is None:
            return
        for run in runs:
            shutil.rmtree(self.folder / run, ignore_errors=True)

    def size(self) -> int:
        """Returns the bytes of all logs."""
        return 0 if self.folder is None else size(self.folder)


def changed_at(path: Path) -> float:
    """When a file, or the latest one below a folder, was changed; 0 for what is not there."""
    if not path.is_dir():
        with suppress(FileNotFoundError):
            return path.stat().st_mtime
        return 0.0
    return max((changed_at(entry) for entry in path.iterdir()), default=path.stat().st_mtime)


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what vanishes meanwhile counts nothing."""
    if not path.is_dir():
        with suppress(FileNotFoundError):
            return path.stat().st_size
        return 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(folder) / name).stat().st_size
    return total
