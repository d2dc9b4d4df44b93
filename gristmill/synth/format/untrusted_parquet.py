"""Reads Parquet files from other writers, in a child process; errors name the file and the row."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from gristmill.contract import BadInput, os_reason
from gristmill.synth.format import parquet_child
from gristmill.untrusted import child
from gristmill.untrusted.files import LinkRule, opened
from gristmill.untrusted.parquet import check_once

if TYPE_CHECKING:
    import pyarrow as pa

RAW_ROW_BYTES: Final = 4 << 20
"""Bytes of the columns that are read of one raw row, at most."""
HARMONY_ROW_BYTES: Final = 32 << 20
"""Bytes of one Harmony row, at most. JSON escapes make of one byte up to six."""
_COPIED: Final = 1 << 20
_SECONDS: Final = 120
_BYTES_PER_SECOND: Final = 1 << 20


class UntrustedParquet:
    """An open Parquet file whose rows are read in a child process.

    once: names of columns that the file may have at most once. Other columns may be there
        several times.
    nulls: names of columns whose nulls `self.nulls` gives, default none.
    links: what happens if the file is a link, for a file of a drop; None (default) for a
        file that a person or our own code named: a link is followed.
    nulls: by column, the nulls in each row group as the footer says, None where it does not.

    Raises BadInput if the file is not a regular file, is not readable Parquet, breaks a
    limit, or has one of these columns more than once.
    """

    def __init__(
        self,
        path: Path,
        once: Sequence[str],
        nulls: Sequence[str] = (),
        links: LinkRule | None = None,
    ) -> None:
        self._path = path
        try:
            self._file = opened(path, links)
        except OSError as error:
            rule = f"is not a readable Parquet file ({os_reason(error)})"
            raise BadInput(path, rule) from error
        try:
            described: parquet_child.Described = child.run(
                parquet_child.describe,
                path,
                list(nulls),
                file=path,
                descriptors=[self._file.fileno()],
            )
            self.schema, self.groups, self.nulls = (
                described.schema,
                described.groups,
                described.nulls,
            )
            check_once(self.names, once, path)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """Names of its columns."""
        return list(self.schema.names)

    @property
    def rows(self) -> int:
        """Number of its rows."""
        return sum(self.groups)

    def batches(
        self,
        size: int,
        columns: Sequence[str] | None = None,
        row_groups: Sequence[int] | None = None,
        row_bytes: int = HARMONY_ROW_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; strings of a dictionary and string views become strings.

        size: number of rows in a batch, at most.
        columns: names of the columns to read; None (default) for all.
        row_groups: numbers of consecutive row groups to read; None (default) for all.
        row_bytes: bytes of one row in these columns, at most; default 32 MiB.

        Raises BadInput if the file is damaged or breaks a limit, with the first row that
        could not be read, and if the number of rows is not the one in the footer.
        """
        import pyarrow as pa

        groups = list(range(len(self.groups)) if row_groups is None else row_groups)
        expected = sum(self.groups[group] for group in groups)
        first_row = sum(self.groups[: min(groups, default=0)])
        names = None if columns is None else list(columns)
        wanted = parquet_child.Wanted(size, names, groups, first_row, row_bytes)
        rows = 0
        batches = child.stream(
            parquet_child.read,
            self._path,
            wanted,
            file=self._path,
            descriptors=[self._file.fileno()],
            seconds=self._seconds(),
        )
        for octets in batches:
            with pa.ipc.open_stream(pa.py_buffer(octets)) as reader:
                batch = reader.read_next_batch()
            rows += len(batch)
            yield batch
        if rows != expected:
            rule = f"holds {rows:,} rows, but its footer says {expected:,}: get it again"
            raise BadInput(self._path, rule)

    def filled(self, size: int, columns: Sequence[str], rows: int | None = None) -> int:
        """Return how many rows have a text in each of some columns that is neither null nor empty.

        rows: how many rows are looked at; None (default) for all.

        Raises BadInput if the file is damaged, or takes too much memory or time.
        """
        groups = list(range(len(self.groups)))
        wanted = parquet_child.Wanted(size, list(columns), groups, 0, HARMONY_ROW_BYTES)
        count: int = child.run(
            parquet_child.filled,
            self._path,
            wanted,
            rows,
            file=self._path,
            descriptors=[self._file.fileno()],
            seconds=self._seconds(),
        )
        return count

    def filled_at_most(self, columns: Sequence[str]) -> int | None:
        """Return what `filled` counts if no text is empty, by the footer; None if it says nothing.

        The footer may be wrong, and a text may be empty. Raises BadInput for a damaged footer.
        """
        count: int | None = child.run(
            parquet_child.filled_at_most,
            self._path,
            list(columns),
            file=self._path,
            descriptors=[self._file.fileno()],
        )
        return count

    def _seconds(self) -> float:
        """Return the time in which all rows must be read."""
        return _SECONDS + os.fstat(self._file.fileno()).st_size / _BYTES_PER_SECOND

    def copy(self, path: Path) -> None:
        """Write the same bytes to another file."""
        with os.fdopen(os.dup(self._file.fileno()), "rb") as source, path.open("xb") as target:
            source.seek(0)
            shutil.copyfileobj(source, target, _COPIED)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
