"""What a worker does: rows of some row groups of a Harmony shard become one part.

See also `kd_join.py`: the parts to the files of a shard.
Source: `docs/formats/synth.md#part-files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput
from gristmill.hashing import HashedFile
from gristmill.run.parts import SHA256
from gristmill.synth.build import kd_part_file
from gristmill.synth.build.harmony_shard import OPTIONAL, REQUIRED, no_text_form, open_shard
from gristmill.synth.build.kd_part_file import SPLITS
from gristmill.synth.build.kd_part_trace import trace_rows
from gristmill.synth.format import holdout, parquet
from gristmill.synth.render import documents
from gristmill.synth.render.shapes import Conversation
from gristmill.synth.render.templates import BadRow, Renderer

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 512


@dataclass(frozen=True)
class Task:
    """One part to make.

    shard: the Harmony shard.
    row_groups: consecutive row groups of it.
    first_row: number of rows before the first of them.
    input_rows: number of rows in all of them.
    valid_fraction: from 0 to 1.
    vocabulary: the vocabulary file.
    bad_rows: how many rows may be set aside before the build fails.
    rows, tokens: the rest of each cap, None for no cap. A cap is tested before
        each row, so the last document may exceed the cap on tokens.
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


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task.

    task: the rows, and how to render them.
    path: file to write.

    Returns its summary: documents, tokens, control_texts, languages, exercises, its hash
    and `bad`, a list of [row, synth_id, rule] of the rows set aside.
    Raises BadInput for one bad row more than `task.bad_rows`.
    Source: `docs/formats/synth.md#part-files`.
    """
    part = _Part(task)
    with HashedFile(path) as file:
        for batch in part.batches():
            kd_part_file.write(file, batch)
    names = {f"{name}s": dict(counter) for name, counter in part.names.items()}
    return part.summary | names | {SHA256: file.sha256}


def too_many_bad_rows(
    shard: Path, row: int, synth_id: str | None, rule: str, bad_rows: int
) -> BadInput:
    """Return the error for a bad row that may not be set aside.

    shard: the Harmony shard.
    row: of the shard, from 1.
    synth_id: of the row, or None.
    rule: that the row breaks.
    bad_rows: how many rows may be set aside.
    """
    return BadInput(
        shard,
        f"synth_id {synth_id!r}: {rule} (correct the row, or set such rows aside with the "
        f"setting `bad_rows`, which is {bad_rows})",
        row,
    )


@lru_cache(maxsize=4)
def _renderer(vocabulary: Path) -> Renderer:
    return Renderer(vocabulary)


@dataclass
class _Sorted:
    """The rows of a batch: conversations of each split and their places, and refused rows."""

    ids: Sequence[Any]
    refused: dict[int, str]
    conversations: dict[str, list[Conversation]] = field(
        default_factory=lambda: {split: [] for split in SPLITS}
    )
    places: dict[str, list[int]] = field(default_factory=lambda: {split: [] for split in SPLITS})


class _Part:
    """Renders the rows of a task batch by batch, and counts them."""

    def __init__(self, task: Task) -> None:
        self.summary: dict[str, Any] = {"documents": 0, "tokens": 0, "control_texts": 0, "bad": []}
        self.names: dict[str, Counter[str]] = {name: Counter() for name in OPTIONAL}
        self._task = task
        self._threshold = holdout.threshold(task.valid_fraction)
        self._renderer = _renderer(task.vocabulary)

    def batches(self) -> Iterator[kd_part_file.Batch]:
        """Yield the documents of the rows up to the caps, at most `BATCH_ROWS` rows together."""
        task, row = self._task, self._task.first_row
        with open_shard(task.shard) as shard:
            columns = [*REQUIRED, *(name for name in OPTIONAL if name in shard.names)]
            for rows_read in shard.batches(BATCH_ROWS, columns, task.row_groups):
                batch = _with_texts(rows_read, task.shard, row)
                at = 0
                while at < len(batch) and not self._full():
                    rows = min(self._rows_before_cap(), len(batch) - at)
                    yield self._batch(batch.slice(at, rows), row)
                    at, row = at + rows, row + rows
                if at < len(batch):
                    return

    def _rows_before_cap(self) -> int:
        """Return how many rows may be rendered before a cap must be tested again."""
        if self._task.tokens is not None:
            return 1
        if self._task.rows is None:
            return BATCH_ROWS
        # A row that is set aside is not a document, so fewer documents may come of these.
        return int(self._task.rows - self.summary["documents"])

    def _full(self) -> bool:
        task, summary = self._task, self.summary
        return (task.rows is not None and summary["documents"] >= task.rows) or (
            task.tokens is not None and summary["tokens"] >= task.tokens
        )

    def _batch(self, batch: pa.RecordBatch, first_row: int) -> kd_part_file.Batch:
        """Return the documents of a batch; `first_row` rows are before it."""
        rows = self._sorted(batch)
        made = {split: _assembled(rows, split, self._task.vocabulary) for split in SPLITS}
        for index in sorted(rows.refused):
            self._set_aside(first_row + index + 1, rows.ids[index], rows.refused[index])
        self.summary["control_texts"] += sum(
            conversation.control_texts
            for conversations in rows.conversations.values()
            for conversation in conversations
        )
        self.summary["documents"] += sum(map(len, rows.places.values()))
        self.summary["tokens"] += sum(len(each.tokens) for each in made.values())
        table = trace_rows(batch, self._task.shard.name, first_row, made, rows.places)
        for name, counter in self.names.items():
            counter.update("unknown" if v is None else v for v in table.column(name).to_pylist())
        return kd_part_file.Batch(made, table.serialize().to_pybytes())

    def _sorted(self, batch: pa.RecordBatch) -> _Sorted:
        """Return the rows of a batch by split, and those that are refused."""
        columns, refused = _columns(batch)
        texts, ids = (columns[name] for name in REQUIRED)
        rows = _Sorted(ids, refused)
        for index, (text, synth_id) in enumerate(zip(texts, ids, strict=True)):
            if index in refused:
                continue
            if text is None or synth_id is None:
                refused[index] = "ValueError: Missing synth_id or messages_json in input row."
                continue
            try:
                conversation = self._renderer.read(text)
            except BadRow as bad:
                refused[index] = str(bad)
                continue
            split = SPLITS[holdout.is_valid(str(synth_id), self._threshold)]
            rows.conversations[split].append(conversation)
            rows.places[split].append(index)
        return rows

    def _set_aside(self, row: int, synth_id: object, rule: str) -> None:
        name = None if synth_id is None else str(synth_id)
        if len(self.summary["bad"]) >= self._task.bad_rows:
            raise too_many_bad_rows(self._task.shard, row, name, rule, self._task.bad_rows)
        self.summary["bad"].append([row, name, rule])


def _with_texts(batch: pa.RecordBatch, shard: Path, before: int) -> pa.RecordBatch:
    """The batch with numbers and times in optional columns as strings; `before` rows are before."""
    import pyarrow as pa

    columns = list(batch.columns)
    for place, (name, column) in enumerate(zip(batch.schema.names, columns, strict=True)):
        if name in OPTIONAL and not parquet.is_text(column.type):
            try:
                columns[place] = column.cast(pa.string())
            except pa.ArrowException as error:
                raise no_text_form(shard, error, before) from error
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _columns(batch: pa.RecordBatch) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """Return the columns of a batch as Python values, and why rows are refused, by index.

    A synth_id that is not UTF-8 has escapes, because it names the row.
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


def _assembled(rows: _Sorted, split: str, vocabulary: Path) -> documents.Documents:
    """Return the documents of a split. Rows that cannot be encoded become refused."""
    conversations, places = rows.conversations[split], rows.places[split]
    try:
        return documents.assemble(conversations, vocabulary)
    except ValueError:
        # The error does not name the conversation, so each is tried.
        for at in reversed(range(len(places))):
            try:
                documents.assemble(conversations[at : at + 1], vocabulary)
            except ValueError as error:
                rows.refused[places[at]] = f"{type(error).__name__}: {error}"
                del conversations[at], places[at]
        return documents.assemble(conversations, vocabulary)
