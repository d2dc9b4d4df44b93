"""From a document or a Harmony row to the raw SYNTH row: file, row, and bytes of its columns.

A Harmony shard has the rows of its raw files in order, without those that lack a text; the place
of a row follows from the raw files. See also `trace.py`: a document to its Harmony row.
Source: `docs/formats/synth.md#row-filter`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.provenance.record import Input
from gristmill.provenance.trace_inputs import NotTraced, Origin, Source, notes, source
from gristmill.synth.format import parquet
from gristmill.synth.raw import files as raw
from gristmill.synth.read.trace import trace

if TYPE_CHECKING:
    import pyarrow.parquet as pq

HARMONY: Final = "synth/harmony"
_SHARD: Final = "synth_harmony_shard_{}.parquet"
_IMPORTED: Final = "synth_harmony_shard_"
_BATCH_ROWS: Final = 1000
_TRACED: Final = ("messages_json", "synth_id")


def document_origins(
    folder: Path, shard: str, split: str, document: int
) -> Iterator[contract.Trace]:
    """Trace a document of a Megatron dataset to its raw row.

    folder, shard, split, document: as `trace.trace` takes them.

    Yields the document's trace, then the raw row. Raises as `trace.trace`.
    """
    found = trace(folder, shard, split, document)
    yield found
    yield from notes(_document(folder, shard, found.row - 1, found.synth_id))


def row_origins(folder: Path, shard: str, row: int) -> Iterator[contract.Trace]:
    """Trace a row of a Harmony shard to its raw row.

    folder: of the Harmony dataset.
    shard: number of the shard in two digits, as "00".
    row: number of the row, from 0.

    Raises BadInput where there is no such shard or row.
    """
    file = folder / _SHARD.format(shard)
    if not file.is_file():
        raise BadInput(file, f"there is no shard {shard}")
    row_of = _harmony_row(file, row)
    facts: dict[str, object] = {"input": file.name, "row": row + 1}
    if "synth_id" in row_of:
        facts["synth_id"] = row_of["synth_id"]
    yield Origin(facts)
    yield from notes(_harmony(folder, shard, row, row_of))


def _document(folder: Path, shard: str, row: int, synth_id: str) -> Iterator[contract.Trace]:
    harmony = source(folder, shard).made_from(HARMONY)
    row_of = _harmony_row(harmony.folder / _SHARD.format(shard), row)
    if str(row_of.get("synth_id")) != synth_id:
        raise NotTraced(
            f"row {row + 1} of {harmony.title} is not {synth_id}: build the shard again"
        )
    yield from _raw(harmony, row, row_of)


def _harmony(folder: Path, shard: str, row: int, row_of: dict[str, Any]) -> Iterator[Origin]:
    yield from _raw(source(folder, shard), row, row_of)


def _harmony_row(file: Path, row: int) -> dict[str, Any]:
    """The messages and the id of a row, counted from 0."""
    with parquet.opened(file, _TRACED) as shard:
        columns = [name for name in _TRACED if name in shard.schema_arrow.names]
        group, inside = _group_of(file, shard, row)
        return _one_row(file, shard, group, inside, columns)


def _group_of(file: Path, shard: pq.ParquetFile, row: int) -> tuple[int, int]:
    """The row group of a row, and the number of the row in it, both from 0."""
    left = row
    for group in range(shard.num_row_groups):
        rows = shard.metadata.row_group(group).num_rows
        if left < rows:
            return group, left
        left -= rows
    raise BadInput(file, f"has {shard.metadata.num_rows} rows, no row {row}; rows count from 0")


def _one_row(
    file: Path, shard: pq.ParquetFile, group: int, inside: int, columns: list[str]
) -> dict[str, Any]:
    passed = 0
    for batch in parquet.batches(file, shard, _BATCH_ROWS, columns, [group]):
        if inside < passed + len(batch):
            (row,) = batch.slice(inside - passed, 1).to_pylist()
            return dict(row)
        passed += len(batch)
    raise BadInput(file, f"row group {group} ends before its row {inside}")


def _raw(harmony: Source, row: int, row_of: dict[str, Any]) -> Iterator[Origin]:
    """The raw row of a Harmony row, by counting the rows that the filter keeps."""
    items = harmony.raw_inputs()
    if any(Path(str(item.path)).name.startswith(_IMPORTED) for item in items):
        yield _place(harmony, items[0], row, list(_TRACED))
        return
    for by_statistics in (True, False):
        # A footer can be wrong about its column: then every text is read.
        found = _count(harmony, items, row, by_statistics)
        if found is not None and _is_same(harmony, *found, row_of):
            yield _place(harmony, *found, list(raw.TEXTS))
            return
    raise NotTraced(f"no raw row of {harmony.title} has the texts of row {row + 1}: build it again")


def _count(
    harmony: Source, items: list[Input], row: int, by_statistics: bool
) -> tuple[Input, int] | None:
    """The raw file and row, from 0, of a Harmony row; None where the files have fewer rows."""
    left = row
    for item in items:
        file = harmony.raw_file(item)
        first = 0
        with parquet.opened(file, raw.TEXTS) as shard:
            for group in range(shard.num_row_groups):
                rows = shard.metadata.row_group(group).num_rows
                if by_statistics and _has_all_texts(shard, group):
                    if left < rows:
                        return item, first + left
                    left -= rows
                else:
                    for inside in _kept(file, shard, group):
                        if left == 0:
                            return item, first + inside
                        left -= 1
                first += rows
    return None


def _has_all_texts(shard: pq.ParquetFile, group: int) -> bool:
    """Whether the footer says that no text of a row group is null or empty."""
    metadata = shard.metadata.row_group(group)
    leaves = {shard.schema.column(leaf).path: leaf for leaf in range(len(shard.schema.names))}
    for name in raw.TEXTS:
        statistics = metadata.column(leaves[name]).statistics if name in leaves else None
        if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
            return False
        try:
            if not statistics.min:
                return False
        except UnicodeDecodeError:
            return False
    return True


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


def _is_same(harmony: Source, item: Input, row: int, row_of: dict[str, Any]) -> bool:
    """Whether a raw row has the texts of a Harmony row."""
    file = harmony.raw_file(item)
    with parquet.opened(file, raw.TEXTS) as shard:
        group, inside = _group_of(file, shard, row)
        texts = _one_row(file, shard, group, inside, list(raw.TEXTS))
    messages = str(row_of["messages_json"])
    return all(json.dumps({"text": texts[name]})[1:-1] in messages for name in raw.TEXTS)


def _place(harmony: Source, item: Input, row: int, columns: list[str]) -> Origin:
    """The facts of a raw row: its file, its number, its row group and the bytes of its columns."""
    file = harmony.raw_file(item)
    facts = harmony.raw_facts(item)
    with parquet.opened(file, []) as shard:
        group, inside = _group_of(file, shard, row)
        metadata = shard.metadata.row_group(group)
        facts |= {"raw_row": row + 1, "raw_row_group": group, "raw_row_in_group": inside + 1}
        for leaf in range(metadata.num_columns):
            column = metadata.column(leaf)
            if column.path_in_schema in columns:
                begin = _begin(column)
                facts[f"raw_bytes_of_{column.path_in_schema}"] = (
                    f"{begin}-{begin + column.total_compressed_size}"
                )
    return Origin(facts)


def _begin(column: pq.ColumnChunkMetaData) -> int:
    offsets = [column.dictionary_page_offset, column.data_page_offset]
    return int(min(offset for offset in offsets if offset))
