"""What the steps of runs printed, which Dagster keeps in a folder for each run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import dagster as dg


class RunLogs:
    """The folders of an instance; none where it keeps what was printed elsewhere.

    instance: the Dagster instance.
    """

    def __init__(self, instance: dg.DagsterInstance) -> None:
        folder = getattr(instance.compute_log_manager, "_base_dir", None)
        self.folder = Path(folder) if folder else None

    def sizes(self) -> dict[str, int]:
        """Returns the bytes by run id, those of runs that are gone included."""
        if self.folder is None or not self.folder.is_dir():
            return {}
        return {folder.name: size(folder) for folder in self.folder.iterdir()}

    def changed_at(self, run: str) -> float:
        """Returns when the log of a run was changed, in seconds since 1970; 0 where it has none.

        run: id of a run, or the name of a folder.
        """
        return 0.0 if self.folder is None else changed_at(self.folder / run)

    def delete(self, runs: Collection[str]) -> None:
        """Delete the logs of runs.

        runs: ids of runs that have ended.
        """
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
