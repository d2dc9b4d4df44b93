"""Finds the raw row that became a row of a Harmony shard, without reading the rows before it.

A Harmony shard has the rows of its raw files in order, without those that lack a text. Footers say
in which row group a row can be at the earliest; from there on, ids are compared.
See also `origins.py`. Source: `docs/publishing.md#tracing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput
from gristmill.synth.format import parquet
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ID: Final = "synth_id"
_BATCH_ROWS: Final = 1000
_LONGEST_GAP: Final = 64
"""Raw rows without a text that may be between two neighbours, at most; else rows are counted."""


@dataclass(frozen=True)
class Wanted:
    """A row of a Harmony shard.

    row: its number, from 0.
    before: synth_ids of some rows before it, the nearest first.
    synth_id: its own; None where it has none.
    after: synth_ids of some rows after it, the nearest first.
    """

    row: int
    before: Sequence[bytes | None]
    synth_id: bytes | None
    after: Sequence[bytes | None]


def by_ids(files: Iterable[Path], wanted: Wanted) -> tuple[int, int] | None:
    """Return the number of the raw file of a Harmony row, and its row in it, both from 0.

    files: the raw files of the shard, in order; those behind the row's are not asked for.

    Reads the ids of few row groups, and no texts. Returns None where ids do not tell the row from
    others; then `by_counting` does. The caller compares the texts.
    """
    # Rows that have all texts: exactly so many, while `exact`; else at most so many.
    most, exact = 0, True
    for number, file in enumerate(files):
        first = 0
        with parquet.opened(file, [*raw.TEXTS, ID]) as shard:
            for group in range(shard.num_row_groups):
                rows = shard.metadata.row_group(group).num_rows
                has_all = has_all_texts(shard, group)
                kept = rows if has_all else rows - _fewest_without(shard, group)
                if most + kept > wanted.row:
                    if exact and has_all:
                        return number, first + wanted.row - most
                    inside = _with_id(file, shard, group, wanted, max(0, wanted.row - most))
                    if inside is None:
                        return None
                    if inside >= 0:
                        return number, first + inside
                most, exact = most + kept, exact and has_all
                first += rows
    return None


def by_counting(files: Iterable[Path], wanted: Wanted) -> tuple[int, int] | None:
    """Return the same by counting the raw rows that have all texts; None where there are too few.

    Row groups that have all texts by their footer are not read.
    """
    return _counted(files, wanted.row, by_statistics=True)


def by_reading(files: Iterable[Path], wanted: Wanted) -> tuple[int, int] | None:
    """Return the same as `by_counting`, but read every row group up to the row."""
    return _counted(files, wanted.row, by_statistics=False)


def _counted(files: Iterable[Path], left: int, by_statistics: bool) -> tuple[int, int] | None:
    for number, file in enumerate(files):
        first = 0
        with parquet.opened(file, raw.TEXTS) as shard:
            for group in range(shard.num_row_groups):
                rows = shard.metadata.row_group(group).num_rows
                if by_statistics and has_all_texts(shard, group):
                    if left < rows:
                        return number, first + left
                    left -= rows
                else:
                    for inside in _kept(file, shard, group):
                        if left == 0:
                            return number, first + inside
                        left -= 1
                first += rows
    return None


def one_row(
    file: Path, shard: pq.ParquetFile, group: int, inside: int, columns: Sequence[str]
) -> dict[str, Any]:
    """Return columns of one row.

    group, inside: its row group, and its number in it, both from 0.

    Raises BadInput where the row group is damaged.
    """
    passed = 0
    for batch in parquet.batches(file, shard, _BATCH_ROWS, columns, [group]):
        if inside < passed + len(batch):
            (row,) = batch.slice(inside - passed, 1).to_pylist()
            return dict(row)
        passed += len(batch)
    raise BadInput(file, f"row group {group} ends before its row {inside}")


def ids_of(file: Path, shard: pq.ParquetFile, group: int) -> pa.Array | None:
    """Return the synth_ids of a row group as bytes; None where it has none that compare.

    group: its number, from 0.
    """
    import pyarrow as pa

    if ID not in shard.schema_arrow.names:
        return None
    batches = [*parquet.batches(file, shard, 1 << 16, [ID], [group])]
    try:
        # No id need be UTF-8.
        arrays = [batch.column(0).cast(pa.large_binary()) for batch in batches]
    except pa.ArrowException:
        return None
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, pa.large_binary())


def _with_id(
    file: Path, shard: pq.ParquetFile, group: int, wanted: Wanted, least: int
) -> int | None:
    """The row in a row group; -1 where it is not in it, None where ids do not tell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = ids_of(file, shard, group)
    if ids is None or wanted.synth_id is None:
        return None
    equal = pc.fill_null(pc.equal(ids, pa.scalar(wanted.synth_id, pa.large_binary())), False)
    places = [place for place in pc.indices_nonzero(equal).to_pylist() if place >= least]
    if not places:
        return -1
    (place, *others) = places
    if others:
        return None
    before = ids.slice(max(0, place - _LONGEST_GAP), min(place, _LONGEST_GAP)).to_pylist()[::-1]
    after = ids.slice(place + 1, _LONGEST_GAP).to_pylist()
    fits = _follow(before, wanted.before) and _follow(after, wanted.after)
    return place if fits else -1


def _follow(rows: Sequence[bytes | None], neighbours: Sequence[bytes | None]) -> bool:
    """Whether neighbours come in this order among the rows, as far as the rows go."""
    at = 0
    for neighbour in neighbours:
        while at < len(rows) and rows[at] != neighbour:
            at += 1
        if at == len(rows):
            # Only the row group's own rows are known: the neighbour may be beyond them.
            return len(rows) < _LONGEST_GAP
        at += 1
    return True


def has_all_texts(shard: pq.ParquetFile, group: int) -> bool:
    """Return whether the footer says that no text of a row group is null or empty.

    group: its number, from 0.
    """
    for statistics in _statistics(shard, group):
        if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
            return False
        try:
            if not statistics.min:
                return False
        except UnicodeDecodeError:
            return False
    return True


def _fewest_without(shard: pq.ParquetFile, group: int) -> int:
    """How many rows lack a text at least: the most nulls of one of the texts."""
    counts = (each.null_count for each in _statistics(shard, group) if each is not None)
    return max((count for count in counts if count is not None), default=0)


def _statistics(shard: pq.ParquetFile, group: int) -> Iterator[pq.Statistics | None]:
    leaves = {shard.schema.column(leaf).path: leaf for leaf in range(len(shard.schema.names))}
    for name in raw.TEXTS:
        yield parquet.statistics(shard, group, leaves[name]) if name in leaves else None


def _kept(file: Path, shard: pq.ParquetFile, group: int) -> Iterator[int]:
    """The rows of a row group, from 0, that have all texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    passed = 0
    for batch in parquet.batches(file, shard, _BATCH_ROWS, list(raw.TEXTS), [group]):
        kept: Any = None
        for name in raw.TEXTS:
            column = batch.column(name).cast(pa.large_binary(), safe=False)
            full = pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
            kept = full if kept is None else pc.and_(kept, full)
        yield from (
            passed + int(index) for index in kept.to_numpy(zero_copy_only=False).nonzero()[0]
        )
        passed += len(batch)
