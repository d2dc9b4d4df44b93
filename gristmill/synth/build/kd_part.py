"""What a worker does: rows of some row groups of a Harmony shard become one part.

How parts are joined to a shard: `kd_shard.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput
from gristmill.synth.build import kd_part_file
from gristmill.synth.format import holdout, parquet, trace
from gristmill.synth.render import documents
from gristmill.synth.render.shapes import Conversation
from gristmill.synth.render.templates import BadRow, Renderer

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH_ROWS: Final = 512
REQUIRED: Final = ("messages_json", "synth_id")
OPTIONAL: Final = ("language", "exercise")


@dataclass(frozen=True)
class Task:
    """One part to make.

    row_groups: of `shard`, consecutive; the first has `first_row` rows before it.
    input_rows: how many rows they have together.
    rows, tokens: caps on what may still come, None for no cap. Each is tested
        before a row, so the last document may pass the cap on tokens.
    bad_rows: how many may be set aside before the build fails.
    """

    shard: Path
    row_groups: Sequence[int]
    first_row: int
    input_rows: int
    valid_fraction: float
    vocabulary: Path
    bad_rows: int
    rows: int | None
    tokens: int | None


@lru_cache(maxsize=4)
def _renderer(vocabulary: Path) -> Renderer:
    return Renderer(vocabulary)


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task to the file `path`.

    Returns its summary: documents, tokens, control_texts, languages, exercises,
    and `bad`, a list of [row, synth_id, rule] of the rows set aside.
    """
    summary: dict[str, Any] = {"documents": 0, "tokens": 0, "control_texts": 0, "bad": []}
    names: dict[str, Counter[str]] = {name: Counter() for name in OPTIONAL}
    with path.open("wb") as file:
        for batch in _batches(task, summary, names):
            kd_part_file.write(file, batch)
    return summary | {f"{name}s": dict(counter) for name, counter in names.items()}


def _batches(
    task: Task, summary: dict[str, Any], names: dict[str, Counter[str]]
) -> Iterator[kd_part_file.Batch]:
    limit = holdout.threshold(task.valid_fraction)
    row = task.first_row
    with open_shard(task.shard) as shard:
        columns = [*REQUIRED, *(name for name in OPTIONAL if name in shard.schema_arrow.names)]
        for batch in parquet.batches(
            task.shard, shard, BATCH_ROWS, columns, task.row_groups, task.first_row
        ):
            at = 0
            while at < len(batch) and not _full(task, summary):
                rows = min(_at_once(task, summary), len(batch) - at)
                yield _made(task, batch.slice(at, rows), row, limit, summary, names)
                at, row = at + rows, row + rows
            if at < len(batch):
                return


def _at_once(task: Task, summary: dict[str, Any]) -> int:
    """How many rows may come before a cap must be tested again."""
    if task.tokens is not None:
        # Where it falls is known only row by row.
        return 1
    # A row that is set aside is no document, so these may be fewer than are due.
    return BATCH_ROWS if task.rows is None else int(task.rows - summary["documents"])


def _full(task: Task, summary: dict[str, Any]) -> bool:
    return (task.rows is not None and summary["documents"] >= task.rows) or (
        task.tokens is not None and summary["tokens"] >= task.tokens
    )


def _made(
    task: Task,
    batch: pa.RecordBatch,
    first_row: int,
    limit: int,
    summary: dict[str, Any],
    names: dict[str, Counter[str]],
) -> kd_part_file.Batch:
    """The documents of a batch, whose first row has `first_row` rows before it."""
    renderer = _renderer(task.vocabulary)
    conversations: dict[str, list[Conversation]] = {name: [] for name in kd_part_file.SPLITS}
    places: dict[str, list[int]] = {name: [] for name in kd_part_file.SPLITS}
    columns, refused = _columns(batch)
    texts, ids = (columns[name] for name in REQUIRED)
    for index, (text, synth_id) in enumerate(zip(texts, ids, strict=True)):
        if index in refused:
            continue
        if text is None or synth_id is None:
            refused[index] = "ValueError: Missing synth_id or messages_json in input row."
            continue
        try:
            conversation = renderer.read(text)
        except BadRow as bad:
            refused[index] = str(bad)
            continue
        name = kd_part_file.SPLITS[holdout.is_valid(str(synth_id), limit)]
        conversations[name].append(conversation)
        places[name].append(index)
    made = {
        name: _assembled(conversations[name], places[name], refused, task.vocabulary)
        for name in kd_part_file.SPLITS
    }
    for index in sorted(refused):
        _set_aside(task, summary, first_row + index + 1, ids[index], refused[index])
    summary["control_texts"] += sum(
        conversation.control_texts for kept in conversations.values() for conversation in kept
    )
    summary["documents"] += sum(len(places[name]) for name in kd_part_file.SPLITS)
    summary["tokens"] += sum(len(made[name].tokens) for name in kd_part_file.SPLITS)
    table = _trace(task, batch, first_row, made, places)
    for name, counter in names.items():
        counter.update("unknown" if v is None else v for v in table.column(name).to_pylist())
    return kd_part_file.Batch(made, table.serialize().to_pybytes())


def _columns(batch: pa.RecordBatch) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """The columns of a batch as Python values, and by index why a row cannot be taken.

    A synth_id that is not UTF-8 is given with escapes: it names the row.
    """
    columns: dict[str, list[Any]] = {}
    refused: dict[int, str] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns[name], broken = parquet.values(column)
        for index, error in broken.items():
            refused[index] = f"UnicodeDecodeError: {name} is not UTF-8: {error}"
            if name == "synth_id":
                columns[name][index] = error.object.decode(errors="backslashreplace")
    return columns, refused


def _assembled(
    conversations: list[Conversation], places: list[int], refused: dict[int, str], vocabulary: Path
) -> documents.Documents:
    """The documents of a split. Those that cannot be encoded move to `refused`."""
    try:
        return documents.assemble(conversations, vocabulary)
    except ValueError:
        # Told without its text: which one it was must be found by trying each.
        for at in reversed(range(len(places))):
            try:
                documents.assemble(conversations[at : at + 1], vocabulary)
            except ValueError as error:
                refused[places[at]] = f"{type(error).__name__}: {error}"
                del conversations[at], places[at]
        return documents.assemble(conversations, vocabulary)


def _set_aside(task: Task, summary: dict[str, Any], row: int, synth_id: object, rule: str) -> None:
    if len(summary["bad"]) >= task.bad_rows:
        raise BadInput(
            task.shard,
            f"synth_id {synth_id!r}: {rule} (correct the row, or let the config's `bad_rows` "
            f"set such rows aside, now {task.bad_rows} at most)",
            row,
        )
    summary["bad"].append([row, None if synth_id is None else str(synth_id), rule])


def _trace(
    task: Task,
    batch: pa.RecordBatch,
    first_row: int,
    made: dict[str, documents.Documents],
    places: dict[str, list[int]],
) -> pa.RecordBatch:
    """Trace rows of a batch, in the order of the input rows."""
    import pyarrow as pa

    kept = np.array(places["train"] + places["valid"], dtype=np.int64)
    taken = batch.take(pa.array(kept))
    runs = np.concatenate([made[name].runs for name in kd_part_file.SPLITS])
    counts = np.concatenate([made[name].run_counts for name in kd_part_file.SPLITS])
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    # Where a run begins in its document: what is before it, less what is before the document.
    before = np.cumsum(runs, dtype=np.int64) - runs
    offsets = (before - np.repeat(before[bounds[:-1]], counts)).astype(np.int32)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([name for name in kd_part_file.SPLITS for _ in places[name]], pa.string()),
            pa.array(
                np.concatenate([np.arange(len(places[name])) for name in kd_part_file.SPLITS])
            ),
            pa.repeat(pa.scalar(task.shard.name), len(kept)),
            pa.array(first_row + kept + 1),
            taken.column("synth_id").cast(pa.string()),
            *(
                taken.column(name).cast(pa.string())
                if name in taken.schema.names
                else pa.nulls(len(kept), pa.string())
                for name in OPTIONAL
            ),
            pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), pa.array(offsets)),
        ],
        schema=trace.schema(),
    )
    return rows.take(pa.array(np.argsort(kept)))


def open_shard(shard: Path) -> pq.ParquetFile:
    """Open a Harmony shard. BadInput where it is no Parquet, lacks a column or has it twice."""
    file = parquet.opened(shard, [*REQUIRED, *OPTIONAL])
    missing = [name for name in REQUIRED if name not in file.schema_arrow.names]
    if missing:
        raise BadInput(shard, f"has no column {', '.join(missing)}: is it a Harmony shard?")
    return file


def wrong_types(schema: pa.Schema) -> Iterator[str]:
    """Yield what is wrong with the types of a Harmony shard's columns.

    Messages are strings, in any of Arrow's forms. An id may also be an integer,
    which is written in one way only. What else is read must be no list, struct
    or bytes.
    """
    import pyarrow as pa

    for field in schema:
        kind = field.type
        allowed = field.name not in (*REQUIRED, *OPTIONAL) or parquet.is_text(kind)
        if field.name == "synth_id":
            allowed |= pa.types.is_integer(kind)
        elif field.name in OPTIONAL:
            allowed |= pa.types.is_primitive(kind)
        if not allowed:
            yield f"{field.name} is {kind}, not a string"
