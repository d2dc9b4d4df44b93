"""Laws of an index: its spans tile every shard. Source: `docs/formats/reasoning.md#shard-laws`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.reasoning.format import id_files, index, names
from gristmill.reasoning.format.shards import EOS, Meta

_BATCH: Final = 4096
_WRONG_ID: Final = "its id is not that of a record"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_COUNTS: Final = ("num_tokens", "num_tokens_with_eos")
_SPAN_KEYS: Final = ("shard_path", "sequence_index", "start", "end")

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def index_laws(
    folder: Path, corpus: str, split: str, shards: Sequence[Meta]
) -> Iterator[Violation]:
    """Yield the violations of the index of a split."""
    name = names.split_index(corpus, split)
    checked = _Checked(folder, corpus, split, shards)
    try:
        rows, line = index.objects(folder / name), 0
        while some := list(islice(rows, _BATCH)):
            for place, problem in checked.add(some):
                yield Violation("index", f"{name}:{line + place + 1}", problem)
                return
            line += len(some)
    except BadInput as error:
        yield Violation("index", f"{name}:{error.row}", error.rule)
        return
    for where, problem in checked.end():
        yield Violation("tiling", where, problem)


class _Lines(NamedTuple):
    """Some lines, as int64: four values of each line, then of all spans in order.

    line: the place of the line of each span.
    """

    records: Ints
    rank: Ints
    num_tokens: Ints
    with_eos: Ints
    line: Ints
    shard: Ints
    row: Ints
    start: Ints
    end: Ints


class _Spans(NamedTuple):
    """The spans of some lines, back to back.

    start, end: in tokens over all shards of their rank. column: of the first token in its sequence.
    line: in the batch. shard: its number.
    """

    start: Ints
    end: Ints
    column: Ints
    line: Ints
    shard: Ints


@dataclass
class _Seen:
    """What was seen of one shard. ends: of examples. first, last: ids of examples."""

    ends: int = 0
    first: str = ""
    last: str = ""


class _Checked:
    """Follows the index batch by batch, with a cursor for each rank."""

    def __init__(self, folder: Path, corpus: str, split: str, shards: Sequence[Meta]) -> None:
        self._metas = {meta.shard_index: meta for meta in shards}
        self._by_path = {meta.path: meta.shard_index for meta in shards}
        self._numbers: dict[str, int] = {}
        self._folder, self._prefix = folder, f"{corpus}_{split}_"
        self._seq_len = shards[0].seq_len if shards else 1
        self._eod = shards[0].eod if shards else EOS
        self._ranks = shards[0].world_size if shards else 1
        self._full = max((meta.token_count for meta in shards), default=0)
        self._cursor = [0] * self._ranks
        self._record = -1
        self._seen = {number: _Seen() for number in self._metas}
        self._tensors: dict[int, id_files.Ids] = {}

    def add(self, values: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
        """Yield the place and the problem of the first line that is wrong, if one is."""
        try:
            of_values, arrays = self._of_values(values), self._arrays(values)
        except (ValueError, OverflowError) as error:
            for place, each in enumerate(values):
                yield from self._alone(place, each)
            yield 0, str(error)
            return
        spans = self._spans(arrays)
        after = np.diff(arrays.records, prepend=self._record) <= 0
        problems = {
            _WRONG_ID: of_values.pop(_WRONG_ID),
            "its record is not after the one before": after,
            **self._of_lines(arrays, spans),
            **of_values,
        }
        for problem, mask in problems.items():
            if mask.any():
                yield int(np.flatnonzero(mask)[0]), problem
                return
        self._record = int(arrays.records[-1])
        yield from self._advance(arrays.records, spans)

    def end(self) -> Iterator[tuple[str, str]]:
        """Yield what the index leaves open at its end: shards without their tokens."""
        for number, meta in self._metas.items():
            seen = self._seen[number]
            if (seen.ends, seen.first, seen.last) != (
                *(meta.eos_tokens, meta.first_example, meta.last_example),
            ):
                yield meta.path, f"has other examples than its meta file: {seen}"
        for rank in range(self._ranks):
            own = [meta for meta in self._metas.values() if meta.rank == rank]
            tokens = sum(meta.token_count for meta in own)
            padding = sum(meta.pad_tokens for meta in own)
            if self._cursor[rank] + padding != tokens:
                where = f"rank {rank}"
                yield where, f"{tokens} tokens, of which spans have {self._cursor[rank]}"
            elif padding and own:
                last = max(own, key=lambda meta: meta.shard_index)
                if (self._tensor(last.shard_index).ravel()[-padding:] != self._eod).any():
                    yield last.path, "its padding is not the id of the end"

    def _number(self, path: str) -> int:
        """Number of the shard of a `shard_path`. Raises ValueError for another path."""
        if path not in self._numbers:
            below = index.below_tokenized(path)
            if below not in self._by_path:
                raise ValueError(f"{path} is no shard")
            self._numbers[path] = self._by_path[below]
        return self._numbers[path]

    def _arrays(self, values: Sequence[Mapping[str, Any]]) -> _Lines:
        ids = [each["example_id"] for each in values]
        lists = [each["spans"] for each in values]
        flat = list(chain.from_iterable(lists))
        columns = (
            [int(each.removeprefix(self._prefix)) for each in ids],
            *([each[name] for each in values] for name in ("rank", *_COUNTS)),
            np.repeat(np.arange(len(lists)), [len(each) for each in lists]),
            [self._number(each["shard_path"]) for each in flat],
            *([each[name] for each in flat] for name in _SPAN_KEYS[1:]),
        )
        return _Lines(*(np.array(column, dtype=np.int64) for column in columns))

    def _of_values(self, values: Sequence[Mapping[str, Any]]) -> dict[str, Mask]:
        """Problems of lines that are not in the arrays, as masks."""
        return {
            _WRONG_ID: _as_mask(
                [
                    each["example_id"]
                    != f"{self._prefix}{int(each['example_id'].removeprefix(self._prefix)):06d}"
                    for each in values
                ]
            ),
            "its first token is not that of its first span": _as_mask(
                [
                    (each["shard_path"], each["sequence_index"], each["token_start"])
                    != tuple(each["spans"][0].values())[:3]
                    for each in values
                ]
            ),
            "text_sha256 is no sha256": _as_mask(
                [not _SHA256.fullmatch(each["text_sha256"]) for each in values]
            ),
        }

    def _spans(self, lines: _Lines) -> _Spans:
        begin = lines.shard // self._ranks * self._full + lines.row * self._seq_len
        return _Spans(begin + lines.start, begin + lines.end, lines.start, lines.line, lines.shard)

    def _of_lines(self, lines: _Lines, spans: _Spans) -> dict[str, Mask]:
        """Problems of lines that do not depend on other lines, as masks."""
        first, last = _first_and_last(spans)
        ranks = lines.records % self._ranks
        sizes = spans.end - spans.start
        follows = np.concatenate([[True], spans.start[1:] == spans.end[:-1]])
        follows[first] = True
        begins = spans.column == 0
        begins[first] = True
        inside = (spans.column >= 0) & (sizes > 0) & (spans.column + sizes <= self._seq_len)
        return {
            "its rank is not that of its record": lines.rank != ranks,
            "a span is in a shard of another rank": _any(
                spans, spans.shard % self._ranks != ranks[spans.line]
            ),
            "a span is not within one sequence": _any(spans, ~inside),
            "its spans do not follow each other": _any(spans, ~(follows & begins)),
            "its number of tokens is not that of its spans": (
                (spans.end[last] - spans.start[first] != lines.with_eos)
                | (lines.num_tokens + 1 != lines.with_eos)
                | (lines.num_tokens < 1)
            ),
        }

    def _advance(self, records: Ints, spans: _Spans) -> Iterator[tuple[int, str]]:
        """Move the cursor of each rank over the lines; yield the first line elsewhere."""
        first, last = _first_and_last(spans)
        ranks = records % self._ranks
        starts, ends = spans.start[first], spans.end[last]
        wrong = np.zeros(len(records), dtype=bool)
        for rank in np.unique(ranks).tolist():
            own = np.flatnonzero(ranks == rank)
            expected = np.concatenate([[self._cursor[rank]], ends[own[:-1]]])
            wrong[own] = starts[own] != expected
            self._cursor[rank] = int(ends[own[-1]])
        if wrong.any():
            yield int(np.flatnonzero(wrong)[0]), "it does not begin where the one before ends"
            return
        for shard in np.unique(spans.shard).tolist():
            at = np.flatnonzero(spans.shard == shard)
            base = shard // self._ranks * self._full
            if int(spans.end[at].max()) - base > self._metas[shard].token_count:
                yield int(spans.line[at[-1]]), "a span is behind the end of its shard"
                return
            seen = self._seen[shard]
            seen.first = seen.first or f"{self._prefix}{records[spans.line[at[0]]]:06d}"
            seen.last = f"{self._prefix}{records[spans.line[at[-1]]]:06d}"
            closing = at[np.isin(at, last, assume_unique=True)]
            seen.ends += len(closing)
            tokens = self._tensor(shard).ravel()[spans.end[closing] - base - 1]
            if (tokens != self._eod).any():
                place = closing[np.flatnonzero(tokens != self._eod)[0]]
                yield int(spans.line[place]), f"its last token is not {self._eod}"
                return

    def _tensor(self, shard: int) -> id_files.Ids:
        if shard not in self._tensors:
            if len(self._tensors) > 2 * self._ranks:
                self._tensors.clear()
            self._tensors[shard] = id_files.of_meta(self._folder, self._metas[shard])
        return self._tensors[shard]

    def _alone(self, place: int, values: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
        """Yield the place and the problem of a line whose values cannot be arrays."""
        number = values["example_id"].removeprefix(self._prefix)
        if not (number.isascii() and number.isdigit()):
            yield place, f"example_id {values['example_id']!r} is not {self._prefix}<record>"
        for span in values["spans"]:
            try:
                self._number(span["shard_path"])
            except ValueError as error:
                yield place, str(error)


def _first_and_last(spans: _Spans) -> tuple[Ints, Ints]:
    """Places of the first and the last span of each line."""
    first = np.flatnonzero(np.diff(spans.line, prepend=-1))
    return first, np.append(first[1:], len(spans.line)) - 1


def _as_mask(values: list[bool]) -> Mask:
    return np.array(values, dtype=bool)


def _any(spans: _Spans, wrong: Mask) -> Mask:
    """Which lines have a wrong span."""
    mask = np.zeros(int(spans.line[-1]) + 1, dtype=bool)
    mask[spans.line[wrong]] = True
    return mask
