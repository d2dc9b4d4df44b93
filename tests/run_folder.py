"""The folder of one run of pytest: what its workers share, made once by the first that asks.

Where GRISTMILL_RUN_FOLDER names a folder, runs of the same code share it, as those of `.ci/run`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = "GRISTMILL_RUN_FOLDER"
_NAMED = pytest.StashKey[str]()


def take_named(config: pytest.Config) -> None:
    """Take the variable out of the environment: a test may run pytest on other code."""
    config.stash[_NAMED] = os.environ.pop(FOLDER, "")


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until no other process holds the lock file, and hold it."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Forked children keep the file open: closing it here would not free the lock.
            fcntl.flock(file, fcntl.LOCK_UN)


@dataclass(frozen=True)
class RunFolder:
    """The temporary folder of a run; `pytest -n` gives each worker a folder in it."""

    path: Path

    @staticmethod
    def of(config: pytest.Config, factory: pytest.TempPathFactory) -> RunFolder:
        """The folder of the run that a worker, or pytest without workers, belongs to."""
        if named := config.stash.get(_NAMED, ""):
            return RunFolder(Path(named))
        base = factory.getbasetemp()
        return RunFolder(base.parent if hasattr(config, "workerinput") else base)

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """A folder that `make` fills in the first worker that asks for it. Not to be changed."""
        folder, made = self.path / name, self.path / f"{name}.made"
        with alone(self.path / f"{name}.lock"):
            if not made.exists():
                if folder.exists():
                    shutil.rmtree(folder)
                folder.mkdir()
                make(folder)
                made.touch()
        return folder
