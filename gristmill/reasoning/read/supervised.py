"""Examples and steps of one shard as arrays, what a reader keeps open, and the gate of reports.

Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.split_file import files as files_of
from gristmill.loading.source import Columns, segmented
from gristmill.reading.folder import HeldFile, OpenFolder, Opening, made_from_another
from gristmill.reasoning.format import align, index, names, published, reports
from gristmill.reasoning.format.index import Selection
from gristmill.reasoning.format.published import SHARDS, TOKENS
from gristmill.reasoning.format.shards import Shard
from gristmill.reasoning.read.shard_files import MOST_HELD, ShardFiles, partition_folder, record_in
from gristmill.reasoning.render.steps import WORKED
from gristmill.settings.fields import shown

_CHUNK: Final = 1 << 22
_DIGITS: Final = re.compile("[0-9]{1,18}")
_REBUILD: Final = "build reasoning/gpt2_shards and reasoning/alignment again"


class Ranges(NamedTuple):
    """Tokens of a shard that have a value, in ascending order.

    row, start, stop: int64 [N], sequence and columns, half-open.
    """

    row: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    value: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ShardRows:
    """What the tokens of one shard belong to.

    examples: value is the row of the example in the index of its split, from 0. steps: value is
        the number of the step in its example, from 1.
    """

    examples: Ranges
    steps: Ranges
    selected: Ranges


class Lines:
    """The lines of a file, or of the parts of a split, by number, from 0."""

    def __init__(self, files: Sequence[HeldFile]) -> None:
        self._files = files

    @cached_property
    def _starts(self) -> list[npt.NDArray[np.int64]]:
        """Of each file where each line starts, and the end of the last, int64 [lines + 1]."""
        starts = []
        for held in self._files:
            found, at = [np.zeros(1, np.int64)], 0
            with held.reading() as path, path.open("rb", buffering=0) as file:
                while data := file.read(_CHUNK):
                    found.append(np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + (at + 1))
                    at += len(data)
            starts.append(np.concatenate(found))
            if int(starts[-1][-1]) != at:
                raise BadInput(held.path, f"its last line has no newline: {_REBUILD}")
        return starts

    @cached_property
    def _firsts(self) -> npt.NDArray[np.int64]:
        """Of each file the number of its first line, and the number of all, int64 [files + 1]."""
        return np.cumsum([0, *(len(each) - 1 for each in self._starts)])

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def place(self, number: int) -> tuple[Path, int]:
        """The file of a line, and its row there, from 1."""
        at = max(0, int(np.searchsorted(self._firsts[:-1], number, "right")) - 1)
        return self._files[at].path, number - int(self._firsts[at]) + 1

    def between(self, first: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines from `first` up to `stop`, with their numbers."""
        for held, starts, before in zip(self._files, self._starts, self._firsts, strict=False):
            low, high = (min(max(each - int(before), 0), len(starts) - 1) for each in (first, stop))
            if size := int(starts[high] - starts[low]):
                with held.reading() as path, path.open("rb") as file:
                    file.seek(int(starts[low]))
                    data = file.read(size)
                yield from enumerate(data.split(b"\n")[:-1], low + int(before))


class SplitRows:
    """Index and alignment of one split. align_file: its alignment; None to do without steps."""

    def __init__(
        self,
        index_files: Sequence[HeldFile],
        align_file: HeldFile | None,
        least_confidence: float = 0.0,
    ) -> None:
        self._index = Lines(index_files)
        self._align = None if align_file is None else Lines([align_file])
        self._least = least_confidence

    def of(self, shard: Shard, selection: Selection) -> ShardRows:
        """What the tokens of a shard belong to.

        Raises BadInput where index, alignment and shard do not belong together.
        """
        examples, steps, selected = _Gathered(), _Gathered(), _Gathered()
        first, stop = self._lines_of(shard)
        aligned = self._aligned(first, stop)
        for number, text in self._index.between(first, stop):
            row = index.parsed(text, *self._index.place(number))
            ranges = next(aligned)
            spans = [s for s in row["spans"] if s["shard_path"].endswith(f"/{shard.path}")]
            if not spans:
                continue
            chosen = selection.takes(row)
            if ranges is not None and ranges[0] != row["example_id"]:
                raise self._apart(number, str(ranges[0]))
            offsets = _offsets(row, shard, *self._index.place(number))
            bounds = [bound for pair in ranges[1] for bound in pair] if ranges else []
            is_inside = not bounds or 0 <= bounds[0] <= bounds[-1] <= row["num_tokens"]
            if bounds != sorted(bounds) or not is_inside:
                raise self._apart(number, f"token ranges {bounds}")
            for offset, span in offsets:
                place = (span["sequence_index"], span["start"], span["end"])
                examples.add(*place, number)
                if chosen:
                    selected.add(*place, 1)
                for step, (begin, end) in enumerate(ranges[1] if ranges else (), 1):
                    # Columns of the step's tokens in this sequence.
                    shift = span["start"] - offset
                    left, right = max(begin + shift, place[1]), min(end + shift, place[2])
                    if left < right:
                        steps.add(place[0], left, right, step)
        return ShardRows(examples.ranges(), steps.ranges(), selected.ranges())

    def _lines_of(self, shard: Shard) -> tuple[int, int]:
        """The lines of the index with all examples of a shard, and perhaps of other ranks."""
        if shard.first_example is None or shard.last_example is None:
            return 0, len(self._index)
        first, last = _record(shard.first_example), _record(shard.last_example)
        if first is None or last is None:
            return 0, len(self._index)
        return self._search(first), self._search(last + 1)

    def _search(self, record: int) -> int:
        """The first line of a record or a later one."""
        low, high = 0, len(self._index)
        while low < high:
            middle = (low + high) // 2
            ((number, text),) = self._index.between(middle, middle + 1)
            row = index.parsed(text, *self._index.place(number))
            found = _record(row["example_id"])
            if found is None:
                file, line = self._index.place(number)
                rule = f"example_id {shown(row['example_id'])} does not end in the number of a"
                raise BadInput(file, f"{rule} record: {_REBUILD}", line)
            if found < record:
                low = middle + 1
            else:
                high = middle
        return low

    def _aligned(self, first: int, stop: int) -> Iterator[tuple[str, list[list[int]]] | None]:
        """Yield the id and the token ranges of each line; None where there is no alignment."""
        if self._align is None:
            while True:
                yield None
        if len(self._align) != len(self._index):
            raise self._apart(len(self._align) - 1, f"{len(self._align)} lines")
        for number, text in self._align.between(first, stop):
            row = align.parsed(text, *self._align.place(number))
            sure = row.confidence >= self._least
            yield row.example_id, row.token_offset_ranges if sure else []

    def _apart(self, number: int, found: str) -> BadInput:
        assert self._align is not None
        (file, line), (index_path, _) = self._align.place(number), self._index.place(0)
        rule = f"{found}: does not belong to the index {index_path}: {_REBUILD}"
        return BadInput(file, rule, line)


class _Gathered:
    def __init__(self) -> None:
        self._found: list[tuple[int, int, int, int]] = []

    def add(self, row: int, start: int, stop: int, value: int) -> None:
        self._found.append((row, start, stop, value))

    def ranges(self) -> Ranges:
        found = np.array(self._found, np.int64).reshape(-1, 4)
        found = found[np.lexsort((found[:, 1], found[:, 0]))]
        return Ranges(*(np.ascontiguousarray(column) for column in found.T))


def _offsets(
    row: Mapping[str, Any], shard: Shard, file: Path, number: int
) -> list[tuple[int, dict[str, Any]]]:
    """The spans of an example in a shard, each with the number of its first token."""
    found, at = [], 0
    for span in row["spans"]:
        inside = span["shard_path"].endswith(f"/{shard.path}")
        if not 0 <= span["start"] < span["end"] <= shard.seq_len or (
            inside and not 0 <= span["sequence_index"] < shard.sequences
        ):
            raise BadInput(file, f"the span {span} is outside of {shard.path}: {_REBUILD}", number)
        if inside:
            found.append((at, span))
        at += span["end"] - span["start"]
    if at != row["num_tokens_with_eos"]:
        raise BadInput(file, f"its spans have {at} tokens: {_REBUILD}", number)
    return found


def _record(example_id: str) -> int | None:
    """The number of the record in an id; None where it has none."""
    digits = example_id.rpartition("_")[2]
    return int(digits) if _DIGITS.fullmatch(digits) else None


def kept_rows(
    files: Sequence[HeldFile], selection: Selection, shards: Mapping[str, tuple[int, int]]
) -> dict[int, npt.NDArray[np.int64]]:
    """The sequences of each shard that hold a selected example, ascending.

    Shards without any are left out. Raises BadInput for an example that is not in its shard.
    """
    found: dict[int, list[int]] = {}
    for file, (line, text) in ((f, each) for f in files for each in _selected(f, selection)):
        for span in index.parsed(text, file.path, line)["spans"]:
            name = "/".join(span["shard_path"].split("/")[-3:])
            if name not in shards:
                continue
            number, sequences = shards[name]
            if not 0 <= span["sequence_index"] < sequences:
                raise BadInput(file.path, f"the span {span} is outside of {name}: {_REBUILD}", line)
            found.setdefault(number, []).append(span["sequence_index"])
    return {number: np.unique(np.array(rows, np.int64)) for number, rows in found.items()}


def _selected(file: HeldFile, selection: Selection) -> Iterator[tuple[int, bytes]]:
    with file.reading() as path, path.open("rb") as lines:
        for line, text in enumerate(lines, 1):
            # The form of the other lines is checked when their shard is read.
            if selection.takes(orjson.loads(text)):
                yield line, text


class StepValues(NamedTuple):
    """A value for each step of each example of each sequence of a batch, in their order.

    sequence: int64 [M], row of the batch.
    tokens: int64 [M], tokens of the step in this sequence.
    value: float64 [M], or [M, ...] for values with further dimensions.
    """

    sequence: npt.NDArray[np.int64]
    example: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


def by_step(
    values: Any, batch: Mapping[str, Any], how: Literal["mean", "sum"] = "mean"
) -> StepValues:
    """Sum any value of tokens by the steps that the tokens belong to.

    values: numbers [n, seq_len] or [n, seq_len, ...], array or tensor; for example the activations
        of features, or losses.
    batch: of a ShardReader with steps: `step_id` and `example` are [n, seq_len].
    how: "mean" over the tokens of a step, the default, or "sum".

    A step that continues in the next sequence has a value for each: weigh means by `tokens` to join
    them. Tokens outside of steps count nowhere.

    Raises ValueError for values of another shape, or another `how`.
    """
    if how not in ("mean", "sum"):
        raise ValueError(f'how must be "mean" or "sum", not {how!r}')
    numbers, steps, examples = map(_array, (values, batch["step_id"], batch["example"]))
    if numbers.shape[:2] != steps.shape:
        raise ValueError(f"values are {numbers.shape}, the batch has {steps.shape} tokens")
    inside = np.flatnonzero(steps.ravel())
    key = np.stack(
        [inside // max(steps.shape[1], 1), examples.ravel()[inside], steps.ravel()[inside]]
    ).astype(np.int64)
    begins = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(0))[: key.shape[1]])
    tokens = np.diff(np.append(begins, key.shape[1]))
    flat = numbers.reshape(-1, *numbers.shape[2:])[inside].astype(np.float64)
    sums = np.add.reduceat(flat, begins) if len(begins) else flat
    if how == "mean":
        sums = sums / tokens.reshape(-1, *[1] * (sums.ndim - 1))
    sequence, example, step = key[:, begins]
    return StepValues(sequence, example, step, tokens, sums)


def fill(out: npt.NDArray[Any], rows: npt.NDArray[np.int64], ranges: Ranges, missing: int) -> None:
    """Write the values of ranges beside the tokens of sequences.

    rows: int64 [n], sequences of the shard.
    """
    count, seq_len = out.shape
    first = np.searchsorted(ranges.row, rows, "left")
    number = np.searchsorted(ranges.row, rows, "right") - first
    # The number of each range that lies in one of the sequences, and which sequence that is.
    place = np.repeat(np.arange(count), number)
    within = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
    chosen = np.repeat(first, number) + within
    change = np.zeros(count * seq_len + 1, out.dtype if out.dtype.kind == "i" else np.int8)
    value = (ranges.value[chosen] - missing).astype(change.dtype)
    np.add.at(change, place * seq_len + ranges.start[chosen], value)
    np.subtract.at(change, place * seq_len + ranges.stop[chosen], value)
    np.cumsum(change[:-1], out=change[:-1])
    out[:] = change[:-1].reshape(count, seq_len)
    if missing:
        out += missing


def _array(values: Any) -> npt.NDArray[Any]:
    """Numbers as an array, tensors of torch on any device and with a gradient included."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_floating_point():
            values = values.double()
    return np.asarray(values)


class GateClosed(GristmillError):
    """The newest report drifted too far from its baseline."""


def check_gate(folder: Path) -> None:
    """Raise GateClosed where the gate of the newest report did not pass.

    folder: of the reports; without a folder or a report the gate is open.

    The error names the report, its breaches, and how a person accepts the change. Raises
    BadInput for a report that cannot be read.
    """
    days = reports.dates(folder)
    if not days:
        return
    path = reports.path(folder, days[-1])
    report = reports.read(path)
    if report["gate"]["passed"]:
        return
    breaches = report["gate"]["breaches"]
    accept = f'set baseline = "{days[-1]}" in [reasoning.qc_report]'
    if report["drift"]["baseline"] == report["date"]:
        # The counts of the first report of the day are its baseline, whoever builds it again.
        accept = (
            "remove baseline from [reasoning.qc_report], materialize reasoning/qc_report, and set "
            "baseline to the day of that report"
        )
    more = f"; and {len(breaches) - 5} more" if len(breaches) > 5 else ""
    raise GateClosed(
        f"{path}: the gate did not pass: {'; '.join(breaches[:5])}{more}: correct the data, or "
        f"accept a drift: {accept}; then materialize reasoning/qc_report again"
    )


MOST_LOADED: Final = 16
"""Shards whose examples and steps are kept, about 2 MB each."""

Wanted = Sequence[tuple[int, slice | npt.NDArray[np.int64]]]


@dataclass(frozen=True)
class Supervision:
    """What is read beside the tokens. steps: the folder of the alignments; None for no steps."""

    steps: Path | None
    least_confidence: float
    selection: Selection
    documents: bool = False

    def __bool__(self) -> bool:
        return self.steps is not None or bool(self.selection) or self.documents


def refuse_drift(root: Path) -> None:
    """Raise GristmillError where the newest report of a data root has drifted.

    root: the folder of all shards, or a link to it; nothing is known about one outside of a data
        root.
    """
    depth = len(Path(names.TOKENIZED).parts)
    for whole in (root.absolute(), root.resolve()):
        if whole.parts[-depth:] == Path(names.TOKENIZED).parts:
            check_gate(whole.parents[depth - 1] / names.REPORTS)
            return


@dataclass(frozen=True)
class Held:
    """The open files of a reader.

    indexes: `index.jsonl` of each partition that it needs. splits: its rows.
    """

    files: ShardFiles
    shards: tuple[Shard, ...]
    supervision: Supervision
    indexes: dict[str, list[HeldFile]]
    splits: dict[str, SplitRows]
    loaded: OrderedDict[int, ShardRows]

    def kept(self, selection: Selection) -> dict[int, npt.NDArray[np.int64]]:
        """The sequences of each shard that hold a selected example."""
        kept: dict[int, npt.NDArray[np.int64]] = {}
        for partition, files in self.indexes.items():
            own = {
                shard.path: (number, shard.sequences)
                for number, shard in enumerate(self.shards)
                if shard.partition == partition
            }
            kept |= kept_rows(files, selection, own)
        if not kept:
            raise BadInput(next(iter(self.indexes.values()))[0].path, f"no example has {selection}")
        return kept

    def rows(
        self,
        shards: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
        seq_len: int,
        dtype: Any,
    ) -> dict[str, npt.NDArray[Any]]:
        """The columns of a batch: of a row [N] of a shard [N] each, in the order asked."""
        columns = _empty(len(rows), seq_len, dtype, self.supervision)
        listed = shards.tolist()
        mapped = {each: self.files.tokens(each, MOST_HELD) for each in sorted(set(listed))}
        # Row by row: each is copied once, which a gather of each shard would do twice.
        ids = columns["input_ids"]
        for at, (shard, row) in enumerate(zip(listed, rows.tolist(), strict=True)):
            ids[at] = mapped[shard][row]
        columns["shard"][:], columns["row"][:] = shards, rows
        for shard in mapped if self.supervision else ():
            places = np.flatnonzero(shards == shard)
            own = {name: column[places] for name, column in columns.items()}
            self._supervise(own, shard, rows[places])
            for name in set(own) - {"input_ids", "shard", "row"}:
                columns[name][places] = own[name]
        return self._with_documents(columns)

    def columns(self, wanted: Wanted, seq_len: int, dtype: Any) -> dict[str, npt.NDArray[Any]]:
        """The columns of a batch: of rows of shards, in order."""
        if len(wanted) == 1 and not self.supervision:
            ((shard, rows),) = wanted
            input_ids = np.array(self.files.tokens(shard)[rows], dtype)
            shards = np.empty(len(input_ids), np.int32)
            shards.fill(shard)
            return {"input_ids": input_ids, "shard": shards, "row": _numbers(rows, np.int32)}
        listed = [(shard, rows, _numbers(rows, np.int64)) for shard, rows in wanted]
        count = sum(len(numbers) for _, _, numbers in listed)
        columns = _empty(count, seq_len, dtype, self.supervision)
        at = 0
        for shard, rows, numbers in listed:
            tokens = self.files.tokens(shard)
            own = {name: column[at : at + len(numbers)] for name, column in columns.items()}
            own["input_ids"][:] = tokens[rows]
            own["shard"][:], own["row"][:] = shard, numbers
            if self.supervision:
                self._supervise(own, shard, numbers)
            at += len(numbers)
        return self._with_documents(columns)

    def _with_documents(self, columns: Columns) -> Columns:
        if not self.supervision.documents:
            return columns
        return columns | segmented(columns["input_ids"], columns["example"])

    def _supervise(
        self, own: dict[str, npt.NDArray[Any]], shard: int, numbers: npt.NDArray[np.int64]
    ) -> None:
        rows = self._rows_of(shard)
        fill(own["example"], numbers, rows.examples, -1)
        if "step_id" in own:
            fill(own["step_id"], numbers, rows.steps, 0)
        if "selected" in own:
            fill(own["selected"], numbers, rows.selected, 0)

    def _rows_of(self, number: int) -> ShardRows:
        if number not in self.loaded:
            shard = self.shards[number]
            split = self.splits[shard.partition]
            self.loaded[number] = split.of(shard, self.supervision.selection)
            while len(self.loaded) > MOST_LOADED:
                self.loaded.popitem(last=False)
        self.loaded.move_to_end(number)
        return self.loaded[number]


def open_held(
    opening: Opening,
    root: Path,
    shards: tuple[Shard, ...],
    own: range,
    supervision: Supervision,
) -> Held:
    """Open the shards of a rank, and index and alignment where they are needed."""
    if opening.first:
        paths = (shards[number].path for number in own)
        published.refuse_missing(root, paths, own.start, own.step)
    files = ShardFiles(opening, root, shards, own)
    needed = {shards[number].partition for number in own} if supervision else set()
    if supervision.selection:
        needed = {shard.partition for shard in shards}
    indexes, splits = {}, {}
    for partition in sorted(needed):
        corpus, split = partition.split("__")
        folder = partition_folder(opening, root, partition)
        several = files_of(root / names.split_index(corpus, split))
        indexes[partition] = [folder.keep(each.relative_to(root).as_posix()) for each in several]
        aligned = None
        name = names.alignment(corpus, split)
        # The record of token shards says that no example has steps, as of plain text.
        made_by = folder.record if corpus != WORKED else None
        known = made_by.counts if made_by and made_by.asset == SHARDS else {}
        has_none = known.get("with_cot") == 0
        if (steps := supervision.steps) and not (has_none and not (steps / name).exists()):
            made = opening.folder(steps, record_in(steps, partition))
            _refuse_other_alignment(made, folder, steps / name, name)
            aligned = made.keep(name)
        splits[partition] = SplitRows(indexes[partition], aligned, supervision.least_confidence)
    return Held(files, shards, supervision, indexes, splits, OrderedDict())


def _refuse_other_alignment(made: OpenFolder, shards: OpenFolder, path: Path, name: str) -> None:
    """Raise BadInput where an alignment is of other shards, or a dataset was built without it."""
    of, by = made.record, shards.record
    if of is None or by is None:
        return
    if TOKENS not in (of.asset, by.asset):
        if of == by:  # the folder of all shards of GPT-2
            raise BadInput(path, "is not there: give the folder of reasoning/alignment")
        if made_from_another(made, shards):
            rule = f"was built from another version of {shards.path}"
            raise BadInput(path, f"{rule}: build reasoning/alignment again")
    elif of.data_version != by.data_version:
        raise BadInput(path, f"is of other shards than {shards.path}: give the alignment of these")
    elif name not in {output.path for output in of.outputs}:
        rule = 'write outputs = ["bin", "alignment"] in the recipe'
        raise BadInput(path, f"was not built: {rule}, and build reasoning/tokens")


def _numbers(rows: slice | npt.NDArray[np.int64], dtype: Any) -> npt.NDArray[Any]:
    if isinstance(rows, slice):
        return np.arange(rows.start, rows.stop, dtype=dtype)
    return rows.astype(dtype)


def _empty(
    count: int, seq_len: int, dtype: Any, supervision: Supervision
) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {
        "input_ids": np.empty((count, seq_len), dtype),
        "shard": np.empty(count, np.int32),
        "row": np.empty(count, np.int32),
    }
    if supervision.steps is not None:
        columns["step_id"] = np.empty((count, seq_len), np.int32)
    if supervision:
        columns["example"] = np.empty((count, seq_len), np.int64)
    if supervision.selection:
        columns["selected"] = np.empty((count, seq_len), np.bool_)
    return columns
