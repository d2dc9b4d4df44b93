"""Opens the folders of a reader together: all of one generation each, or an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from gristmill.contract import GristmillError
from gristmill.provenance import RECORD
from gristmill.reading.damage import damage_named
from gristmill.reading.folder import OpenFolder
from gristmill.reading.generation import Generation, StaleDataset
from gristmill.reading.verify_level import Verify

T = TypeVar("T")
Generations = Mapping[tuple[Path, str], Generation]
"""By folder and name of the record."""

_ATTEMPTS = 20


class Opening:
    """The folders that a reader opens at one time.

    known: generations that the folders must be; empty for the first opening.
    first: whether this is the first opening, at which contents are checked.
    """

    def __init__(self, level: Verify, known: Generations) -> None:
        self.level, self.known, self.first = level, known, not known
        self._folders: dict[tuple[Path, str], OpenFolder] = {}
        self._latest: OpenFolder | None = None

    def folder(
        self, path: Path, record: str = RECORD, within: OpenFolder | None = None
    ) -> OpenFolder:
        """Open the folder of an artifact.

        path: of the folder.
        record: path of its record in the folder; default `provenance.json`.
        within: the open folder that it is nested in, directly; default None.

        Raises as `OpenFolder`. The folder is closed at the end of the opening.
        """
        key = (path, record)
        if key not in self._folders:
            known = self.known.get(key)
            self._folders[key] = OpenFolder(path, self.level, record, known, within)
            self._latest = self._folders[key]
            self._folders[key].read_record()
        self._latest = self._folders[key]
        return self._folders[key]

    def names(self) -> dict[int, Path]:
        """The real path of every open descriptor."""
        return {n: path for folder in self._folders.values() for n, path in folder.names.items()}

    def latest(self) -> Path:
        """The file, or else the folder, that was opened last."""
        return self._latest.latest if self._latest else Path()

    def replaced(self) -> bool:
        """Whether one of the folders was replaced since it was opened."""
        return any(folder.replaced() for folder in self._folders.values())

    def finish(self) -> dict[tuple[Path, str], Generation]:
        """The generation of each folder; raises as `OpenFolder.finish`."""
        return {key: folder.finish() for key, folder in self._folders.items()}

    def close(self) -> None:
        """Close all folders."""
        for folder in self._folders.values():
            folder.close()


def opened(
    read: Callable[[Opening], T], level: Verify, known: Generations | None = None
) -> tuple[T, Generations]:
    """Open all files of a reader, each artifact in one generation.

    read: opens folders and files with an Opening, and returns what the reader keeps.
    known: generations of an earlier call, which the folders must still be; default None.
    """
    for _ in range(_ATTEMPTS):
        opening = Opening(level, known or {})
        try:
            with damage_named(opening.latest, opening.names):
                result = read(opening)
                generations = opening.finish()
            if not opening.replaced():
                return result, generations
        except GristmillError:
            # Files of a folder that is being deleted are missing one by one.
            if not opening.replaced():
                raise
        finally:
            opening.close()
    raise StaleDataset(
        f"{opening.latest()}: its artifact was replaced {_ATTEMPTS} times while it was opened: open"
        " the dataset again when nothing builds it"
    )
