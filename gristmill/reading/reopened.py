"""Files that were compared when a dataset was opened, and are opened when they are read.

For artifacts of more files than a process may hold open. See also `folder.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.reading.damage import DESCRIPTORS, damage_named
from gristmill.reading.generation import FileIdentity, StaleDataset


@contextmanager
def reopened(path: Path, identity: FileIdentity) -> Iterator[Path]:
    """Yield a path that opens a file, in this process and while the body runs.

    path: its real path.
    identity: what `OpenFolder.check` returned.

    Raises StaleDataset where there is another file now, or none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise _replaced(path, "is missing") from None
    try:
        if FileIdentity.of(os.fstat(descriptor)) != identity:
            raise _replaced(path, "is another file")
        with damage_named(lambda: path, lambda: {descriptor: path}):
            yield DESCRIPTORS / str(descriptor)
    finally:
        os.close(descriptor)


def _replaced(path: Path, now: str) -> StaleDataset:
    return StaleDataset(
        f"{path}: was rebuilt or changed after this dataset was opened: now it {now}: open the"
        " dataset again"
    )
