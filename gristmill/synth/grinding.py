"""What a worker does: rows of some row groups of a Harmony shard become one part.

How parts are joined to a shard belongs to `kd.py`.
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
from gristmill.parts import PartStore
from gristmill.synth import blocks, documents, split, trace
from gristmill.synth.plain import BadRow, Conversation, Renderer

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BLOCK_ROWS: Final = 512
REQUIRED: Final = ("messages_json", "synth_id")
OPTIONAL: Final = ("language", "exercise")


@dataclass(frozen=True)
class Task:
    """One part to make.

    row_groups: of `shard`, consecutive; the first has `first_row` rows before it.
    rows, tokens: caps on what may still come, None for no cap. Each is tested
        before a row, so the last document may pass the cap on tokens.
    bad_rows: how many may be set aside before the build fails.
    """

    name: str
    shard: Path
    row_groups: Sequence[int]
    first_row: int
    valid_fraction: float
    vocabulary: Path
    bad_rows: int
    rows: int | None
    tokens: int | None
    parts: PartStore


@lru_cache(maxsize=4)
def _renderer(vocabulary: Path) -> Renderer:
    return Renderer(vocabulary)


def grind(task: Task) -> dict[str, Any]:
    """Make the part of a task, unless it is there from a build that was killed.

    Returns its summary: documents, tokens, control_texts, languages, exercises,
    and `bad`, a list of [row, synth_id, rule] of the rows set aside.
    """
    if (summary := task.parts.finished(task.name)) is not None:
        return summary
    with task.parts.writing(task.name) as (path, summary):
        summary |= {"documents": 0, "tokens": 0, "control_texts": 0, "bad": []}
        names: dict[str, Counter[str]] = {name: Counter() for name in OPTIONAL}
        with path.open("wb") as file:
            for block in _blocks(task, summary, names):
                blocks.write(file, block)
        summary |= {f"{name}s": dict(counter) for name, counter in names.items()}
        return summary


def _blocks(
    task: Task, summary: dict[str, Any], names: dict[str, Counter[str]]
) -> Iterator[blocks.Block]:
    limit = split.threshold(task.valid_fraction)
    row = task.first_row
    with open_shard(task.shard) as parquet:
        columns = [*REQUIRED, *(name for name in OPTIONAL if name in parquet.schema_arrow.names)]
        for batch in parquet.iter_batches(
            BLOCK_ROWS, row_groups=list(task.row_groups), columns=columns, use_threads=False
        ):
            at = 0
            while at < len(batch) and not _full(task, summary):
                rows = min(_at_once(task, summary), len(batch) - at)
                yield _block(task, batch.slice(at, rows), row, limit, summary, names)
                at, row = at + rows, row + rows
            if at < len(batch):
                return


def _at_once(task: Task, summary: dict[str, Any]) -> int:
    """How many rows may come before a cap must be tested again."""
    if task.tokens is not None:
        # Where it falls is known only row by row.
        return 1
    # A row that is set aside is no document, so these may be fewer than are due.
    return BLOCK_ROWS if task.rows is None else int(task.rows - summary["documents"])


def _full(task: Task, summary: dict[str, Any]) -> bool:
    return (task.rows is not None and summary["documents"] >= task.rows) or (
        task.tokens is not None and summary["tokens"] >= task.tokens
    )


def _block(
    task: Task,
    batch: pa.RecordBatch,
    first_row: int,
    limit: int,
    summary: dict[str, Any],
    names: dict[str, Counter[str]],
) -> blocks.Block:
    """The documents of a batch, whose first row has `first_row` rows before it."""
    renderer = _renderer(task.vocabulary)
    conversations: dict[str, list[Conversation]] = {name: [] for name in blocks.SPLITS}
    places: dict[str, list[int]] = {name: [] for name in blocks.SPLITS}
    texts = batch.column("messages_json").to_pylist()
    ids = batch.column("synth_id").to_pylist()
    for index, (text, synth_id) in enumerate(zip(texts, ids, strict=True)):
        try:
            if text is None or synth_id is None:
                raise BadRow("ValueError: Missing synth_id or messages_json in input row.")
            conversation = renderer.read(text)
        except BadRow as bad:
            _set_aside(task, summary, first_row + index + 1, synth_id, str(bad))
            continue
        summary["control_texts"] += conversation.control_texts
        name = blocks.SPLITS[split.is_valid(str(synth_id), limit)]
        conversations[name].append(conversation)
        places[name].append(index)
    made = {
        name: documents.assemble(conversations[name], task.vocabulary) for name in blocks.SPLITS
    }
    summary["documents"] += sum(len(places[name]) for name in blocks.SPLITS)
    summary["tokens"] += sum(len(made[name].tokens) for name in blocks.SPLITS)
    table = _trace(task, batch, first_row, made, places)
    for name, counter in names.items():
        counter.update("unknown" if v is None else v for v in table.column(name).to_pylist())
    return blocks.Block(made, table.serialize().to_pybytes())


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
    """Trace rows of a block, in the order of the input rows."""
    import pyarrow as pa

    kept = np.array(places["train"] + places["valid"], dtype=np.int64)
    taken = batch.take(pa.array(kept))
    runs = np.concatenate([made[name].runs for name in blocks.SPLITS])
    counts = np.concatenate([made[name].run_counts for name in blocks.SPLITS])
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    # Where a run begins in its document: what is before it, less what is before the document.
    before = np.cumsum(runs, dtype=np.int64) - runs
    offsets = (before - np.repeat(before[bounds[:-1]], counts)).astype(np.int32)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([name for name in blocks.SPLITS for _ in places[name]], pa.string()),
            pa.array(np.concatenate([np.arange(len(places[name])) for name in blocks.SPLITS])),
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
    """Open a Harmony shard. BadInput where it is no Parquet or lacks a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(shard, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(shard, f"is not a readable Parquet file ({error}): copy it again") from error
    missing = [name for name in REQUIRED if name not in parquet.schema_arrow.names]
    if missing:
        raise BadInput(shard, f"has no column {', '.join(missing)}: is it a Harmony shard?")
    return parquet
