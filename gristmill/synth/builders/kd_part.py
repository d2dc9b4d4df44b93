"""Rows of a shard to a part of its datasets, and its file. See `kd_shard.build_kd_shard`."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.hashing import HashedFile
from gristmill.inbox import division
from gristmill.run.parts import SHA256
from gristmill.synth.builders import harmony_shard
from gristmill.synth.builders.harmony_shard import (
    MESSAGES,
    METADATA,
    OPTIONAL,
    REQUIRED,
    open_shard,
)
from gristmill.synth.format import quarantine, trace
from gristmill.synth.format.quarantine import BadRow
from gristmill.synth.render import documents, harmony
from gristmill.synth.render.documents import Conversation, Documents
from gristmill.vocabularies.encode import Encoder, check_equal, encoder, sampled
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import O200K

if TYPE_CHECKING:
    import pyarrow as pa

_ARRAYS: Final = 5
"""Arrays of a split: low and high halves of tokens, span values, their ends, lengths."""
_SIZES: Final = struct.Struct("<12Q")
SPLITS: Final = ("train", "valid")
"""The splits, at the index that `division.is_valid` gives as a number."""


@dataclass(frozen=True)
class Batch:
    """The documents of some consecutive rows.

    documents: of each split, in row order. A file keeps tokens, span and lengths: the
        tokens as their low 16 and high 8 bits, the span as values and ends of runs.
    trace: rows as a serialized Arrow record batch; documents count from 0 in this
        batch.
    refused: rows that cannot be rendered, as `quarantine.packed` returns them.
    """

    documents: Mapping[str, Documents]
    trace: bytes
    refused: bytes


def write(file: HashedFile, batch: Batch) -> None:
    """Append a batch to the file of a part."""
    arrays: list[memoryview] = []
    for split in SPLITS:
        documents = batch.documents[split]
        tokens, span = documents.tokens, documents.span
        ends = np.append(np.flatnonzero(span[1:] != span[:-1]) + 1, len(span))
        ends = ends[ends > 0]
        arrays += [
            _bytes(tokens.astype("<u2")),
            _bytes((tokens >> 16).astype(np.uint8)),
            _bytes(span[ends - 1]),
            _bytes(ends.astype("<i8")),
            _bytes(documents.lengths),
        ]
    arrays += [memoryview(batch.trace), memoryview(batch.refused)]
    file.write(_SIZES.pack(*map(len, arrays)))
    for array in arrays:
        file.write(array)


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array, little endian. A memoryview of no items cannot be cast."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).view(np.uint8).data


def read(path: Path) -> Iterator[Batch]:
    """Yield the batches of a part, in order."""
    with path.open("rb") as file:
        while head := file.read(_SIZES.size):
            arrays = [file.read(size) for size in _SIZES.unpack(head)]
            documents = {
                split: _documents(*arrays[number * _ARRAYS :][:_ARRAYS])
                for number, split in enumerate(SPLITS)
            }
            yield Batch(documents, *arrays[-2:])


def _documents(low: bytes, high: bytes, values: bytes, ends: bytes, lengths: bytes) -> Documents:
    none = np.zeros(0, dtype=np.int32)
    tokens = np.frombuffer(high, dtype=np.uint8).astype("<i4")
    tokens <<= 16
    tokens |= np.frombuffer(low, dtype="<u2")
    runs = np.diff(np.frombuffer(ends, dtype="<i8"), prepend=0)
    span = np.repeat(np.frombuffer(values, dtype=np.uint8), runs)
    return Documents(tokens, span, np.frombuffer(lengths, dtype="<i4"), none, none)


BATCH_ROWS: Final = 512
_COUNTS: Final = (
    *("documents", "tokens", "control_texts", "bad_rows"),
    *("fast_texts", "tiktoken_texts", "compared_rows"),
)


@dataclass(frozen=True)
class Task:
    """One part to make.

    is_own: whether the shard is ours, as `UntrustedParquet` says.
    rows, tokens: the rest of each cap, None for none; the last document may exceed that on tokens.
    """

    shard: Path
    is_own: bool
    row_groups: Sequence[int]
    first_row: int
    input_rows: int
    valid_fraction: float
    vocabulary: Path
    engine: str
    refuses_unknown_keys: bool
    rows: int | None
    tokens: int | None


def make_part(part_of: PartOf, task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task, and return its summary. path: file to write."""
    part = part_of(task)
    with HashedFile(path) as file:
        for batch in part.batches():
            write(file, batch)
    return part.counts() | {SHA256: file.sha256}


@lru_cache(maxsize=4)
def _renderer(vocabulary: Path) -> documents.Renderer:
    return documents.Renderer(vocabulary)


@dataclass
class Sorted:
    """A batch's conversations of each split, which may be several a row; and refused rows."""

    ids: Sequence[Any]
    refused: dict[int, str]
    conversations: dict[str, list[Any]] = field(
        default_factory=lambda: {split: [] for split in SPLITS}
    )
    places: dict[str, list[int]] = field(default_factory=lambda: {split: [] for split in SPLITS})

    def keep(self, split: str, which: Sequence[bool]) -> None:
        """Keep some conversations of a split."""
        self.conversations[split] = list(compress(self.conversations[split], which))
        self.places[split] = list(compress(self.places[split], which))


class Part:
    """Renders the rows of a task batch by batch, and counts them."""

    columns: Sequence[str] = ()
    """That are read beside those of a Harmony shard."""

    def __init__(self, task: Task) -> None:
        self.summary: dict[str, Any] = {**dict.fromkeys(_COUNTS, 0), "first_bad_rows": []}
        self.names: dict[str, Counter[str]] = {name: Counter() for name in OPTIONAL}
        self._unknown_keys: Counter[str] = Counter()
        self.summary["unknown_keys"] = self._unknown_keys
        self.task = task
        self._threshold = division.threshold(task.valid_fraction)
        self._sample = Sample(task.shard, self.encoder, self.assemble)

    @cached_property
    def renderer(self) -> documents.Renderer:
        """Reads rows in Harmony."""
        return _renderer(self.task.vocabulary)

    @property
    def encoder(self) -> Encoder:
        """What encodes its texts."""
        return encoder(O200K, self.task.vocabulary, self.task.engine)

    def batches(self) -> Iterator[Batch]:
        """Yield the documents of the rows up to the caps, at most `BATCH_ROWS` rows together."""
        task, row = self.task, self.task.first_row
        with open_shard(task.shard, is_own=task.is_own) as shard:
            columns = [*REQUIRED, *(name for name in OPTIONAL if name in shard.names)]
            columns += [*harmony_shard.checked_columns(shard.schema), *self.columns]
            for rows_read in shard.batches(BATCH_ROWS, columns, task.row_groups):
                batch = harmony_shard.with_texts(rows_read, task.shard, row)
                at = 0
                while at < len(batch) and not self._full():
                    rows = self._rows_before_cap(batch.slice(at))
                    yield self._batch(batch.slice(at, rows), row)
                    at, row = at + rows, row + rows
                if at < len(batch):
                    return

    def counts(self) -> dict[str, Any]:
        """Return the summary of the part, after its last batch."""
        return self.summary | {f"{name}s": dict(each) for name, each in self.names.items()}

    def _rows_before_cap(self, batch: pa.RecordBatch) -> int:
        """Return how many rows may be rendered before a cap must be tested again, 1 or more."""
        task, rows = self.task, len(batch)
        if task.rows is not None:
            # A row that is set aside is not a document, so fewer documents may come of these.
            rows = min(rows, task.rows - self.summary["documents"])
        if task.tokens is not None:
            # A row has at most as many tokens as bytes. So all that is rendered, the rows after
            # the cap included, has at most twice the tokens of the cap.
            made = self.summary["tokens"]
            most = made + 2 * (task.tokens - made)
            rows = min(rows, _rows_within(batch.column("messages_json"), most))
        return max(1, rows)

    def _full(self) -> bool:
        task, summary = self.task, self.summary
        return (task.rows is not None and summary["documents"] >= task.rows) or (
            task.tokens is not None and summary["tokens"] >= task.tokens
        )

    def _batch(self, batch: pa.RecordBatch, first_row: int) -> Batch:
        """Return the documents of a batch; `first_row` rows are before it."""
        rows = self.sorted(batch)
        made = {split: _assembled(rows, split, self.assemble, self.task.engine) for split in SPLITS}
        made = self.limited(rows, made)
        self._sample.check(made, rows.conversations, rows.places, rows.ids, first_row)
        refused = [
            BadRow(first_row + index + 1, _name(rows.ids[index]), rows.refused[index])
            for index in sorted(rows.refused)
        ]
        first = self.summary["first_bad_rows"]
        first += [row.short() for row in refused[: quarantine.MOST_NAMED - len(first)]]
        self.summary["bad_rows"] += len(refused)
        for conversation in chain(*rows.conversations.values()):
            self.count(conversation)
        self.summary["documents"] += sum(map(len, rows.places.values()))
        for each in made.values():
            self.summary["tokens"] += len(each.tokens)
            self.summary["fast_texts"] += int((each.texts - each.by_tiktoken).sum())
            self.summary["tiktoken_texts"] += int(each.by_tiktoken.sum())
        self.summary["compared_rows"] = self._sample.rows
        table = _trace_rows(batch, self.task.shard.name, first_row, made, rows.places)
        for name, counter in self.names.items():
            counter.update("unknown" if v is None else v for v in table.column(name).to_pylist())
        return Batch(made, table.serialize().to_pybytes(), quarantine.packed(refused))

    def limited(self, rows: Sorted, made: dict[str, Documents]) -> dict[str, Documents]:
        """The documents that stay; the conversations of the others leave `rows`."""
        if self.task.tokens is None:
            return made
        return _up_to_cap(rows, made, self.task.tokens - self.summary["tokens"])

    def is_valid(self, synth_id: str) -> bool:
        """Whether a row is in the valid split."""
        return division.is_valid(synth_id, self._threshold)

    def count(self, conversation: Any) -> None:
        """Count what a conversation that becomes a document holds."""
        self.summary["control_texts"] += conversation.control_texts
        if conversation.shape.unknown_keys:
            self._unknown_keys.update(conversation.shape.unknown_keys)

    def assemble(self, conversations: Sequence[Any], engine: str) -> Documents:
        """The documents of conversations. Raises ValueError where a text cannot be encoded."""
        return documents.assemble(conversations, self.task.vocabulary, engine)

    def sorted(self, batch: pa.RecordBatch) -> Sorted:
        """Return the rows of a batch by split, and those that are refused."""
        columns, refused = harmony_shard.columns_of(batch)
        texts, ids = (columns[name] for name in REQUIRED)
        rows = Sorted(ids, refused)
        read: dict[int, Conversation] = {}
        for index, (text, synth_id) in enumerate(zip(texts, ids, strict=True)):
            if index in refused:
                continue
            if text is None or synth_id is None or not str(synth_id).strip():
                refused[index] = "ValueError: Missing synth_id or messages_json in input row."
                continue
            try:
                read[index] = self.renderer.read(text)
            except documents.BadRow as bad:
                refused[index] = str(bad)
        for rules in self._rules_of_batches(columns, read):
            refused |= {index: rule for index, rule in rules.items() if index not in refused}
        for index, conversation in read.items():
            if index not in refused:
                split = SPLITS[self.is_valid(str(ids[index]))]
                rows.conversations[split].append(conversation)
                rows.places[split].append(index)
        return rows

    def _rules_of_batches(
        self, columns: dict[str, list[Any]], read: dict[int, Conversation]
    ) -> Iterator[dict[int, str]]:
        """Yield the rules that are looked at for all rows of a batch at once, by index."""
        if self.task.refuses_unknown_keys:
            for index, conversation in read.items():
                if conversation.shape.unknown_keys:
                    yield {index: harmony.unknown_keys_rule(conversation.shape.unknown_keys)}
        doubted = [index for index, conversation in read.items() if not conversation.is_strict]
        yield harmony.json_rules(columns[MESSAGES], doubted)
        if METADATA in columns:
            yield harmony.column_rules(METADATA, columns[METADATA])


PartOf = Callable[[Any], Part]
"""Takes a task, and returns its part; it pickles."""


def _rows_within(texts: pa.Array, most: int) -> int:
    """Return how many of the first texts have at most `most` bytes together; a null has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    octets = pc.fill_null(pc.binary_length(texts.cast(pa.large_binary())), 0)
    ends = np.cumsum(octets.to_numpy(zero_copy_only=False))
    return int(np.searchsorted(ends, most, side="right"))


def _up_to_cap(rows: Sorted, made: Mapping[str, Documents], tokens: int) -> dict[str, Documents]:
    """Return the documents up to the one that reaches a cap; the rows after it leave `rows`."""
    places = np.array([place for split in SPLITS for place in rows.places[split]], dtype=np.int64)
    lengths = np.concatenate([made[split].lengths for split in SPLITS])
    order = np.argsort(places)
    last = np.searchsorted(np.cumsum(lengths[order], dtype=np.int64), tokens)
    if last == len(order):
        return dict(made)
    place = int(places[order[last]])
    rows.refused = {index: rule for index, rule in rows.refused.items() if index < place}
    kept = {}
    for split in SPLITS:
        count = sum(each <= place for each in rows.places[split])
        del rows.places[split][count:], rows.conversations[split][count:]
        kept[split] = made[split].first(count)
    return kept


def _name(synth_id: object) -> str | None:
    return None if synth_id is None else str(synth_id)


Assemble = Callable[[Sequence[Any], str], Documents]
"""Takes conversations and an engine, and returns their documents."""


def _assembled(rows: Sorted, split: str, assemble: Assemble, engine: str) -> Documents:
    """Return the documents of a split. Rows that cannot be encoded become refused."""
    conversations, places = rows.conversations[split], rows.places[split]
    try:
        return assemble(conversations, engine)
    except ValueError:
        # The error does not name the conversation, so each is tried.
        for at in reversed(range(len(places))):
            try:
                assemble(conversations[at : at + 1], engine)
            except ValueError as error:
                rows.refused[places[at]] = f"{type(error).__name__}: {error}"
                del conversations[at], places[at]
        return assemble(conversations, engine)


def _trace_rows(
    batch: pa.RecordBatch,
    shard: str,
    first_row: int,
    documents: Mapping[str, Documents],
    places: Mapping[str, Sequence[int]],
) -> pa.RecordBatch:
    """Return the trace rows of a batch, in the order of the input rows."""
    import pyarrow as pa

    kept = np.array([place for split in SPLITS for place in places[split]], dtype=np.int64)
    taken = batch.take(pa.array(kept))
    numbers = np.concatenate([np.arange(len(places[split])) for split in SPLITS])
    runs = np.concatenate([documents[split].runs for split in SPLITS])
    counts = np.concatenate([documents[split].run_counts for split in SPLITS])
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    # The tokens before a run, less the tokens before its document.
    before = np.cumsum(runs, dtype=np.int64) - runs
    offsets = (before - np.repeat(before[bounds[:-1]], counts)).astype(np.int32)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([split for split in SPLITS for _ in places[split]], pa.string()),
            pa.array(numbers),
            pa.repeat(pa.scalar(shard), len(kept)),
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
    return rows.take(pa.array(np.argsort(kept, kind="stable")))


class Sample:
    """The rows of one part that tiktoken encodes, too, the same for any number of workers.

    `rows` counts those that the seed chose, which the first row of the part need not be.
    """

    def __init__(self, shard: Path, encoder: Encoder, assemble: Assemble) -> None:
        self.rows = 0
        self._is_first = True
        self._shard, self._assemble = shard, assemble
        self._is_needed = encoder.why_reference_alone is None

    def check(
        self,
        made: Mapping[str, Documents],
        conversations: Mapping[str, Sequence[Any]],
        places: Mapping[str, Sequence[int]],
        ids: Sequence[object],
        before: int,
    ) -> None:
        """Compare the sampled rows of a batch, and the first row of the part.

        before: rows of the shard before the batch. Raises EnginesDiffer with the row that differs.
        """
        kept = sorted(place for places_of_split in places.values() for place in places_of_split)
        if not (self._is_needed and kept):
            return
        chosen = set(sampled(self._shard.name, before, len(ids)).tolist())
        self.rows += len(chosen.intersection(kept))
        if self._is_first:
            chosen.add(kept[0])
            self._is_first = False
        for split, rows in places.items():
            ends = np.cumsum(made[split].lengths, dtype=np.int64)
            for number, place in enumerate(rows):
                if place in chosen:
                    one = conversations[split][number : number + 1]
                    expected = self._assemble(one, TIKTOKEN).tokens
                    begin = int(ends[number]) - int(made[split].lengths[number])
                    where = f"{self._shard}:{before + place + 1}: synth_id {ids[place]!r}"
                    check_equal(where, made[split].tokens[begin : ends[number]], expected)
