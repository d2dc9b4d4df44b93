"""What both databases of an instance have alike, and which of the two an instance has.

Dagster has no function that deletes parts of its history, so its tables are named in this package.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
