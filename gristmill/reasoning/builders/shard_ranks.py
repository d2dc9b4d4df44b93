"""The parts of a split by rank, for array jobs; the run that finds all of them publishes.

See also `shards.py`: the builder, which joins the parts of all ranks.
Source: `docs/formats/reasoning.md#shards`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

from gristmill.reasoning.builders.shard_part import Groups, Task, make_part, scan
from gristmill.reasoning.builders.shards import part_name, tasks_of_rank
from gristmill.reasoning.config import TokenizeConfig
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import Progress
from gristmill.vocabularies.pinned import GPT2, read_verified


class SplitRanks:
    """The parts that `tokenize` of the same arguments makes, by rank.

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
        self.world_size = config.world_size
        self._jsonl, self._config = jsonl, config
        self._names = corpus or jsonl.parent.name, split or jsonl.stem

    def names(self, rank: int) -> Sequence[str]:
        """Names of the parts of a rank."""
        return [part_name(self._config, task) for task in self._tasks(rank)]

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        """Make the parts of a rank that the store does not have.

        Raises as `shards.tokenize`.
        """
        config = self._config
        read_verified(GPT2, config.vocabulary)
        tasks = self._tasks(rank)
        named = ((part_name(config, task), task) for task in tasks)
        finished = run_parts(make_part, named, parts, config.workers, scratch=parts.folder)
        with progress.stage("tokenise", "rows") as stage, closing(finished):
            for _, _, summary in finished:
                stage.advance(summary["examples"] + summary["skipped_empty"])

    @cached_property
    def _groups(self) -> Groups:
        return scan(self._jsonl, self.world_size)

    def _tasks(self, rank: int) -> list[Task]:
        corpus, split = self._names
        return list(tasks_of_rank(self._jsonl, corpus, split, self._config, self._groups, rank))
