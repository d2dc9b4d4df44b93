"""Types that builders, laws and readers of raw input share: errors, summaries, violations."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

_DISK: Final = (
    "the disk or the network failed (see `dmesg`): mend it, then bring the file back from a copy, "
    "or build it again"
)
_ROOM: Final = "make room there, or raise the quota or the limit of file sizes"
_CURES: Final = {
    errno.EIO: _DISK,
    errno.EREMOTEIO: _DISK,
    errno.ESTALE: "the file server replaced it or was started again: do it again; where it comes "
    "back, mount the file system again",
    errno.EROFS: "make the file system writable; Linux makes it read-only after an error of the "
    "disk (see `dmesg`)",
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
}
"""What a person does about an error of the machine, whatever the file holds."""


class GristmillError(Exception):
    """An error whose text tells the user what is wrong and what to do."""


class NothingToBuild(GristmillError):
    """There is nothing to build now, though nothing is wrong; the text says why."""


class BadInput(GristmillError):
    """Input that breaks a rule; the text names file, row and rule.

    `row` is 1-based in the words of the format (a line, a parquet row, a game).
    """

    def __init__(self, file: str | Path, rule: str, row: int | None = None) -> None:
        where = f"{file}" if row is None else f"{file}:{row}"
        super().__init__(f"{where}: {rule}")
        self.file = str(file)
        self.row = row
        self.rule = rule

    def __reduce__(self) -> tuple[type[BadInput], tuple[str, str, int | None]]:
        # Errors travel from pool workers, and the default pickling would call
        # __init__ with the finished text alone.
        return BadInput, (self.file, self.rule, self.row)


class FileFailed(GristmillError):
    """A file that the disk or the network does not give, or does not take."""


def is_of_machine(error: BaseException) -> bool:
    """Whether an error is of the disk or the network, and says nothing of what the file holds."""
    return isinstance(error, OSError) and error.errno in _CURES


def os_reason(error: OSError) -> str:
    """What went wrong with a file, without its name; with the cure where one is known."""
    said = error.strerror or str(error)
    return f"{said}: {_CURES[error.errno]}" if error.errno in _CURES else said


def in_words(error: Exception, where: str | Path = "a file") -> Exception:
    """FileFailed in place of an error of the disk or the network; any other error as it is.

    where: what to name if the error names no file; default "a file".
    """
    is_named = isinstance(error, GristmillError)
    if not isinstance(error, OSError) or is_named or not is_of_machine(error):
        return error
    return FileFailed(f"{error.filename or where}: {os_reason(error)}")


@dataclass(frozen=True)
class FileNote:
    """What a builder knows about one file that it wrote, beyond its bytes.

    rows: rows, documents or games in it, None where it has none.
    payload: False for files that carry times, absolute paths or library
        stamps; they are hashed, but do not count for the data version.
    content_sha256: digest of the contents where bytes are not reproducible
        (a SQLite file); the data version uses it instead of the file's hash.
    sha256: of the bytes, where the builder hashed them as it wrote them
        (`hashing.HashedFile`). None: the publisher reads the file and hashes it.
    bytes: how many bytes were hashed; the file must have as many. Needed with sha256.
    """

    rows: int | None = None
    payload: bool = True
    content_sha256: str | None = None
    sha256: str | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Violation:
    """One broken law of an artifact, or one difference between the disk and a record.

    law: its name.
    where: a path on disk, a path in the artifact, or a place in its contents.
    found: what is there instead.
    """

    law: str
    where: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: {self.law}: {self.found}"


@dataclass(frozen=True)
class Trace:
    """Where one sample of an artifact came from; families add their fields.

    A subclass whose fields are not what a person reads overrides `facts`.
    """

    def facts(self) -> dict[str, object]:
        """What a person reads, by name, in the order of the lines."""
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}


@dataclass(frozen=True)
class Summary:
    """What every builder's summary carries; families add their own counts as fields.

    docs/numbers.md says what each count is.

    files: path relative to the artifact (POSIX) -> note. Files that are not
        named are payload without rows.
    """

    files: Mapping[str, FileNote]


def counts_of(summary: Summary) -> dict[str, int | float]:
    """A summary's numbers by name: its fields, and mappings of numbers as `field/key`."""
    counts: dict[str, int | float] = {}
    for spec in fields(summary):
        value = getattr(summary, spec.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            counts[spec.name] = value
        elif isinstance(value, Mapping):
            counts |= {
                f"{spec.name}/{key}": number
                for key, number in value.items()
                if isinstance(number, int | float)
            }
    return counts
