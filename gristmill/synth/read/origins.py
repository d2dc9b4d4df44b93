"""From a document or a Harmony row to the raw SYNTH row: file, row, and bytes of its columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.corpora.split_file import files
from gristmill.families import Request
from gristmill.provenance import trace_inputs
from gristmill.provenance.record import Input
from gristmill.provenance.trace_inputs import Edge, NotTraced, Origin, Row, Source, Steps
from gristmill.synth import raw
from gristmill.synth.format import parquet
from gristmill.synth.format.trace import trace
from gristmill.takedowns.left_out import rows_in

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ID: Final = "synth_id"
_BATCH_ROWS: Final = 1000
_LONGEST_GAP: Final = 64
"""Raw rows without a text that may be between two neighbours, at most; else rows are counted."""


@dataclass(frozen=True)
class Wanted:
    """A row of a Harmony shard."""

    row: int
    before: Sequence[bytes | None]
    synth_id: bytes | None
    after: Sequence[bytes | None]


Gone = Mapping[Path, Collection[int]]
"""Rows that were forgotten, by file, from 1."""
_NONE: Final[Gone] = {}


def by_ids(files: Iterable[Path], wanted: Wanted, gone: Gone = _NONE) -> tuple[int, int] | None:
    """Return the number of the raw file of a Harmony row, and its row in it, both from 0."""
    # Rows that have all texts: exactly so many, while `exact`; else at most so many.
    most, exact = 0, not gone
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


def by_counting(
    files: Iterable[Path], wanted: Wanted, gone: Gone = _NONE
) -> tuple[int, int] | None:
    """The same by counting raw rows that have all texts, as footers lie; None for too few."""
    left = wanted.row
    for number, file in enumerate(files):
        first = 0
        with parquet.opened(file, raw.TEXTS) as shard:
            for group in range(shard.num_row_groups):
                for inside in _kept(file, shard, group):
                    if first + inside + 1 in gone.get(file, ()):
                        continue
                    if left == 0:
                        return number, first + inside
                    left -= 1
                first += shard.metadata.row_group(group).num_rows
    return None


def one_row(
    file: Path, shard: pq.ParquetFile, group: int, inside: int, columns: Sequence[str]
) -> dict[str, Any]:
    """Return columns of one row."""
    passed = 0
    for batch in parquet.batches(file, shard, _BATCH_ROWS, columns, [group]):
        if inside < passed + len(batch):
            (row,) = batch.slice(inside - passed, 1).to_pylist()
            return dict(row)
        passed += len(batch)
    raise BadInput(file, f"row group {group} ends before its row {inside}")


def ids_of(file: Path, shard: pq.ParquetFile, group: int) -> pa.Array | None:
    """Return the synth_ids of a row group as bytes; None where it has none that compare."""
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
    """Return whether the footer says that no text of a row group is null or empty."""
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


HARMONY: Final = "synth/harmony"
TALKS: Final = "chat/conversations"
_SHARD: Final = "synth_harmony_shard_{}.parquet"
_IMPORTED: Final = "synth_harmony_shard_"
_NEIGHBOURS: Final = 8
_TRACED: Final = ("messages_json", "synth_id")


def document_origins(
    folder: Path, shard: str | None, split: str, document: int
) -> Iterator[contract.Trace]:
    """Trace a document of a dataset to its raw row. shard: None where the folder is its own.

    Yields the document's trace, then the raw row. Raises as `trace.trace`.
    """
    return trace_inputs.walk(EDGES, Row(DOCUMENTS, folder, (shard, split, document)))


def row_origins(folder: Path, shard: str, row: int) -> Iterator[contract.Trace]:
    """Trace a row of a Harmony shard to its raw row. Raises BadInput where it is not there."""
    return trace_inputs.walk(EDGES, Row(HARMONY, folder, (shard, row, None)))


def _document(folder: Path, place: tuple[str | None, str, int]) -> Steps:
    """The edge of a document: the row of Harmony or of conversations. Its shard may be its own."""
    shard, split, document = place
    own = trace_inputs.source(folder) if shard is None else None
    number = shard if own is None else str(own.record.partition).rpartition("__")[2]
    yield (found := trace(folder, str(number), split, document))
    made = own or trace_inputs.source(folder, shard)
    if any(item.asset == TALKS for item in made.inputs):
        yield Row(TALKS, made.made_from(TALKS).folder, found.row)
    else:
        row = (str(made.record.partition), found.row - 1, found.synth_id)
        yield Row(HARMONY, made.made_from(HARMONY).folder, row)


def _row(folder: Path, place: tuple[str, int, str | None]) -> Steps:
    """The edge of a row of Harmony: the raw row. Its id is that of a document, if it is given."""
    shard, row, synth_id = place
    file = folder / _SHARD.format(shard)
    if not file.is_file():
        raise BadInput(file, f"there is no shard {shard}")
    with parquet.opened(file, _TRACED) as shard_file:
        columns = [name for name in _TRACED if name in shard_file.schema_arrow.names]
        row_of = one_row(file, shard_file, *_group_of(file, shard_file, row), columns)
    if synth_id is None:
        own = {name: value for name, value in row_of.items() if name == ID}
        yield Origin({"input": file.name, "row": row + 1, **own})
    harmony = trace_inputs.source(folder, shard)
    if synth_id not in (None, str(row_of.get("synth_id"))):
        rule = f"row {row + 1} of {harmony.title} is not {synth_id}"
        raise NotTraced(f"{rule}: build the shard again")
    yield _raw(harmony, row, row_of)


def _talk(folder: Path, row: int) -> Steps:
    """The edge of a row of conversations, from 1: the raw row."""
    from gristmill.exports.messages import row_at  # loads Arrow

    talks = trace_inputs.source(folder)
    drop, _, shard = str(talks.record.partition).rpartition("__")
    _, _, values = row_at(files(folder / f"shard_{shard}.parquet"), row - 1)
    item = talks.raw_input(f"drops/chat/{drop}/{values['file']}")
    yield Origin({**talks.raw_facts(item), "raw_row": values["row"]})


DOCUMENTS: Final = "a document"
EDGES: Final[Mapping[str, Edge]] = {DOCUMENTS: _document, HARMONY: _row, TALKS: _talk}
"""From a row to the rows that it was made from."""


def _wanted(file: Path, row: int) -> Wanted:
    """A row of a Harmony shard, counted from 0, among its neighbours."""
    with parquet.opened(file, _TRACED) as shard:
        group, inside = _group_of(file, shard, row)
        ids = ids_of(file, shard, group)
    if ids is None:
        return Wanted(row, [], None, [])
    before = ids.slice(max(0, inside - _NEIGHBOURS), min(inside, _NEIGHBOURS)).to_pylist()[::-1]
    own, *after = ids.slice(inside, _NEIGHBOURS + 1).to_pylist()
    return Wanted(row, before, own, after)


def _group_of(file: Path, shard: pq.ParquetFile, row: int) -> tuple[int, int]:
    """The row group of a row, and the number of the row in it, both from 0."""
    left = row
    for group in range(shard.num_row_groups):
        rows = shard.metadata.row_group(group).num_rows
        if left < rows:
            return group, left
        left -= rows
    raise BadInput(file, f"has {shard.metadata.num_rows} rows, no row {row}; rows count from 0")


def _raw(harmony: Source, row: int, row_of: dict[str, Any]) -> Origin:
    """The raw row of a Harmony row: by footers and ids, else by counting the rows that are kept."""
    items, gone = harmony.raw_inputs(), dict[Path, set[int]]()
    if sum(item.data_version is None for item in harmony.inputs) > len(items):
        gone = rows_in(harmony.root, (harmony.root / str(items[0].path)).parent)
    if any(Path(str(item.path)).name.startswith(_IMPORTED) for item in items):
        for number in sorted(gone.get(harmony.root / str(items[0].path), ())):
            row += number <= row + 1
        return _place(harmony, items[0], row, list(_TRACED))
    wanted = _wanted(harmony.folder / _SHARD.format(harmony.record.partition), row)
    for search in (by_ids, by_counting):
        # A file is compared with its record when it is asked for.
        found = search(map(harmony.raw_file, items), wanted, gone)
        if found is not None and _is_same(harmony.raw_file(items[found[0]]), found[1], row_of):
            return _place(harmony, items[found[0]], found[1], list(raw.TEXTS))
    raise NotTraced(f"no raw row of {harmony.title} has the texts of row {row + 1}: build it again")


def _is_same(file: Path, row: int, row_of: dict[str, Any]) -> bool:
    """Whether a raw row has the texts of a Harmony row."""
    with parquet.opened(file, raw.TEXTS) as shard:
        texts = one_row(file, shard, *_group_of(file, shard, row), raw.TEXTS)
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
                pages = (column.dictionary_page_offset, column.data_page_offset)
                begin = min(offset for offset in pages if offset)
                facts[f"raw_bytes_of_{column.path_in_schema}"] = (
                    f"{begin}-{begin + column.total_compressed_size}"
                )
    return Origin(facts)


def traced(asset: str, request: Request) -> Iterator[contract.Trace]:
    """Where a Harmony row or a document came from; shard 00 and train where options name none."""
    shard, split = request.options.get("shard") or "00", request.options.get("split") or "train"
    if asset == HARMONY:
        return row_origins(request.path, shard, request.number)
    number = shard if asset == "synth/kd_shards" else None
    return document_origins(request.path, number, split, request.number)
