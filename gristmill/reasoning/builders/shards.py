"""The builder of the token shards of one split, from its normalised file.

See also `shard_part.py`: groups of records, and each to a part; `shard_join.py`: the parts to the
files; `shard_ranks.py`: the parts of one rank.
Source: `docs/formats/reasoning.md#shards`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gristmill.reasoning.builders.shard_join import Joiner, Source, TokenizeSummary
from gristmill.reasoning.builders.shard_part import Groups, Task, make_part, read_part, scan
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import GPT2, read_verified


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
    corpus, split = corpus or jsonl.parent.name, split or jsonl.stem
    groups = scan(jsonl, config.world_size)
    below = names.NORMALIZED.partition("/")[2]
    path = f"{config.path_prefix}/{below}/{names.normalized(corpus, split)}"
    out.mkdir(parents=True)
    joiner = Joiner(out, Source(corpus, split, path, groups.sha256), config)
    tasks = [
        task
        for rank in range(config.world_size)
        for task in tasks_of_rank(jsonl, corpus, split, config, groups, rank)
    ]
    named = ((part_name(config, task), task) for task in tasks)
    finished = run_parts(make_part, named, parts, config.workers, scratch=out)
    with progress.stage("tokenise", "rows", groups.records) as stage, closing(finished):
        for (_, part, summary), task in zip(finished, tasks, strict=True):
            joiner.add(task.rank, read_part(part, summary), summary)
            stage.advance(summary["examples"] + summary["skipped_empty"])
    return joiner.summary()


def tasks_of_rank(
    jsonl: Path, corpus: str, split: str, config: TokenizeConfig, groups: Groups, rank: int
) -> Iterator[Task]:
    """Yield the tasks of a rank, in the order of its records."""
    for group in groups.groups:
        yield Task(
            jsonl=jsonl,
            corpus=corpus,
            split=split,
            group=group,
            rank=rank,
            world_size=config.world_size,
            vocabulary=config.vocabulary,
            engine=config.engine,
        )


def part_name(config: TokenizeConfig, task: Task) -> str:
    """Name of a part in its store, which belongs to one file and one config."""
    # Parts of the engine that a user has turned off are not used again.
    prefix = "" if config.engine == AUTO else f"{config.engine}_"
    return f"{prefix}rank_{task.rank:05d}_record_{task.group.first_record:09d}"
