"""The parts of token shards by rank, for array jobs; the run that finds all of them publishes.

See also `shards.py`: the builder, which joins the parts of all ranks.
Source: `docs/formats/reasoning.md#shards`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

from gristmill.reasoning.builders.shard_join import Form
from gristmill.reasoning.builders.shard_part import Groups, Task, make_part, scan
from gristmill.reasoning.builders.shards import Split, gpt2_form, part_name, tasks_of_rank
from gristmill.reasoning.config import TokenizeConfig
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import Progress


class DatasetRanks:
    """The parts that `shards.pack` of the same arguments makes, by rank."""

    def __init__(self, splits: Sequence[Split], config: TokenizeConfig, form: Form) -> None:
        self.world_size = config.world_size
        self._splits, self._config, self._form = splits, config, form

    def names(self, rank: int) -> Sequence[str]:
        """Names of the parts of a rank."""
        return [part_name(self._config, task, self._form) for task in self._tasks(rank)]

    def make(self, rank: int, parts: PartStore, progress: Progress) -> None:
        """Make the parts of a rank that the store does not have.

        Raises as `shards.pack`.
        """
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
