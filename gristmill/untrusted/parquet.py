"""An untrusted Parquet file in a child process: its limits, and its damage as BadInput.

Arrow decides itself how much memory a page takes, and a page of a few bytes may claim gigabytes.
What becomes of the rows is in the families: `corpora/raw/parquet.py`,
`synth/format/parquet.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from gristmill.contract import BadInput, is_of_machine, os_reason

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

RATIO: Final = 1000
"""Bytes of rows for each byte of the file, at most."""
ANY_RATIO_BYTES: Final = 64 << 20
"""Bytes of rows that every file may have."""
ANY_ROWS: Final = 100_000
"""Rows that every file may have; above it needs a byte for each row."""
DEPTH: Final = 32
"""Levels of nested columns."""
COLUMNS: Final = 10_000
"""Columns, those inside of nested columns included."""
_SHOWN: Final = 300
_BUFFER: Final = 1 << 20
_BOMB: Final = "it looks like a decompression bomb"


class _Last:
    """The footer that was read last, which takes long of a large file; it holds no file open."""

    known: tuple[tuple[int, ...], pq.FileMetaData | None] = ((), None)


def opened(descriptor: int, path: Path) -> pq.ParquetFile:
    """Open a Parquet file, and compare its footer with the limits.

    Raises BadInput for a file that is not readable or breaks a limit.
    """
    import pyarrow.parquet as pq

    stat = os.fstat(descriptor)
    key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    last, footer = _Last.known
    footer = footer if last == key else None
    try:
        # The path opens the file once more, with a position of its own.
        parquet = pq.ParquetFile(
            f"/proc/self/fd/{descriptor}",
            metadata=footer,
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
        )
        if footer is None:
            _check_schema(parquet.schema_arrow, path)
            _check_rows(parquet.metadata, stat.st_size, path)
    except MemoryError:
        raise
    except arrow_errors() as error:
        raise unreadable(path, error) from error
    _Last.known = key, parquet.metadata
    return parquet


def _check_schema(schema: pa.Schema, path: Path) -> None:
    """Compare names, nesting and number of columns with the limits."""
    import pyarrow as pa

    columns = 0
    fields = [(field, 1) for field in schema]
    while fields:
        field, depth = fields.pop()
        columns += 1
        if depth > DEPTH:
            raise BadInput(path, f"has columns nested deeper than {DEPTH} levels")
        if columns > COLUMNS:
            raise BadInput(path, f"has more than {COLUMNS:,} columns")
        kind = field.type
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        fields += [(kind.field(at), depth + 1) for at in range(kind.num_fields)]


def _check_rows(metadata: pq.FileMetaData, size: int, path: Path) -> None:
    groups = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    rows = metadata.num_rows
    if min(groups, default=0) < 0 or sum(groups) != rows:
        rule = f"its row groups have {sum(groups):,} rows, and the footer says {rows:,}"
        raise BadInput(path, f"{rule}: get it again")
    if rows > ANY_ROWS + size:
        raise BadInput(path, f"claims {rows:,} rows in {size:,} bytes: {_BOMB}")


def check_once(names: Sequence[str], once: Sequence[str], path: Path) -> None:
    """Raise BadInput where a file has a column more than once."""
    if repeated := [name for name in once if names.count(name) > 1]:
        count = names.count(repeated[0])
        raise BadInput(path, f"has the column {repeated[0]} {count} times: leave one of them")


class Reading:
    """A context in which rows of a file are read: its damage is a BadInput that names the row.

    row: number of rows before those that are read (default 0); who reads them counts it up.
    """

    def __init__(self, descriptor: int, path: Path, row: int = 0) -> None:
        self._path, self.row = path, row
        self._allowed = max(ANY_RATIO_BYTES, RATIO * os.fstat(descriptor).st_size)

    def takes(self, size: int) -> None:
        """Count the bytes of the next row or rows. Raises BadInput where they are too many."""
        self._allowed -= size
        if self._allowed < 0:
            rule = f"holds more than {RATIO:,} times the bytes of the file up to this row"
            raise BadInput(self._path, f"{rule}: {_BOMB}", self.row + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, MemoryError):
            rule = f"takes too much memory to read in this row or one after it: {_BOMB}"
            raise BadInput(self._path, rule, self.row + 1) from error
        if isinstance(error, arrow_errors()):
            rule = f"is damaged in this row or one after it ({cut(error)}): {cure(error)}"
            raise BadInput(self._path, rule, self.row + 1) from error


def arrow_errors() -> tuple[type[Exception], ...]:
    """What Arrow raises for a damaged file, errors of Python's conversions included."""
    import pyarrow as pa

    # RuntimeError: an exception of its C++ library that has no class in Python.
    known = (OSError, ValueError, TypeError, LookupError, OverflowError, RuntimeError)
    return (pa.ArrowException, *known)


def unreadable(path: Path, error: Exception) -> BadInput:
    """The error for a footer that Arrow does not read."""
    if isinstance(error, UnicodeDecodeError):
        # Arrow decodes names when they are asked for.
        name = error.object[:_SHOWN]
        return BadInput(path, f"has a column whose name is not UTF-8 ({name!r}): rename it")
    return BadInput(path, f"is not a readable Parquet file ({cut(error)}): {cure(error)}")


def cut(error: Exception) -> str:
    """The text of an error of Arrow on one line, not too long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."


def cure(error: Exception) -> str:
    """The advice at the end of an error: to get it again helps only where bytes are damaged."""
    import pyarrow as pa

    if isinstance(error, OSError) and is_of_machine(error):
        return os_reason(error)
    is_encrypted = "crypt" in str(error).lower()
    if is_encrypted or isinstance(error, pa.ArrowNotImplementedError):
        return "write it again without encryption, with a compression and types that Arrow reads"
    return "get it again"
