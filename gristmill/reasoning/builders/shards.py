"""Parts of all ranks become the token shards of a split, or a dataset of any tokenizer.

Source: `docs/formats/reasoning.md#shards`, `docs/formats/reasoning.md#token-datasets`.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.hashing import HashedFile
from gristmill.reasoning.builders.align import AlignSummary, align
from gristmill.reasoning.builders.shard_part import (
    COUNTS,
    Groups,
    Part,
    Task,
    make_part,
    read_part,
    scan,
)
from gristmill.reasoning.config import ALIGNED, CorpusAlignConfig, TokenizeConfig, TokensConfig
from gristmill.reasoning.format import id_files, index, names, pt_file
from gristmill.reasoning.format.shards import Meta, manifest_entries, meta_bytes
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import GPT2, TokenizerFile, file_of_pinned, read_verified
from gristmill.vocabularies.tokenizer import Tokenizer

_LINES: Final = 4096


class SplitIndex:
    """Writes the index of a split. The lines of one rank come in the order of its records."""

    def __init__(
        self,
        out: Path,
        corpus: str,
        split: str,
        path_of: Callable[[int], str],
        sizes: tuple[int, int, int],
    ) -> None:
        self.name = names.split_index(corpus, split)
        self._path = out / self.name
        self._path_of = path_of
        self._seq_len, self._tokens_per_shard, self._world_size = sizes
        first = names.example_id(corpus, split, 0).removesuffix("000000")
        self._start = f'{{"example_id": {json.dumps(first)[:-1]}'
        self._shard_texts: dict[int, tuple[str, str]] = {}
        self._files: dict[int, Path] = {}
        self._open: HashedFile | None = None
        self._rank = -1
        self.rows = 0

    def add(self, rank: int, before: int, part: Part) -> None:
        """Append the lines of a part."""
        if rank != self._rank:
            self.close_rank()
            self._rank = rank
            alone = self._world_size == 1
            path = self._path if alone else self._path.with_name(f"index.{rank:05d}.jsonl")
            self._files[rank] = path
            self._open = HashedFile(path)
        assert self._open is not None
        lines = self._lines(rank, before, part)
        while some := list(islice(lines, _LINES)):
            self._open.write("".join(some).encode())
            self.rows += len(some)

    def close_rank(self) -> None:
        """Close the file of the rank that was added last."""
        if self._open is not None:
            self._open.close()

    def finish(self) -> FileNote:
        """Complete the file of the split; return its note."""
        self.close_rank()
        if self._world_size == 1 and self._open is not None:
            file = self._open
        else:
            with HashedFile(self._path) as file:
                self._merge(file)
        return FileNote(rows=self.rows, sha256=file.sha256, bytes=file.bytes)

    def _merge(self, file: HashedFile) -> None:
        """Write the lines of all ranks by record, and remove the files of the ranks."""
        at = len(self._start.encode())

        def record(line: bytes) -> int:
            return int(line[at : line.index(b'"', at)])

        with ExitStack() as stack:
            opened = [stack.enter_context(path.open("rb")) for path in self._files.values()]
            merged = heapq.merge(*opened, key=record)
            while some := list(islice(merged, _LINES)):
                file.write(b"".join(some))
        for path in self._files.values():
            path.unlink()

    def _lines(self, rank: int, before: int, part: Part) -> Iterator[str]:
        """Yield the lines of a part, as `json.dumps` would make them of their keys."""
        seq_len, per_shard = self._seq_len, self._tokens_per_shard
        with_eos = part.lengths + 1
        ends = before + np.cumsum(with_eos)
        starts = ends - with_eos
        in_one = ((ends - 1) // seq_len == starts // seq_len).tolist()
        columns = (starts // per_shard, starts % per_shard // seq_len, starts % seq_len)
        rows = zip(
            part.records.tolist(),
            *(column.tolist() for column in columns),
            part.lengths.tolist(),
            strict=True,
        )
        head, digests = self._start, part.digests
        extras: Sequence[str] = part.extras or [""] * len(in_one)
        for place, (record, shard, row, column, length) in enumerate(rows):
            path, span = self._texts_of(rank, shard)
            if in_one[place]:
                spans = f'{span}{row}, "start": {column}, "end": {column + length + 1}}}'
            else:
                spans = self._spans(rank, int(starts[place]), int(ends[place]))
            yield (
                f'{head}{record:06d}{path}{row}, "token_start": {column}, "num_tokens": {length}, '
                f'"num_tokens_with_eos": {length + 1}, "spans": [{spans}], "rank": {rank}, '
                f'"text_sha256": "{digests[64 * place : 64 * place + 64]}"{extras[place]}}}\n'
            )

    def _spans(self, rank: int, start: int, end: int) -> str:
        """The spans of an example in several sequences. start, end: tokens of the rank."""
        spans = []
        while start < end:
            shard, inside = divmod(start, self._tokens_per_shard)
            row, column = divmod(inside, self._seq_len)
            stop = min(self._seq_len, column + end - start)
            text = self._texts_of(rank, shard)[1]
            spans.append(f'{text}{row}, "start": {column}, "end": {stop}}}')
            start += stop - column
        return ", ".join(spans)

    def _texts_of(self, rank: int, local: int) -> tuple[str, str]:
        """What follows an id up to the row, and how a span begins."""
        number = local * self._world_size + rank
        if number not in self._shard_texts:
            path = json.dumps(self._path_of(number))
            self._shard_texts[number] = (
                f'", "shard_path": {path}, "sequence_index": ',
                f'{{"shard_path": {path}, "sequence_index": ',
            )
        return self._shard_texts[number]


@dataclass(frozen=True)
class TokenizeSummary(Summary):
    """Counts of one split."""

    examples: int
    skipped_empty: int
    with_cot: int
    shards: int
    sequences: int
    text_tokens: int
    eos_tokens: int
    pad_tokens: int
    control_texts: int
    fast_texts: int
    tiktoken_texts: int
    compared_texts: int


def summed(summaries: Sequence[TokenizeSummary]) -> TokenizeSummary:
    """The counts and files of several splits together."""
    files: dict[str, FileNote] = {}
    counts: Counter[str] = Counter()
    for each in summaries:
        values = dict(vars(each))
        files |= values.pop("files")
        counts.update(values)
    return TokenizeSummary(files=files, **counts)


@dataclass(frozen=True)
class Source:
    """The normalised file. corpus, split: of it. path: below the data root. sha256: hex."""

    corpus: str
    split: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Form:
    """How shards are stored.

    suffixes: of the files of a shard, one of `.pt`, `.bin` and `.safetensors`; meta and index name
        the first one.
    """

    tokenizer: TokenizerFile
    suffixes: tuple[str, ...]
    folder: str
    is_gpt2: bool = False

    @property
    def dtype(self) -> str:
        """The type of the ids in the files."""
        return "int32" if self.is_gpt2 else self.tokenizer.dtype.name

    def write(
        self, stem: Path, shape: tuple[int, int], taken: Sequence[memoryview]
    ) -> dict[str, pt_file.Written]:
        """Write a shard; returns what was written, by suffix. taken: its ids, as int32."""
        if self.dtype != "int32":
            taken = [np.frombuffer(each, "<i4").astype(self.tokenizer.dtype).data for each in taken]
        written = {}
        for suffix in self.suffixes:
            path = stem.with_name(stem.name + suffix)
            if suffix == ".pt":
                written[suffix] = pt_file.write(path, shape, taken)
            else:
                written[suffix] = id_files.write(path, shape, taken, self.dtype)
        return written

    def of_meta(self) -> dict[str, Any]:
        """What a meta file says of another tokenizer than GPT-2's."""
        own = self.tokenizer
        if self.is_gpt2:
            return {}
        return {"tokenizer": own.name, "dtype": self.dtype, "eod": own.eod, "ids": own.size}


@dataclass
class _Shard:
    """A shard whose tokens are not complete. eos: ends of examples. first, last: records."""

    eos: int = 0
    first: int = -1
    last: int = -1


class Joiner:
    """Packs the parts of one rank after the other into shards. At most one shard is in memory."""

    def __init__(self, out: Path, source: Source, config: TokenizeConfig, form: Form) -> None:
        self._out, self._source, self._config, self._form = out, source, config, form
        (out / source.corpus / source.split).mkdir(parents=True)
        sizes = (config.seq_len, config.tokens_per_shard, config.world_size)
        self._index = SplitIndex(out, source.corpus, source.split, self._shard_path, sizes)
        self._pad = struct.pack("<i", form.tokenizer.eod)
        self.metas: list[Meta] = []
        self._counts: Counter[str] = Counter()
        self._files: dict[str, FileNote] = {}
        self._rank = 0
        self._begin(0)

    def _shard_path(self, number: int) -> str:
        path = names.shard(self._source.corpus, self._source.split, number, self._form.suffixes[0])
        return index.shard_path(self._config.path_prefix, path, self._form.folder)

    def _begin(self, rank: int) -> None:
        self._rank, self._tokens, self._written = rank, 0, 0
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._marks: dict[int, _Shard] = {}

    def add(self, rank: int, part: Part, summary: Mapping[str, Any]) -> None:
        """Append one part. The parts of a rank come in order, rank by rank."""
        if rank != self._rank:
            self._end_rank()
            self._begin(rank)
        self._counts.update({name: summary[name] for name in COUNTS})
        self._index.add(rank, self._tokens, part)
        if not len(part.lengths):
            return
        self._mark(part)
        self._waiting.append(part.tokens)
        self._waiting_bytes += part.tokens.nbytes
        self._tokens += part.tokens.nbytes // 4
        while self._waiting_bytes >= 4 * self._config.tokens_per_shard:
            self._write(4 * self._config.tokens_per_shard)

    def summary(self) -> TokenizeSummary:
        """Complete the files, and return the counts."""
        self._end_rank()
        self._files[self._index.name] = self._index.finish()
        counts = {name: self._counts[name] for name in COUNTS}
        return TokenizeSummary(
            files=self._files,
            **counts,
            eos_tokens=counts["examples"],
            **{name: self._counts[name] for name in ("shards", "sequences", "pad_tokens")},
        )

    def _end_rank(self) -> None:
        """Pad the last sequence of a rank, and write its last shard."""
        if padding := -self._waiting_bytes // 4 % self._config.seq_len:
            self._waiting.append(memoryview(self._pad * padding))
            self._waiting_bytes += 4 * padding
            self._counts["pad_tokens"] += padding
        if self._waiting_bytes:
            self._write(self._waiting_bytes, padding)

    def _mark(self, part: Part) -> None:
        """Note which examples are in which shards."""
        size = self._config.tokens_per_shard
        ends = self._tokens + np.cumsum(part.lengths + 1)
        starts = ends - part.lengths - 1
        for shard in range(int(starts[0]) // size, (int(ends[-1]) - 1) // size + 1):
            mark = self._marks.setdefault(shard, _Shard())
            begin = int(np.searchsorted(ends, shard * size, "right"))
            mark.eos += int(np.searchsorted(ends, (shard + 1) * size, "right")) - begin
            if mark.first < 0:
                mark.first = int(part.records[begin])
            mark.last = int(part.records[np.searchsorted(starts, (shard + 1) * size) - 1])

    def _write(self, size: int, padding: int = 0) -> None:
        """Write the next `size` bytes as a shard; the last `padding` tokens of it are padding."""
        taken, left = [], size
        while left:
            view = self._waiting.popleft()
            if view.nbytes > left:
                self._waiting.appendleft(view[left:])
                view = view[:left]
            taken.append(view)
            left -= view.nbytes
        self._waiting_bytes -= size
        config, source, mark = self._config, self._source, self._marks.pop(self._written)
        number = self._written * config.world_size + self._rank
        shape = (size // 4 // config.seq_len, config.seq_len)
        stem = names.shard(source.corpus, source.split, number, "")
        several = self._form.write(self._out / stem, shape, taken)
        for suffix, each in several.items():
            note = FileNote(rows=shape[0], sha256=each.sha256, bytes=each.bytes)
            self._files[stem + suffix] = note
        path, written = stem + self._form.suffixes[0], several[self._form.suffixes[0]]
        meta = Meta(
            dataset=source.corpus,
            split=source.split,
            seq_len=config.seq_len,
            num_sequences=shape[0],
            token_count=size // 4,
            shard_index=number,
            path=path,
            sha256=written.tensor_sha256,
            source_files=({"path": source.path, "sha256": source.sha256},),
            rank=self._rank,
            world_size=config.world_size,
            file_sha256=written.sha256,
            text_tokens=size // 4 - mark.eos - padding,
            eos_tokens=mark.eos,
            pad_tokens=padding,
            first_example=names.example_id(source.corpus, source.split, mark.first),
            last_example=names.example_id(source.corpus, source.split, mark.last),
            tokenizer_sha256=self._form.tokenizer.sha256,
            **self._form.of_meta(),
        )
        self.metas.append(meta)
        (self._out / names.meta(path)).write_bytes(meta_bytes(meta))
        self._written += 1
        self._counts["shards"] += 1
        self._counts["sequences"] += shape[0]


def tokenize(
    jsonl: Path,
    out: Path,
    config: TokenizeConfig,
    parts: PartStore | None = None,
    *,
    corpus: str | None = None,
    split: str | None = None,
    progress: Progress = SILENT,
) -> TokenizeSummary:
    """Write `<corpus>/<split>/shard_%05d.pt`, their metas, and `index.jsonl`, of all ranks.

    jsonl: the normalised file. Record k belongs to rank k modulo `config.world_size`.
    out: folder to write, which must not exist.
    config: of the split.
    parts: store of finished parts, where a killed build continues; default a folder in `out`
        that is removed.
    corpus, split: default by the path `<corpus>/<split>.jsonl`.
    progress: gets the stage "tokenise", in rows.

    A rank without tokens has no shard. Memory does not grow with the number of records.
    Raises BadInput with the line for one that is no record or cannot be encoded, and for
    another vocabulary or none; EnginesDiffer as `compare.check_equal`.
    """
    read_verified(GPT2, config.vocabulary)  # before anything is written
    source = Split(jsonl, corpus or jsonl.parent.name, split or jsonl.stem)
    return pack([source], out, config, gpt2_form(config), parts, progress)[0]


class Split(NamedTuple):
    """A normalised file, and the corpus and the split that it is of."""

    jsonl: Path
    corpus: str
    split: str


def gpt2_form(config: TokenizeConfig) -> Form:
    """How the token shards of GPT-2 are stored."""
    suffixes = (".pt", id_files.SAFETENSORS) if config.safetensors else (".pt",)
    tokenizer = file_of_pinned(GPT2, config.vocabulary)
    return Form(tokenizer, suffixes, names.TOKENIZED, is_gpt2=True)


def pack(
    splits: Sequence[Split],
    out: Path,
    config: TokenizeConfig,
    form: Form,
    parts: PartStore | None,
    progress: Progress,
) -> tuple[TokenizeSummary, list[Meta]]:
    """Write shards, metas and the index of each split; returns the counts of all, and the metas.

    splits: with unequal names. form: of the files. out, parts, progress: as of `tokenize`.
    """
    scanned = [scan(split.jsonl, config.world_size) for split in splits]
    out.mkdir(parents=True)
    below = names.NORMALIZED.partition("/")[2]
    joiners = []
    for split, groups in zip(splits, scanned, strict=True):
        path = f"{config.path_prefix}/{below}/{names.normalized(split.corpus, split.split)}"
        source = Source(split.corpus, split.split, path, groups.sha256)
        joiners.append(Joiner(out, source, config, form))
    tasks = [
        (joiner, task)
        for joiner, split, groups in zip(joiners, splits, scanned, strict=True)
        for rank in range(config.world_size)
        for task in tasks_of_rank(split, config, form.tokenizer, groups, rank)
    ]
    named = ((part_name(config, task, form), task) for _, task in tasks)
    finished = run_parts(make_part, named, parts, config.workers, scratch=out)
    total = sum(groups.records for groups in scanned)
    with progress.stage("tokenise", "rows", total) as stage, closing(finished):
        for (_, part, summary), (joiner, task) in zip(finished, tasks, strict=True):
            joiner.add(task.rank, read_part(part, summary), summary)
            stage.advance(summary["examples"] + summary["skipped_empty"])
    summaries = [joiner.summary() for joiner in joiners]
    return summed(summaries), [meta for joiner in joiners for meta in joiner.metas]


def tasks_of_rank(
    split: Split, config: TokenizeConfig, tokenizer: TokenizerFile, groups: Groups, rank: int
) -> Iterator[Task]:
    """Yield the tasks of a rank, in the order of its records."""
    for group in groups.groups:
        yield Task(
            jsonl=split.jsonl,
            corpus=split.corpus,
            split=split.split,
            group=group,
            rank=rank,
            world_size=config.world_size,
            tokenizer=tokenizer,
            engine=config.engine,
        )


def part_name(config: TokenizeConfig, task: Task, form: Form) -> str:
    """Name of a part in its store, which belongs to one artifact and one config."""
    # Parts of the engine that a user has turned off are not used again.
    prefix = "" if config.engine == AUTO else f"{config.engine}_"
    if not form.is_gpt2:
        prefix += f"{task.corpus}__{task.split}_"
    return f"{prefix}rank_{task.rank:05d}_record_{task.group.first_record:09d}"


class DatasetRanks:
    """The parts that `shards.pack` of the same arguments makes, by rank."""

    def __init__(self, splits: Sequence[Split], config: TokenizeConfig, form: Form) -> None:
        self.world_size = config.world_size
        self._splits, self._config, self._form = splits, config, form

    def names(self, rank: int) -> Sequence[str]:
        """Names of the parts of a rank."""
        return [part_name(self._config, task, self._form) for task in self._tasks(rank)]

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        """Make the parts of a rank that the store does not have."""
        config = self._config
        self._form.tokenizer.read()
        named = ((part_name(config, task, self._form), task) for task in self._tasks(rank))
        finished = run_parts(make_part, named, parts, config.workers, scratch=parts.folder)
        with progress.stage("tokenise", "rows") as stage, closing(finished):
            for _, _, summary in finished:
                stage.advance(summary["examples"] + summary["skipped_empty"])

    @cached_property
    def _groups(self) -> list[Groups]:
        return [scan(split.jsonl, self.world_size) for split in self._splits]

    def _tasks(self, rank: int) -> list[Task]:
        return [
            task
            for split, groups in zip(self._splits, self._groups, strict=True)
            for task in tasks_of_rank(split, self._config, self._form.tokenizer, groups, rank)
        ]


class SplitRanks(DatasetRanks):
    """The parts that `shards.tokenize` of the same arguments makes, by rank.

    corpus, split: default by the path `<corpus>/<split>.jsonl`.
    """

    def __init__(
        self,
        jsonl: Path,
        config: TokenizeConfig,
        *,
        corpus: str | None = None,
        split: str | None = None,
    ) -> None:
        one = Split(jsonl, corpus or jsonl.parent.name, split or jsonl.stem)
        super().__init__([one], config, gpt2_form(config))


def dataset_form(config: TokensConfig, tokenizer: TokenizerFile, name: str) -> Form:
    """How the shards of a dataset are stored. name: of the dataset."""
    return Form(tokenizer, config.suffixes, f"{names.TOKENS}/{name}")


def tokenize_dataset(
    splits: Sequence[Split],
    out: Path,
    config: TokensConfig,
    form: Form,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
) -> TokenizeSummary:
    """Write the shards, metas and index of each split, and `manifest.json` of all shards.

    With the output "alignment" also `<corpus>/<split>.align.jsonl`, as of GPT-2's shards.

    splits: with unequal names. out: folder to write, which must not exist.
    form: as `dataset_form` returns it. parts, progress: as of `shards.tokenize`.

    Raises BadInput with the line for a record that cannot be encoded, and where the tokenizer's
    file is another one; EnginesDiffer as `compare.check_equal`.
    """
    form.tokenizer.read()  # before anything is written
    summary, metas = pack(splits, out, config, form, parts, progress)
    with HashedFile(out / names.MANIFEST) as file:
        for entry in manifest_entries(sorted(metas, key=lambda meta: meta.path)):
            file.write(entry)
    note = FileNote(rows=len(metas), sha256=file.sha256, bytes=file.bytes)
    files = {**summary.files, names.MANIFEST: note}
    for split in splits if ALIGNED in config.outputs else ():
        files |= _aligned(split, out, config, form, progress).files
    return replace(summary, files=files)


def _aligned(
    split: Split, out: Path, config: TokensConfig, form: Form, progress: Progress
) -> AlignSummary:
    marks = json.loads(config.steps or "{}").get(f"{split.corpus}__{split.split}")
    own = CorpusAlignConfig(
        vocabulary=form.tokenizer.path,
        workers=config.workers,
        engine=config.engine,
        steps="" if marks is None else json.dumps(marks, sort_keys=True),
    )
    tokenizer = Tokenizer(**vars(form.tokenizer))
    try:
        return align(split.jsonl, out, out, own, progress=progress, tokenizer=tokenizer)
    except GristmillError as error:
        if isinstance(error, BadInput):
            raise
        # The probe that says whether tokens are the bytes of a text has not all texts.
        raise GristmillError(f'{error}: leave "{ALIGNED}" out of outputs') from error
