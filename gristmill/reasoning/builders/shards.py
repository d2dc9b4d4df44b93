"""The builder of the token shards of one split. Source: `docs/formats/reasoning.md#shards`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from gristmill.reasoning.builders.shard_join import (
    Form,
    Joiner,
    Source,
    TokenizeSummary,
    summed,
)
from gristmill.reasoning.builders.shard_part import Groups, Task, make_part, read_part, scan
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import id_files, names
from gristmill.reasoning.format.shards import Meta
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import GPT2, TokenizerFile, file_of_pinned, read_verified


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
