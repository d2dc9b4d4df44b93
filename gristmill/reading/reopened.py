"""Files that were compared when a dataset was opened, and are opened when they are read.

For artifacts of more files than a process may hold open. See also `folder.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.reading.damage import DESCRIPTORS, damage_named
from gristmill.reading.generation import FileIdentity, Generation
from gristmill.reading.opening import opened
from gristmill.reading.verify_level import Verify


@contextmanager
def reopened(known: Generation, record: str, name: str, level: Verify) -> Iterator[Path]:
    """Yield a path that opens a file, in this process and while the body runs.

    After a rebuild `level` says how much of the other file is compared with the record. Raises
    StaleDataset where there is another version of the artifact now, or none; BadInput as
    `OpenFolder.file`.
    """
    path = known.folder / name
    descriptor = _same(path, known.files[name])
    if descriptor is None:
        key = (known.folder, record)
        held, _ = opened(lambda opening: opening.folder(*key).keep(name), level, {key: known})
        with held.reading() as found:
            yield found
        return
    try:
        with damage_named(lambda: path, lambda: {descriptor: path}):
            yield DESCRIPTORS / str(descriptor)
    finally:
        os.close(descriptor)


def _same(path: Path, identity: FileIdentity) -> int | None:
    """The open file at a path, if it is still the one that was compared."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if FileIdentity.of(os.fstat(descriptor)) == identity:
        return descriptor
    os.close(descriptor)
    return None
