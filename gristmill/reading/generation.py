"""Which version of an artifact a reader was opened on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from gristmill.contract import GristmillError

_SHOWN = 12


class StaleDataset(GristmillError):
    """What is published now is not the version that a reader was opened on."""


class FileIdentity(NamedTuple):
    """What tells one file on disk from another and from itself before a change."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @staticmethod
    def of(stat: os.stat_result) -> FileIdentity:
        """The identity in the result of a stat call."""
        return FileIdentity(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True)
class Generation:
    """One version of an artifact.

    folder: as it was given to the reader.
    digest: of its provenance record; None without a record.
    data_version: of that record; None without a record.
    files: identity of each file that the reader opened, by its path in the artifact.
    """

    folder: Path
    digest: str | None
    data_version: str | None
    files: Mapping[str, FileIdentity]

    def __str__(self) -> str:
        if self.digest is None:
            return "files without a record"
        return f"data version {(self.data_version or '')[:_SHOWN]}, record {self.digest[:_SHOWN]}"


def refuse_other(opened: Generation, current: Generation) -> None:
    """Raise StaleDataset where two generations of an artifact have not the same payload."""
    if opened.data_version != current.data_version:
        raise stale(opened, f"now there is {current}")


def stale(opened: Generation, current: str) -> StaleDataset:
    """The error for a reader whose generation is gone."""
    return StaleDataset(
        f"{opened.folder}: was rebuilt or changed after this dataset was opened: it was opened on"
        f" {opened}; {current}: open the dataset again"
    )


Verify = Literal["none", "sizes", "hash"]

LEVELS: Final[tuple[Verify, ...]] = get_args(Verify)


def verify_level(value: Verify | bool) -> Verify:
    """The level that an argument `verify` means.

    value: "none" opens the files, and refuses only those that were cut short. "sizes" also
        compares the size of each file that the reader uses with the record. "hash" also compares
        its sha256. True is "hash", False is "sizes".

    Raises ValueError for another value.
    """
    if isinstance(value, bool):
        return "hash" if value else "sizes"
    if value not in LEVELS:
        raise ValueError(f"verify must be one of {', '.join(map(repr, LEVELS))}, not {value!r}")
    return value
