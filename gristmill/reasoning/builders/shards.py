"""Parts of all ranks become the token shards of a split, or a dataset of any tokenizer.

Source: `docs/formats/reasoning.md#shards`, `docs/formats/reasoning.md#token-datasets`.
"""

from __future__ import annotations

import heapq
import json
import operator
import struct
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.corpora.split_file import part_of
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
from gristmill.run.workers import ordered_map
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import GPT2, TokenizerFile, file_of_pinned, read_verified
from gristmill.vocabularies.tokenizer import Tokenizer


class _Piece(NamedTuple):
    """A finished part. before: the tokens of its rank before it. tokens: its own."""

    path: Path
    summary: Mapping[str, Any]
    before: int
    tokens: int

    def read(self) -> Part:
        return read_part(self.path, self.summary)


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
        self, stem: Path, shape: tuple[int, int], taken: Callable[[], Iterator[memoryview]]
    ) -> dict[str, pt_file.Written]:
        """Write a shard; returns what was written, by suffix. taken: gives its ids, as int32."""
        written, dtype = {}, self.tokenizer.dtype
        for suffix in self.suffixes:
            path = stem.with_name(stem.name + suffix)
            if suffix == ".pt":
                written[suffix] = pt_file.write(path, shape, taken())
            elif self.dtype == "int32":
                written[suffix] = id_files.write(path, shape, taken(), self.dtype)
            else:
                rows = (np.frombuffer(each, "<i4").astype(dtype).data for each in taken())
                written[suffix] = id_files.write(path, shape, rows, self.dtype)
        return written

    def of_meta(self) -> dict[str, Any]:
        """What a meta file says of another tokenizer than GPT-2's."""
        own = self.tokenizer
        if self.is_gpt2:
            return {}
        return {"tokenizer": own.name, "dtype": self.dtype, "eod": own.eod, "ids": own.size}


@dataclass(frozen=True)
class Joiner:
    """What the parts of a split become, in any process: its shards, and the lines of its index.

    pieces: of each rank its parts, one for each group of records.
    """

    out: Path
    source: Source
    config: TokenizeConfig
    form: Form
    pieces: Sequence[Sequence[_Piece]]

    def shards(self) -> Iterator[Callable[[], tuple[dict[str, FileNote], Meta]]]:
        """Yield what writes each shard, rank by rank; a rank without tokens has none."""
        most = self.config.tokens_per_shard
        for rank, every in enumerate(self.pieces):
            pieces = [each for each in every if each.tokens]
            begins = [each.before for each in pieces]
            total = begins[-1] + pieces[-1].tokens if pieces else 0
            for local, begin in enumerate(range(0, total, most)):
                end = min(begin + most, total)
                own = pieces[bisect_right(begins, begin) - 1 : bisect_left(begins, end)]
                only = replace(self, pieces=[own])
                yield partial(only.write_shard, rank, local, begin, end)

    def write_shard(
        self, rank: int, local: int, begin: int, end: int
    ) -> tuple[dict[str, FileNote], Meta]:
        """Write the tokens of a rank from `begin` up to `end` as its shard number `local`.

        The last sequence of a rank is padded.
        """
        config, source, (pieces,) = self.config, self.source, self.pieces
        padding = -(end - begin) % config.seq_len
        number, first, last, ends = local * config.world_size + rank, -1, -1, 0
        parts = [each.read() for each in pieces]
        for each, part in zip(pieces, parts, strict=True):
            stops = each.before + np.cumsum(part.lengths + 1)
            at, behind = np.searchsorted(stops, [begin, end], "right").tolist()
            ends += behind - at
            first = int(part.records[at]) if first < 0 else first
            last = int(part.records[np.searchsorted(stops - part.lengths - 1, end) - 1])

        def taken() -> Iterator[memoryview]:
            for each, part in zip(pieces, parts, strict=True):
                low, high = max(begin - each.before, 0), min(end - each.before, each.tokens)
                yield part.tokens[4 * low : 4 * high]
            yield memoryview(struct.pack("<i", self.form.tokenizer.eod) * padding)

        shape = ((end - begin + padding) // config.seq_len, config.seq_len)
        stem = names.shard(source.corpus, source.split, number, "")
        several = self.form.write(self.out / stem, shape, taken)
        notes = {
            stem + suffix: FileNote(rows=shape[0], sha256=each.sha256, bytes=each.bytes)
            for suffix, each in several.items()
        }
        path, written = stem + self.form.suffixes[0], several[self.form.suffixes[0]]
        meta = Meta(
            dataset=source.corpus,
            split=source.split,
            seq_len=config.seq_len,
            num_sequences=shape[0],
            token_count=end - begin + padding,
            shard_index=number,
            path=path,
            sha256=written.tensor_sha256,
            source_files=({"path": source.path, "sha256": source.sha256},),
            rank=rank,
            world_size=config.world_size,
            file_sha256=written.sha256,
            text_tokens=end - begin - ends,
            eos_tokens=ends,
            pad_tokens=padding,
            first_example=names.example_id(source.corpus, source.split, first),
            last_example=names.example_id(source.corpus, source.split, last),
            tokenizer_sha256=self.form.tokenizer.sha256,
            **self.form.of_meta(),
        )
        (self.out / names.meta(path)).write_bytes(meta_bytes(meta))
        return notes, meta

    def groups(self) -> Iterator[Callable[[], bytes]]:
        """Yield what makes the lines of each group of records, as the index has them."""
        for number in range(len(self.pieces[0])):
            only = replace(self, pieces=[[own[number]] for own in self.pieces])
            yield only.index_lines

    def index_lines(self) -> bytes:
        """The lines of a group, of all ranks by record."""
        every = enumerate(own for (own,) in self.pieces)
        ranks = [self._lines(rank, own.before, own.read()) for rank, own in every]
        lines = ranks[0] if len(ranks) == 1 else heapq.merge(*ranks)
        return "".join([line for _, line in lines]).encode()

    def _lines(self, rank: int, before: int, part: Part) -> Iterator[tuple[int, str]]:
        """Yield records and lines of a part, as `json.dumps` would make them of their keys."""
        seq_len, per_shard = self.config.seq_len, self.config.tokens_per_shard
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
        first = names.example_id(self.source.corpus, self.source.split, 0).removesuffix("000000")
        head, digests = f'{{"example_id": {json.dumps(first)[:-1]}', part.digests
        path_of = cache(partial(self._shard_path, rank))
        extras: Sequence[str] = part.extras or [""] * len(in_one)
        for place, (record, shard, row, column, length) in enumerate(rows):
            path = path_of(shard)
            spans = f'{path}{row}, "start": {column}, "end": {column + length + 1}}}'
            if not in_one[place]:
                spans = self._spans(path_of, int(starts[place]), int(ends[place]))
            yield (
                record,
                f'{head}{record:06d}", {path[1:]}{row}, "token_start": {column}, '
                f'"num_tokens": {length}, "num_tokens_with_eos": {length + 1}, "spans": [{spans}], '
                f'"rank": {rank}, "text_sha256": "{digests[64 * place : 64 * place + 64]}"'
                f"{extras[place]}}}\n",
            )

    def _spans(self, path_of: Callable[[int], str], start: int, end: int) -> str:
        """The spans of an example in several sequences. start, end: tokens of the rank."""
        spans, seq_len = [], self.config.seq_len
        while start < end:
            local, inside = divmod(start, self.config.tokens_per_shard)
            row, column = divmod(inside, seq_len)
            stop = min(seq_len, column + end - start)
            text = path_of(local)
            spans.append(f'{text}{row}, "start": {column}, "end": {stop}}}')
            start += stop - column
        return ", ".join(spans)

    def _shard_path(self, rank: int, local: int) -> str:
        """How a span begins, up to its row. local: number of the shard in its rank."""
        number = local * self.config.world_size + rank
        path = names.shard(self.source.corpus, self.source.split, number, self.form.suffixes[0])
        path = index.shard_path(self.config.path_prefix, path, self.form.folder)
        return f'{{"shard_path": {json.dumps(path)}, "sequence_index": '

    def join(self, parts: Sequence[int]) -> tuple[TokenizeSummary, list[Meta]]:
        """Write all; return the counts, and the metas. parts: that of each group, from 0."""
        (self.out / self.source.corpus / self.source.split).mkdir(parents=True)
        counts, metas, files = Counter[str](), list[Meta](), dict[str, FileNote]()
        for piece in chain.from_iterable(self.pieces):
            counts.update({name: piece.summary[name] for name in COUNTS})
        workers, call = self.config.workers, operator.call
        with closing(ordered_map(call, self.shards(), workers)) as shards:
            for notes, meta in shards:
                files |= notes
                metas.append(meta)
        path = Path(names.split_index(self.source.corpus, self.source.split))
        is_parted = len({*parts}) > 1
        with closing(ordered_map(call, self.groups(), workers)) as lines:
            for number, own in groupby(zip(parts, lines, strict=True), key=itemgetter(0)):
                name = part_of(path, number) if is_parted else path
                (self.out / name).parent.mkdir(exist_ok=True)
                rows = 0
                with HashedFile(self.out / name) as file:
                    for _, data in own:
                        file.write(data)
                        rows += data.count(b"\n")
                note = FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)
                files[name.as_posix()] = note
        if not parts:
            with HashedFile(self.out / path) as file:
                files[path.as_posix()] = FileNote(rows=0, sha256=file.sha256, bytes=0)
        summary = TokenizeSummary(
            files=files,
            **{name: counts[name] for name in COUNTS},
            shards=len(metas),
            sequences=sum(meta.num_sequences for meta in metas),
            eos_tokens=counts["examples"],
            pad_tokens=sum(meta.pad_tokens for meta in metas),
        )
        return summary, metas


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
    below, found, metas = names.NORMALIZED.partition("/")[2], list[TokenizeSummary](), list[Meta]()
    ranks_of, of = range(config.world_size), (config, form.tokenizer)
    tasks = [
        [[*tasks_of_rank(split, *of, groups, rank)] for rank in ranks_of]
        for split, groups in zip(splits, scanned, strict=True)
    ]
    every = (task for split in tasks for rank in split for task in rank)
    named = ((part_name(config, task, form), task) for task in every)
    total = sum(groups.records for groups in scanned)
    # Shards and index are made of the parts once all are there, so that these are kept till then.
    with ExitStack() as stack:
        scratch = parts or PartStore(Path(stack.enter_context(TemporaryDirectory(dir=out))))
        finished = run_parts(make_part, named, scratch, config.workers, scratch=out)
        stage = stack.enter_context(progress.stage("tokenise", "rows", total))
        stack.enter_context(closing(finished))
        every_piece = []
        for ranks in tasks:
            every_piece.append(pieces := list[list[_Piece]]())
            for own in ranks:
                pieces.append(before := list[_Piece]())
                for _, (_, path, summary) in zip(own, finished, strict=False):
                    at = before[-1].before + before[-1].tokens if before else 0
                    before.append(_Piece(path, summary, at, summary["sizes"][0] // 4))
                    stage.advance(summary["examples"] + summary["skipped_empty"])
        next(finished, None)  # at its end the workers are free for what is joined
        for split, groups, pieces in zip(splits, scanned, every_piece, strict=True):
            jsonl = f"{config.path_prefix}/{below}/{names.normalized(split.corpus, split.split)}"
            source = Source(split.corpus, split.split, jsonl, groups.sha256)
            joined = Joiner(out, source, config, form, pieces).join([g.part for g in groups.groups])
            found.append(joined[0])
            metas += joined[1]
    return summed(found), metas


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
