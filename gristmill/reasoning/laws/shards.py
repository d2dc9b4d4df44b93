"""Laws of token shards, of their index, whose spans tile every shard, and of manifests.

Source: `docs/formats/reasoning.md#shard-laws`, `docs/formats/reasoning.md#manifest-laws`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.split_file import Range, files, is_there, opened, ranges, workers_for
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.laws import or_unreadable
from gristmill.reasoning.builders.manifest import all_metas, different
from gristmill.reasoning.format import id_files, index, names, pt_file
from gristmill.reasoning.format.published import shard_splits, splits_in
from gristmill.reasoning.format.shards import (
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
    found = (key.split("__") for key in splits_in(tokenized, f"{{split}}/{names.INDEX}"))
    return sorted((corpus, split) for corpus, split in found)


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
            with opened(tokenized / name) as part:
                while data := part.read(_READ_BYTES):
                    if file.read(len(data)) != data:
                        yield Violation("index", names.INDEX, f"differs from {name}: {_AGAIN}")
                        return
        if file.read(1):
            yield Violation("index", names.INDEX, f"has more lines than all splits: {_AGAIN}")


_RANGE_BYTES: Final = 8 << 20
_BYTES_ALONE: Final = 1 << 26
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def index_laws(
    folder: Path, corpus: str, split: str, shards: Sequence[Meta], workers: int = 1
) -> Iterator[Violation]:
    """Yield the violations of the index of a split. workers: processes that parse a large one."""
    several = files(folder / names.split_index(corpus, split))
    tasks = [each for file in several for each in ranges(file, _RANGE_BYTES)]
    full = max(shards, key=lambda meta: meta.token_count, default=None)
    follow = partial(_followed, folder, f"{corpus}_{split}_", full)
    path, line, last, ends = several[0], 0, -1, dict[int, int]()
    seen = {meta.path: _NOTHING for meta in shards}
    with closing(ordered_map(follow, tasks, workers_for(tasks, workers, _BYTES_ALONE))) as results:
        for task, found in zip(tasks, results, strict=True):
            path, line = task.path, line if task.path == path else 0
            breaks = [(1, _NOT_AFTER)] if found.records and found.records[0] <= last else []
            breaks += [
                (row, _GAP) for r, (row, at, _) in found.ranks.items() if ends.get(r, 0) != at
            ]
            if breaks or found.error:
                row, problem = min([*breaks, *filter(None, [found.error])], key=itemgetter(0))
                where = path.relative_to(folder).as_posix()
                yield Violation("index", f"{where}:{line + row}", problem)
                return
            line, last = line + found.lines, max([last, *found.records])
            ends |= {rank: end for rank, (_, _, end) in found.ranks.items()}
            for shard, each in found.shards.items():
                seen[shard] = _joined(seen[shard], each)
    for meta in shards:
        if seen[meta.path] != (meta.eos_tokens, meta.first_example, meta.last_example):
            rule = f"has other examples than its meta file: {seen[meta.path]}"
            yield Violation("tiling", meta.path, rule)
    for rank in range(full.world_size if full else 0):
        own = [meta for meta in shards if meta.rank == rank]
        tokens, padding = (sum(getattr(m, n) for m in own) for n in ("token_count", "pad_tokens"))
        if ends.get(rank, 0) + padding != tokens:
            rule = f"{tokens} tokens, of which spans have {ends.get(rank, 0)}"
            yield Violation("tiling", f"rank {rank}", rule)
        elif (
            padding and (id_files.of_meta(folder, own[-1]).ravel()[-padding:] != own[-1].eod).any()
        ):
            yield Violation("tiling", own[-1].path, "its padding is not the id of the end")


_GAP: Final = "it does not begin where the one before ends"
_NOT_AFTER: Final = "its record is not after the one before"
_Seen = tuple[int, str, str]
"""What was seen of one shard: ends of examples, the first and the last id."""
_NOTHING: Final[_Seen] = (0, "", "")


def _joined(one: _Seen, later: _Seen) -> _Seen:
    return one[0] + later[0], one[1] or later[1], later[2]


@dataclass
class _Followed:
    """What some lines are, without those before them.

    records: the first and the last. ranks: of each the row of its first line, where that begins,
    and the end of its last one, in tokens of the rank. error: row and rule of the first wrong line.
    """

    lines: int = 0
    records: tuple[int, ...] = ()
    ranks: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    shards: dict[str, _Seen] = field(default_factory=dict)
    error: tuple[int, str] | None = None


def _followed(folder: Path, prefix: str, full: Meta | None, task: Range) -> _Followed:
    """Follow the lines of a range. prefix: of their ids. full: a shard that is full."""
    found = _Followed()
    lines = _Lines(folder, prefix, full, found) if full else None
    try:
        for line in task.lines():
            if lines is not None and lines.is_plain(line):
                found.lines += 1
                continue
            values = index.parsed(line, task.path, found.lines + 1)
            if problem := "there is no shard" if lines is None else lines.problem(values):
                found.error = found.lines + 1, problem
                break
            found.lines += 1
    except BadInput as raised:
        found.error = raised.row or 1, raised.rule
    return found


class _Lines:
    """Takes lines of an index in their order."""

    def __init__(self, folder: Path, prefix: str, full: Meta, found: _Followed) -> None:
        self._folder, self._prefix, self._full, self._found = folder, prefix, full, found
        self._shards: dict[str, tuple[Meta, id_files.Ids]] = {}
        self._plain = re.compile(_PLAIN.replace("ID", re.escape(prefix)).encode())

    def is_plain(self, line: bytes) -> bool:
        """Whether a line is right, as most are, without reading it as JSON; then it is noted.

        It is in the shard of the line before, and as our builder writes it.
        """
        if (match := self._plain.fullmatch(line)) is None:
            return False
        found, path = self._found, match["path"].decode()
        record, row, start, tokens, count, rank = map(int, match.group("record", 4, 5, 6, 7, 9))
        meta, ids = self._shards.get(path, (None, None))
        if meta is None or ids is None or rank not in found.ranks:
            return False
        begin = meta.shard_index // meta.world_size * self._full.token_count
        begin += row * meta.seq_len + start
        first, at, before = found.ranks[rank]
        if (
            record <= found.records[1]
            or not rank == record % self._full.world_size == meta.rank
            or before != begin
            or not 1 < count == tokens + 1
        ):
            return False
        spans = [*self._expected(path, rank, begin, begin + count)]
        last = spans[-1]
        if (
            match["spans"] != ", ".join([_SPAN % tuple(each.values()) for each in spans]).encode()
            or last["shard_path"] != path
            or last["sequence_index"] >= len(ids)
            or ids[last["sequence_index"], last["end"] - 1] != meta.eod
        ):
            return False
        name = match["name"].decode()
        found.ranks[rank], found.records = (first, at, begin + count), (found.records[0], record)
        ends, one, _ = found.shards.get(meta.path, _NOTHING)
        found.shards[meta.path] = ends + 1, one or name, name
        return True

    def problem(self, values: Mapping[str, Any]) -> str:
        """What a line breaks; where it breaks nothing, it is noted."""
        spans, found, count = values["spans"], self._found, values["num_tokens_with_eos"]
        record, problem = self._record(values)
        if problem:
            return problem
        rank = record % self._full.world_size
        try:
            meta, ids = self._shard(spans[0]["shard_path"])
            if meta.rank != rank:
                return "a span is in a shard of another rank"
            begin = meta.shard_index // meta.world_size * self._full.token_count
            begin += spans[0]["sequence_index"] * meta.seq_len + spans[0]["start"]
            row, start, before = found.ranks.get(rank, (found.lines + 1, begin, begin))
            if before != begin:
                return _GAP
            expected = list(self._expected(spans[0]["shard_path"], rank, begin, begin + count))
            if spans != expected:
                return _NOT_ITS_TOKENS
            metas = [meta]
            for span in spans[1:]:
                meta, ids = self._shard(span["shard_path"])
                metas.append(meta)
        except ValueError as error:
            return str(error)
        last = spans[-1]
        if last["sequence_index"] >= len(ids):
            return "a span is behind the end of its shard"
        if ids[last["sequence_index"], last["end"] - 1] != meta.eod:
            return f"its last token is not {meta.eod}"
        found.ranks[rank] = row, start, begin + count
        found.records = (*found.records[:1], record, record)[:2]
        name = values["example_id"]
        for path in dict.fromkeys(each.path for each in metas):
            ends, first, _ = found.shards.get(path, _NOTHING)
            found.shards[path] = ends + (path == meta.path), first or name, name
        return ""

    def _record(self, values: Mapping[str, Any]) -> tuple[int, str]:
        """The record of a line, and what its values break without its spans."""
        digits, spans = values["example_id"][len(self._prefix) :], values["spans"]
        record = int(digits) if digits.isascii() and digits.isdigit() else -1
        count = values["num_tokens_with_eos"]
        if values["example_id"] != f"{self._prefix}{record:06d}":
            return record, f"example_id {values['example_id']!r} is not {self._prefix}<record>"
        if self._found.records and record <= self._found.records[1]:
            return record, _NOT_AFTER
        if values["rank"] != record % self._full.world_size:
            return record, "its rank is not that of its record"
        if not _SHA256.fullmatch(values["text_sha256"]):
            return record, "text_sha256 is no sha256"
        if values["num_tokens"] + 1 != count or not 1 < count <= len(spans) * self._full.seq_len:
            return record, _NOT_ITS_TOKENS
        if [values[name] for name in _FIRST] != [*spans[0].values()][:3]:
            return record, "its first token is not that of its first span"
        return record, ""

    def _expected(self, path: str, rank: int, at: int, end: int) -> Iterator[dict[str, Any]]:
        """Yield the spans of some tokens of a rank. path: of the shard with the first one."""
        size, seq_len, first = (
            self._full.token_count,
            self._full.seq_len,
            at // self._full.token_count,
        )
        while at < end:
            local, inside = divmod(at, size)
            row, start = divmod(inside, seq_len)
            stop = min(seq_len, start + end - at)
            if local > first:
                full, below = self._full, index.below_tokenized(path)
                number, suffix = local * full.world_size + rank, full.path[full.path.rindex(".") :]
                name = names.shard(full.dataset, full.split, number, suffix)
                path, first = path.removesuffix(below) + name, local
            yield {"shard_path": path, "sequence_index": row, "start": start, "end": stop}
            at += stop - start

    def _shard(self, path: str) -> tuple[Meta, id_files.Ids]:
        """The meta and the ids of a shard. Raises ValueError for another path."""
        if path not in self._shards:
            meta_path = self._folder / names.meta(index.below_tokenized(path))
            if not meta_path.is_file():
                raise ValueError(f"{path} is no shard")
            if len(self._shards) > 2 * self._full.world_size:
                self._shards.clear()
            meta = read_meta(meta_path)
            # A number of a plain array is read faster than one of a mapped file.
            self._shards[path] = meta, np.asarray(id_files.of_meta(self._folder, meta))
        return self._shards[path]


_NUMBER: Final = "(0|[1-9][0-9]*)"
_PLAIN: Final = (
    r'\{"example_id": "(?P<name>ID(?P<record>[0-9]{6}|[1-9][0-9]{6,}))", "shard_path": '
    rf'"(?P<path>[!#-\[\]-~]+)", "sequence_index": {_NUMBER}, "token_start": {_NUMBER}, '
    rf'"num_tokens": {_NUMBER}, "num_tokens_with_eos": {_NUMBER}, "spans": \[(?P<spans>[^]]+)\], '
    rf'"rank": {_NUMBER}, "text_sha256": "[0-9a-f]{{64}}"\}}\n'
)
"""A line without extras, as our builder writes it; ID is how its name begins."""
_SPAN: Final = '{"shard_path": "%s", "sequence_index": %d, "start": %d, "end": %d}'
_FIRST: Final = ("shard_path", "sequence_index", "token_start")
_NOT_ITS_TOKENS: Final = "its spans are not those of its number of tokens"


_ROWS_BYTES: Final = 1 << 22
_SAME: Final = (
    *("seq_len", "world_size", "tokenizer_sha256", "source_files", "schema_version"),
    *("tokenizer", "dtype", "eod", "ids"),
)
"""What all shards of a split have in common."""
_Sha256 = Callable[[Path], str] | None
"""Gives the hash of a whole file; None: it is not compared."""
_SUFFIXES: Final = (".pt", id_files.BIN, ".meta.json", id_files.SAFETENSORS)


def shard_laws(
    folder: Path,
    partition: str | None,
    *,
    sampled: bool = False,
    sha256: Callable[[Path], str] = sha256_file,
    workers: int = 1,
) -> Iterator[Violation]:
    """Yield the violations of the shards, metas and index of one split.

    sampled: leaves out the hash of each whole file, which the record has, too; default False.
    sha256: gives that hash; default: by reading the file.
    workers: threads that read shards, and processes that parse an index of more than 64 MiB.
    Memory: the rows of a shard 4 MiB at a time, and some lines of the index.
    """
    corpus, split = corpus_and_split(str(partition))
    name = names.split_index(corpus.name, split)
    if not is_there(folder / name):
        yield Violation("index", name, "is missing")
        return
    shards: list[Meta] = []
    broken = False
    for violation in _shards(folder, corpus.name, split, shards):
        broken = True
        yield violation
    read = partial(_of_tensor, folder, None if sampled else sha256)
    with closing(threaded_map(read, shards, workers)) as found:
        for violation in chain(chain.from_iterable(found), _series(shards)):
            broken = True
            yield violation
    if not broken:
        yield from index_laws(folder, corpus.name, split, shards, workers)


def _of_tensor(folder: Path, sha256: _Sha256, meta: Meta) -> list[Violation]:
    where = meta.path.rpartition(".")[0]
    return [*or_unreadable(tensor_laws(folder, meta, sha256), where)]


def _shards(folder: Path, corpus: str, split: str, shards: list[Meta]) -> Iterator[Violation]:
    """Every file belongs to a shard, and every shard is as its meta says; fills `shards`."""
    inside = folder / corpus / split
    parts = (inside / names.INDEX).with_suffix("")
    stems: dict[str, set[str]] = {}
    for path in sorted(inside.iterdir()):
        suffix = path.name[path.name.find(".") :]
        if path.name.startswith("shard_") and suffix in _SUFFIXES:
            stems.setdefault(path.name.removesuffix(suffix), set()).add(suffix)
        elif path.name != names.INDEX and path != parts:
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


def tensor_laws(folder: Path, meta: Meta, sha256: _Sha256) -> Iterator[Violation]:
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
    if sha256 is not None and (found := sha256(folder / meta.path)) != meta.file_sha256:
        yield Violation("file_sha256", meta.path, f"{found}, its meta file has {meta.file_sha256}")


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
        ids = pt_file.mapped(folder / where)
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
    return _split_laws(subject, subject.partition)


def _split_laws(subject: Subject, partition: str | None) -> Iterator[Violation]:
    return shard_laws(
        subject.folder,
        partition,
        sampled=subject.sampled,
        sha256=subject.sha256,
        workers=subject.config.get("workers", 1),
    )


def tokens(subject: Subject) -> Iterator[Violation]:
    """Yields what the dataset of a tokenizer breaks: its shards, and the manifest of them."""
    if not (found := shard_splits(subject.folder)):
        yield Violation("shards", ".", "there is no <corpus>/<split>/shard_*")
        return
    for corpus, split in found:
        yield from _split_laws(subject, f"{corpus}__{split}")
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
        name = names.split_index(corpus, split)
        if not is_there(subject.folder / name) and subject.missing(
            {name: f"index and tiling of {corpus}/{split}"}
        ):
            yield from other_shard_laws(subject.folder, corpus, split)
        else:
            yield from shard_laws(subject.folder, f"{corpus}__{split}")
