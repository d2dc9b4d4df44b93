"""The builder of the Megatron datasets of one shard, from its Harmony shard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders import kd_part
from gristmill.synth.builders.harmony_shard import open_shard, wrong_types
from gristmill.synth.builders.kd_join import Joiner, KDSummary
from gristmill.synth.config import REFUSE, KDConfig
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import O200K, TokenizerFile, file_of_pinned

_PART_ROWS: Final = 4096


def shard_number(harmony_shard: Path) -> str:
    """Return the number of a shard in two digits. Raises BadInput if the name has no number."""
    if (match := re.search(r"shard_(\d+)", harmony_shard.name)) is None:
        raise BadInput(harmony_shard, "no `shard_<number>` in the file name: rename the file")
    return f"{int(match[1]):02d}"


def build_kd_shard(
    harmony_shard: Path,
    out: Path,
    config: KDConfig,
    parts: PartStore | None = None,
    *,
    progress: Progress = SILENT,
) -> KDSummary:
    """Write `{train,valid}/shard_XX_{tokens,lossmask,span}.{bin,idx}` and the trace.

    harmony_shard: the Parquet file.
    out: folder to write, which must not exist.
    config: of the shard.
    parts: store of finished parts, where a killed build continues; default a folder
        in `out` that is removed.
    progress: gets the stage "render", in rows; the total is unknown under a cap.

    A split without documents has no files. Memory does not grow with the number of
    rows. Raises BadInput for another vocabulary or none, for a shard of no rows, and where
    more rows than `config.bad_rows` cannot be rendered, or all. All parts are made before:
    the error has the number of these rows, and row, synth_id and rule of the first of them,
    and another build with the same parts and a greater bound makes no part again.
    """
    return build_shard(harmony_shard, out, config, parts, progress=progress)


def build_shard(
    harmony_shard: Path,
    out: Path,
    config: KDConfig,
    parts: PartStore | None = None,
    *,
    tokenizer: TokenizerFile | None = None,
    make: Callable[[kd_part.Task, Path], dict[str, Any]] = kd_part.make_part,
    task_of: Callable[[kd_part.Task], kd_part.Task] = lambda task: task,
    joiner_of: Callable[[Path, str, Any], Joiner] = Joiner,
    progress: Progress = SILENT,
) -> KDSummary:
    """As `build_kd_shard`, for rows that are rendered in another way.

    tokenizer: of the texts; default None: the vocabulary of the config.
    make: writes the part of a task. task_of: takes a task for Harmony, and returns one for `make`.
    joiner_of: takes folder, number and config, and returns what joins the parts.
    """
    number = shard_number(harmony_shard)
    # Before anything is written.
    (tokenizer or file_of_pinned(O200K, config.vocabulary)).read()
    out.mkdir(parents=True)
    joiner = joiner_of(out, number, config)
    with joiner.open:
        tasks = list(_tasks(harmony_shard, config))
        total = None if config.capped else sum(task.input_rows for task in tasks)
        stage = joiner.open.enter_context(progress.stage("render", unit="rows", total=total))
        # Parts of the engine that a user has turned off are not used again.
        prefix = "rows" if config.engine == AUTO else f"{config.engine}_rows"
        named = (
            (f"{prefix}_{index:06d}", task_of(task))
            for index, task in enumerate(joiner.capped(iter(tasks)))
        )
        # The rest of a cap is known only after all parts before.
        workers = 1 if config.capped else config.workers
        finished = run_parts(make, named, parts, workers, scratch=out)
        with closing(finished):
            for (_, path, summary), task in zip(finished, tasks, strict=False):
                joiner.add(path, summary)
                stage.advance(summary["documents"] if config.capped else task.input_rows)
        joiner.check(harmony_shard)
    return joiner.summary()


def _tasks(shard: Path, config: KDConfig) -> Iterator[kd_part.Task]:
    """Yield tasks of whole row groups with at least `_PART_ROWS` rows, but for the last."""
    with open_shard(shard) as file:
        if (wrong := next(wrong_types(file.schema), None)) is not None:
            raise BadInput(shard, f"{wrong}: is it a Harmony shard?")
        sizes = file.groups
    if not sum(sizes):
        raise BadInput(shard, "has no rows: give the shard a row, since a dataset needs all shards")
    first_row = rows = 0
    groups: list[int] = []
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows >= _PART_ROWS or group == len(sizes) - 1:
            yield kd_part.Task(
                shard=shard,
                row_groups=groups,
                first_row=first_row,
                input_rows=rows,
                valid_fraction=config.valid_fraction,
                vocabulary=config.vocabulary,
                engine=config.engine,
                refuses_unknown_keys=config.unknown_keys == REFUSE,
                rows=None,
                tokens=None,
            )
            first_row, rows, groups = first_row + rows, 0, []
