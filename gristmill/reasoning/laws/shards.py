"""Laws of token shards, of their index, whose spans tile every shard, and of manifests.

Source: `docs/formats/reasoning.md#shard-laws`, `docs/formats/reasoning.md#manifest-laws`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.split_file import Range, ranges, workers_for
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.laws import or_unreadable
from gristmill.reasoning.builders.manifest import all_metas, different
from gristmill.reasoning.format import foreign_pt, id_files, index, names
from gristmill.reasoning.format.published import shard_splits
from gristmill.reasoning.format.shards import (
    EOS,
    TOKENS,
    Meta,
    manifest_entries,
    metas,
    read_manifest,
    read_meta,
)
from gristmill.reasoning.read.shard_files import (
    metas_in,
    misplaced,
    shard_violations,
    without_meta,
)
from gristmill.run.workers import ordered_map, threaded_map

_READ_BYTES: Final = 1 << 20
_AGAIN: Final = "materialize reasoning/manifest again if a split was rebuilt after it"


def manifest_laws(
    folder: Path, partition: str | None = None, tokenized: Path | None = None
) -> Iterator[Violation]:
    """Yield the violations of `manifest.json` and `index.jsonl`.

    tokenized: the folder of all shards, default `folder`. Before publishing they are apart.

    Memory grows with the shards of one split alone.
    """
    tokenized = tokenized or folder
    splits = published_splits(tokenized)
    if not splits:
        yield Violation("splits", ".", "there is no split with an index")
    try:
        yield from _manifest(folder / names.MANIFEST, tokenized, splits)
    except BadInput as error:
        yield Violation("readable", names.MANIFEST, str(error))
    except FileNotFoundError as error:
        yield Violation("readable", names.MANIFEST, f"{error.filename} is missing")
    try:
        yield from _index(folder / names.INDEX, tokenized, splits)
    except FileNotFoundError as error:
        yield Violation("readable", names.INDEX, f"{error.filename} is missing")


def published_splits(tokenized: Path) -> list[tuple[str, str]]:
    """Corpus and split of all folders with an index, sorted."""
    found = tokenized.glob(f"*/*/{names.INDEX}")
    return sorted((path.parent.parent.name, path.parent.name) for path in found)


def _manifest(path: Path, tokenized: Path, splits: list[tuple[str, str]]) -> Iterator[Violation]:
    """The manifest lists all metas and nothing else."""
    seen: list[Meta] = []

    def noted() -> Iterator[Meta]:
        for meta in all_metas(tokenized, splits):
            seen[1:] = [meta]
            yield meta

    with path.open("rb") as file:
        for entry in manifest_entries(noted()):
            if problem := different(seen[0], seen[-1]) if seen else None:
                yield Violation("one kind of shards", names.MANIFEST, problem)
                return
            if file.read(len(entry)) != entry:
                where = seen[-1].path if seen else "its begin"
                rule = f"differs from the meta files at {where}: {_AGAIN}"
                yield Violation("inventory", names.MANIFEST, rule)
                return
        if file.read(1):
            yield Violation("inventory", names.MANIFEST, f"lists more than all shards: {_AGAIN}")


def _index(path: Path, tokenized: Path, splits: list[tuple[str, str]]) -> Iterator[Violation]:
    """The index is that of all splits, one after the other."""
    with path.open("rb") as file:
        for corpus, split in splits:
            name = names.split_index(corpus, split)
            with (tokenized / name).open("rb") as part:
                while data := part.read(_READ_BYTES):
                    if file.read(len(data)) != data:
                        yield Violation("index", names.INDEX, f"differs from {name}: {_AGAIN}")
                        return
        if file.read(1):
            yield Violation("index", names.INDEX, f"has more lines than all splits: {_AGAIN}")


_BATCH: Final = 4096
_RANGE_BYTES: Final = 8 << 20
_BYTES_ALONE: Final = 1 << 26
_WRONG_ID: Final = "its id is not that of a record"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_COUNTS: Final = ("num_tokens", "num_tokens_with_eos")
_SPAN_KEYS: Final = ("shard_path", "sequence_index", "start", "end")

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def index_laws(
    folder: Path, corpus: str, split: str, shards: Sequence[Meta], workers: int = 1
) -> Iterator[Violation]:
    """Yield the violations of the index of a split. workers: processes that parse a large one."""
    name = names.split_index(corpus, split)
    checked, line = _Checked(folder, corpus, split, shards), 0
    numbers = {meta.path: meta.shard_index for meta in shards}
    tasks = [*ranges(folder / name, _RANGE_BYTES)]
    parse = partial(_parsed, f"{corpus}_{split}_", numbers)
    with closing(ordered_map(parse, tasks, workers_for(tasks, workers, _BYTES_ALONE))) as results:
        for batches, error in results:
            for batch in batches:
                for place, problem in checked.add(batch):
                    yield Violation("index", f"{name}:{line + place + 1}", problem)
                    return
                line += batch.size
            if error is not None:
                yield Violation("index", f"{name}:{line + error[0]}", error[1])
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


class _Batch(NamedTuple):
    """What some lines are without others. lines: None where one cannot be arrays.

    problems: the place of the first line with each problem.
    """

    size: int
    lines: _Lines | None
    problems: dict[str, int]


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


class _Parser:
    """Makes arrays of lines. prefix: of their ids. shards: numbers by path."""

    def __init__(self, prefix: str, shards: Mapping[str, int]) -> None:
        self._prefix, self._shards = prefix, shards
        self._numbers: dict[str, int] = {}

    def batch(self, values: Sequence[Mapping[str, Any]]) -> _Batch:
        """What some lines are without others."""
        try:
            of_values, lines = self._of_values(values), self._arrays(values)
        except (ValueError, OverflowError) as error:
            broken = (each for at, value in enumerate(values) for each in self._alone(at, value))
            place, problem = next(broken, (0, str(error)))
            return _Batch(len(values), None, {problem: place})
        first = {name: int(np.argmax(mask)) for name, mask in of_values.items() if mask.any()}
        return _Batch(len(values), lines, first)

    def _number(self, path: str) -> int:
        """Number of the shard of a `shard_path`. Raises ValueError for another path."""
        if path not in self._numbers:
            below = index.below_tokenized(path)
            if below not in self._shards:
                raise ValueError(f"{path} is no shard")
            self._numbers[path] = self._shards[below]
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


def _parsed(
    prefix: str, shards: Mapping[str, int], task: Range
) -> tuple[list[_Batch], tuple[int, str] | None]:
    """The batches of a range, and the row, counted behind them, and the rule of a broken line."""
    parser, batches, error = _Parser(prefix, shards), list[_Batch](), None
    some: list[Mapping[str, Any]] = []
    try:
        for line in task.lines():
            some.append(index.parsed(line, task.path, len(some) + 1))
            if len(some) == _BATCH:
                batches.append(parser.batch(some))
                some = []
    except BadInput as raised:
        error = raised.row or 1, raised.rule
        return batches, error
    if some:
        batches.append(parser.batch(some))
    return batches, error


class _Checked:
    """Follows the index batch by batch, with a cursor for each rank."""

    def __init__(self, folder: Path, corpus: str, split: str, shards: Sequence[Meta]) -> None:
        self._metas = {meta.shard_index: meta for meta in shards}
        self._folder, self._prefix = folder, f"{corpus}_{split}_"
        self._seq_len = shards[0].seq_len if shards else 1
        self._eod = shards[0].eod if shards else EOS
        self._ranks = shards[0].world_size if shards else 1
        self._full = max((meta.token_count for meta in shards), default=0)
        self._cursor = [0] * self._ranks
        self._record = -1
        self._seen = {number: _Seen() for number in self._metas}
        self._tensors: dict[int, id_files.Ids] = {}

    def add(self, batch: _Batch) -> Iterator[tuple[int, str]]:
        """Yield the place and the problem of the first line that is wrong, if one is."""
        if (arrays := batch.lines) is None:
            yield from ((place, problem) for problem, place in batch.problems.items())
            return
        spans = self._spans(arrays)
        after = np.diff(arrays.records, prepend=self._record) <= 0
        masks = {
            "its record is not after the one before": after,
            **self._of_lines(arrays, spans),
        }
        first = {problem: int(np.argmax(mask)) for problem, mask in masks.items() if mask.any()}
        of_ids = {name: batch.problems[name] for name in (_WRONG_ID,) if name in batch.problems}
        for problem, place in {**of_ids, **first, **batch.problems}.items():
            yield place, problem
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


_ROWS_BYTES: Final = 1 << 22
_SAME: Final = (
    *("seq_len", "world_size", "tokenizer_sha256", "source_files", "schema_version"),
    *("tokenizer", "dtype", "eod", "ids"),
)
"""What all shards of a split have in common."""
_SUFFIXES: Final = (".pt", id_files.BIN, ".meta.json", id_files.SAFETENSORS)


def shard_laws(
    folder: Path, partition: str | None, *, sampled: bool = False, workers: int = 1
) -> Iterator[Violation]:
    """Yield the violations of the shards, metas and index of one split.

    sampled: leaves out the hash of each whole file, which the record has, too; default False.
    workers: threads that read shards, and processes that parse an index of more than 64 MiB.
    Memory: the rows of a shard 4 MiB at a time, and some lines of the index.
    """
    corpus, split = corpus_and_split(str(partition))
    name = names.split_index(corpus.name, split)
    if not (folder / name).is_file():
        yield Violation("index", name, "is missing")
        return
    shards: list[Meta] = []
    broken = False
    for violation in _shards(folder, corpus.name, split, shards):
        broken = True
        yield violation
    read = partial(_of_tensor, folder, sampled)
    with closing(threaded_map(read, shards, workers)) as found:
        for violation in chain(chain.from_iterable(found), _series(shards)):
            broken = True
            yield violation
    if not broken:
        yield from index_laws(folder, corpus.name, split, shards, workers)


def _of_tensor(folder: Path, sampled: bool, meta: Meta) -> list[Violation]:
    where = meta.path.rpartition(".")[0]
    return [*or_unreadable(tensor_laws(folder, meta, sampled=sampled), where)]


def _shards(folder: Path, corpus: str, split: str, shards: list[Meta]) -> Iterator[Violation]:
    """Every file belongs to a shard, and every shard is as its meta says; fills `shards`."""
    inside = folder / corpus / split
    stems: dict[str, set[str]] = {}
    for path in sorted(inside.iterdir()):
        suffix = path.name[path.name.find(".") :]
        if path.name.startswith("shard_") and suffix in _SUFFIXES:
            stems.setdefault(path.name.removesuffix(suffix), set()).add(suffix)
        elif path.name != names.INDEX:
            where = path.relative_to(folder).as_posix()
            yield Violation("files", where, "is no shard, meta file or index")
    for stem, suffixes in stems.items():
        where = f"{corpus}/{split}/{stem}"
        try:
            meta = read_meta(inside / f"{stem}.meta.json") if ".meta.json" in suffixes else None
            own = f".{meta.path.rpartition('.')[2]}" if meta and meta.tokenizer else ".pt"
            if missing := {own, ".meta.json"} - suffixes:
                for suffix in sorted(missing):
                    rule = "is missing, other files of it are there"
                    yield Violation("files", where + suffix, rule)
                continue
            assert meta is not None
            if problem := _misplaced(meta, corpus, split, stem):
                yield Violation("meta", f"{where}.meta.json", problem)
                continue
            shards.append(meta)
        except BadInput as error:
            yield Violation("readable", where, str(error))


def _misplaced(meta: Meta, corpus: str, split: str, stem: str) -> str | None:
    """What a meta says about another shard, None where it is that of this one."""
    suffix = f".{meta.path.rpartition('.')[2]}" if meta.tokenizer else ".pt"
    path = names.shard(corpus, split, meta.shard_index, suffix)
    expected = {
        "dataset": corpus,
        "split": split,
        "path": path,
        "token_count": meta.num_sequences * meta.seq_len,
        "rank": meta.shard_index % max(1, meta.world_size),
    }
    if path != f"{corpus}/{split}/{stem}{suffix}":
        return f"shard_index {meta.shard_index} is not the number in its name"
    for name, value in expected.items():
        if getattr(meta, name) != value:
            return f"{name} is {getattr(meta, name)!r}, expected {value!r}"
    if meta.text_tokens + meta.eos_tokens + meta.pad_tokens != meta.token_count:
        return "text_tokens, eos_tokens and pad_tokens are not token_count together"
    return None


def tensor_laws(folder: Path, meta: Meta, *, sampled: bool = False) -> Iterator[Violation]:
    """Yield where the tensor of a shard is not as its meta says."""
    ids = id_files.of_meta(folder, meta)
    shape = (meta.num_sequences, meta.seq_len)
    if ids.shape != shape:
        yield Violation("shape", meta.path, f"is {ids.shape}, its meta file says {shape}")
        return
    digest = hashlib.sha256()
    ends, least, most = 0, 0, 0
    step = max(1, _ROWS_BYTES // (ids.itemsize * meta.seq_len))
    for begin in range(0, len(ids), step):
        rows = np.asarray(ids[begin : begin + step])
        digest.update(rows.data)
        ends += int(np.count_nonzero(rows == meta.eod))
        least, most = min(least, int(rows.min())), max(most, int(rows.max()))
    if least < 0 or most >= meta.ids:
        found = f"ids from {least} to {most}, allowed 0 to {meta.ids - 1}"
        yield Violation("ids", meta.path, found)
    if ends != meta.eos_tokens + meta.pad_tokens:
        expected = f"{meta.eos_tokens} ends of examples and {meta.pad_tokens} of padding"
        yield Violation(
            "ends", meta.path, f"id {meta.eod} occurs {ends} times, its meta has {expected}"
        )
    if digest.hexdigest() != meta.sha256:
        rule = f"the tensor has {digest.hexdigest()}, its meta file {meta.sha256}"
        yield Violation("sha256", meta.path, rule)
    if not sampled and (found := sha256_file(folder / meta.path)) != meta.file_sha256:
        yield Violation("file_sha256", meta.path, f"{found}, its meta file has {meta.file_sha256}")
    twin = meta.path.rpartition(".")[0] + id_files.SAFETENSORS
    if twin != meta.path and (folder / twin).exists() and not _is_twin(folder, meta, twin, ids):
        yield Violation("twin", twin, f"does not hold the tensor of {meta.path}")


def _is_twin(folder: Path, meta: Meta, twin: str, ids: id_files.Ids) -> bool:
    try:
        other = id_files.of_meta(folder, meta, twin)
    except BadInput:
        return False
    step = max(1, _ROWS_BYTES // (ids.itemsize * ids.shape[1]))
    return all(
        np.array_equal(ids[begin : begin + step], other[begin : begin + step])
        for begin in range(0, len(ids), step)
    )


def _series(shards: list[Meta]) -> Iterator[Violation]:
    """The shards of each rank are numbered without a gap, all full but the last."""
    if not shards:
        return
    first = shards[0]
    most = max(meta.num_sequences for meta in shards)
    for name in _SAME:
        for meta in shards:
            if getattr(meta, name) != getattr(first, name):
                yield Violation("one kind of shards", meta.path, f"{name} is not that of the first")
                return
    for rank in range(first.world_size):
        own = sorted(
            (meta for meta in shards if meta.rank == rank), key=lambda meta: meta.shard_index
        )
        for local, meta in enumerate(own):
            if meta.shard_index != local * first.world_size + rank:
                yield Violation("numbers", meta.path, f"rank {rank} lacks its shard {local}")
                return
            is_last = local == len(own) - 1
            if not is_last and (meta.num_sequences != most or meta.pad_tokens):
                yield Violation("full", meta.path, "is not full, but not the last of its rank")
            if meta.pad_tokens >= meta.seq_len:
                yield Violation("padding", meta.path, "has a sequence of padding alone")


def other_shard_laws(folder: Path, corpus: str, split: str) -> Iterator[Violation]:
    """Yield the violations of the shards of one split that have no index.

    The laws: those of `verify_shards`; `ids` as above; and `full`: all have one `seq_len`, and as
    many sequences as the first, but for the last.
    """
    metas, found = metas_in(folder, [folder / corpus / split])
    yield from found
    good = []
    for where, meta in metas.items():
        if broken := [*misplaced(folder, where, meta), *shard_violations(folder, where, meta)]:
            yield from broken
            continue
        good.append(meta)
        ids = foreign_pt.mapped(folder / where)
        least, most = int(ids.min()), int(ids.max())
        if least < 0 or most >= TOKENS:
            yield Violation("ids", where, f"ids from {least} to {most}, allowed 0 to {TOKENS - 1}")
    yield from without_meta(folder, [folder / corpus / split], metas)
    for meta in good:
        if meta["seq_len"] != good[0]["seq_len"]:
            yield Violation("full", meta["path"], "seq_len is not that of the first shard")
        elif meta["num_sequences"] != good[0]["num_sequences"] and meta is not good[-1]:
            yield Violation("full", meta["path"], "has not as many sequences as the first shard")


def shards(subject: Subject) -> Iterable[Violation]:
    """Yields what token shards break; of a folder without records, those of all splits."""
    if not subject.has_record:
        return _unrecorded_shards(subject)
    return shard_laws(
        subject.folder,
        subject.partition,
        sampled=subject.sampled,
        workers=subject.config.get("workers", 1),
    )


def tokens(subject: Subject) -> Iterator[Violation]:
    """Yields what the dataset of a tokenizer breaks: its shards, and the manifest of them."""
    if not (found := shard_splits(subject.folder)):
        yield Violation("shards", ".", "there is no <corpus>/<split>/shard_*")
        return
    for corpus, split in found:
        workers = subject.config.get("workers", 1)
        key = f"{corpus}__{split}"
        yield from shard_laws(subject.folder, key, sampled=subject.sampled, workers=workers)
    every = [meta for each in found for meta in metas(subject.folder, *each)]
    if read_manifest(subject.folder) != sorted(every, key=lambda meta: meta.path):
        yield Violation("manifest", names.MANIFEST, "does not list the meta files of the shards")


def manifest(subject: Subject) -> Iterable[Violation]:
    """Yields what the manifest of the token shards breaks."""
    folder = subject.inputs[0] if subject.inputs else None
    return manifest_laws(subject.folder, subject.partition, folder)


def _unrecorded_shards(subject: Subject) -> Iterator[Violation]:
    """The laws of all splits of a folder without records; those without an index are others'."""
    subject.leaves(names.MANIFEST, "reasoning/manifest")
    if not (found := shard_splits(subject.folder)):
        yield Violation("shards", ".", "there is no <corpus>/<split>/shard_*.pt")
    for corpus, split in found:
        if subject.missing(
            {names.split_index(corpus, split): f"index and tiling of {corpus}/{split}"}
        ):
            yield from other_shard_laws(subject.folder, corpus, split)
        else:
            yield from shard_laws(subject.folder, f"{corpus}__{split}")
