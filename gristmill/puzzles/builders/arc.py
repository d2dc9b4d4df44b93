"""ARC tasks to a dataset: augmented puzzles with ids, grids placed among EOS borders.

Its folder `trm/` has the same arrays, and names and tasks as TRM splits them: HRM and TRM split at
other marks, and a name that is misread is no error. Source: docs/formats/puzzles.md#arc-for-trm
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill.contract import BadInput, FileNote
from gristmill.puzzles.builders.arc_leaks import Selection, select
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.domains.arc_augment import (
    KIND,
    TRANSLATION,
    TRM_MARK,
    FlatTask,
    flat,
    task_hash,
)
from gristmill.puzzles.domains.arc_grid import ENCODING, SEQ_LEN
from gristmill.puzzles.domains.source_key import source_key
from gristmill.puzzles.format import names
from gristmill.puzzles.format.batch import Batch
from gristmill.puzzles.format.metadata import SourceFile, read_identifiers
from gristmill.puzzles.format.part_file import Sets
from gristmill.puzzles.raw.arc_collections import is_collection, part_of
from gristmill.puzzles.raw.arc_tasks import ArcTask, Parts, read_tasks
from gristmill.puzzles.raw.file_forms import source_folders, source_labels
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import threaded_map
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

TRIES: Final = 5
"""Draws for each augmentation that is wanted, at most."""
TASK_HASH: Final = "task_hash"
"""Fact of a source file: the hash of its pairs that the dataset holds."""
LEFT_OUT: Final = "left_out"
"""Fact of a source file: how many of its test pairs are left out, where some are."""
TASK: Final = "task"
"""Fact of a source file: the id of the task in it, where it has `_` or the file has several."""
_PART_BYTES: Final = 16 << 20
_ZERO: Final = ord("0")


@dataclass(frozen=True)
class ArcSummary(DatasetSummary):
    """What was built, by ARC's own counts."""

    tasks: int
    duplicates_removed: int
    not_full: int
    leaks_dropped: int
    known_leaks: int
    files_dropped: int
    equal_tasks: int
    training_tasks: Mapping[str, int]
    evaluation_tasks: Mapping[str, int]


class _Source(NamedTuple):
    """One task for a worker."""

    number: int
    base: str
    task: FlatTask
    pairs: Mapping[names.Split, tuple[int, ...]]


def build_arc(
    dirs: Sequence[Path] | Path,
    out: Path,
    config: ArcConfig,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> ArcSummary:
    """Build the dataset of ARC tasks.

    dirs: one or more sources, each a folder of folders of `.json` tasks; their order and that of
        the files changes nothing.
    out: a folder that does not exist yet.
    config: see `ArcConfig`.
    parts: keeps finished parts for the build after a kill; default None.
    progress: gets the files read, then the parts, then the rows.
    links: what happens to links in the sources; default: they are refused.

    Raises BadInput for a source or task that breaks a rule, an id that two files have, a test
    pair that training has (see `arc_leaks.select`), and a split without examples.
    """
    folders = source_folders(dirs)
    tasks: list[ArcTask] = []
    with progress.stage("read", "files", None) as stage:
        for folder in folders:
            read = read_tasks(folder, links, Parts(config.evaluation, config.subsets))
            tasks += read
            stage.advance(len(read))
    selection = select(tasks, config)
    _check_parts(tasks, folders, config)
    plan = Plan(
        kind=KIND,
        encoding=ENCODING,
        config=config,
        tasks=list(_pieces(selection, config)),
        make=MakeArc(config.seed, config.num_aug),
        files=_source_files(selection, folders),
        first_identifier=config.first_identifier,
        num_puzzle_identifiers=config.num_puzzle_identifiers,
        engine=threaded_map,
    )
    built = build_dataset(plan, out, parts, progress)
    duplicates, not_full = _counts(out, config)
    files = {**built.files, **write_trm(out, selection, built.files)}
    return ArcSummary(
        **{**{spec.name: getattr(built, spec.name) for spec in fields(built)}, "files": files},
        tasks=len(selection.tasks),
        duplicates_removed=duplicates,
        not_full=not_full,
        leaks_dropped=selection.leaks_dropped,
        known_leaks=selection.known_leaks,
        files_dropped=selection.files_dropped,
        equal_tasks=len(plan.files) - len({file.facts[TASK_HASH] for file in plan.files}),
        training_tasks=_of_sources(selection, folders, is_evaluation=False),
        evaluation_tasks=_of_sources(selection, folders, is_evaluation=True),
    )


@dataclass(frozen=True)
class MakeArc:
    """Makes the batches of some tasks: the tasks themselves, then their augmentations."""

    seed: int
    num_aug: int

    def __call__(self, sources: Sequence[_Source]) -> dict[Sets, Batch]:
        """Return the batches of the splits that have examples, the training split first."""
        from gristmill.puzzles.domains.arc_kernels import kept_draws

        kept = [
            kept_draws(
                np.uint64(source_key(self.seed, KIND, source.base)),
                self.num_aug,
                TRIES * self.num_aug,
                *source.task,
            )
            for source in sources
        ]
        batches: dict[Sets, Batch] = {}
        for split in names.SPLITS:
            chosen = [
                (source, drawn)
                for source, drawn in zip(sources, kept, strict=True)
                if source.pairs[split]
            ]
            if chosen:
                batches[split, names.SET] = self._batch(split, chosen)
        return batches

    def _batch(self, split: names.Split, chosen: Sequence[tuple[_Source, _Drawn]]) -> Batch:
        from gristmill.puzzles.domains.arc_kernels import write_examples

        sizes = [len(source.pairs[split]) * len(drawn[0]) for source, drawn in chosen]
        inputs = np.zeros((sum(sizes), SEQ_LEN), np.uint8)
        labels = np.zeros((sum(sizes), SEQ_LEN), np.uint8)
        origins = np.empty((sum(sizes), 3), np.int32)
        first = 0
        for (source, drawn), size in zip(chosen, sizes, strict=True):
            pairs = np.array(source.pairs[split], np.int64)
            here = slice(first, first + size)
            write_examples(
                np.uint64(source_key(self.seed, TRANSLATION, source.base)),
                split == "train",
                *source.task,
                pairs,
                *drawn,
                inputs[here],
                labels[here],
            )
            origins[here, 0] = source.number
            origins[here, 1] = np.tile(pairs, len(drawn[0]))
            origins[here, 2] = np.repeat(drawn[0], len(pairs))
            first += size
        return Batch(
            inputs,
            labels,
            origins,
            examples=np.concatenate(
                [
                    np.full(len(drawn[0]), len(source.pairs[split]), np.int32)
                    for source, drawn in chosen
                ]
            ),
            puzzles=np.array([len(drawn[0]) for _, drawn in chosen], np.int32),
            names=tuple(name for source, drawn in chosen for name in _ids(source.base, drawn)),
        )


_Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Numbers, symmetries and colours from `kept_draws`."""


def _ids(base: str, drawn: _Drawn) -> Iterator[str]:
    """The ids of a group, as `arc_augment.aug_id` makes them."""
    _, symmetries, colours = drawn
    digits = (colours + _ZERO).tobytes().decode()
    width = colours.shape[1]
    yield base
    for place, symmetry in enumerate(symmetries.tolist()[1:], 1):
        yield f"{base}_t{symmetry}_{digits[place * width : (place + 1) * width]}"


def _pieces(selection: Selection, config: ArcConfig) -> Iterator[tuple[str, list[_Source]]]:
    """Name and sources of each part."""
    gathered: list[_Source] = []
    size = number = 0
    for at, task in enumerate(selection.tasks):
        pairs = {split: selection.numbers(task, split) for split in names.SPLITS}
        gathered.append(_Source(at, task.base, flat(task.pairs), pairs))
        size += len(task.pairs) * (config.num_aug + 1) * 2 * SEQ_LEN
        if size >= _PART_BYTES or at == len(selection.tasks) - 1:
            yield f"{number:06d}", gathered
            gathered, size, number = [], 0, number + 1


def _source_files(selection: Selection, folders: Sequence[Path]) -> list[SourceFile]:
    labels = source_labels(folders)
    files = []
    for task in selection.tasks:
        built = sorted(
            number for split in names.SPLITS for number in selection.numbers(task, split)
        )
        facts: dict[str, str | int] = {TASK_HASH: task_hash(task.pairs[number] for number in built)}
        if task.task != task.base or is_collection(task.file):
            facts[TASK] = task.task
        if len(built) < len(task.pairs):
            facts[LEFT_OUT] = len(task.pairs) - len(built)
        files.append(SourceFile(f"{labels[task.source]}/{task.file}", task.sha256, facts))
    return files


def _check_parts(tasks: Sequence[ArcTask], folders: Sequence[Path], config: ArcConfig) -> None:
    """Refuse sources that have no test split, and a name in the settings that no source has."""
    found = {part_of(task.file) for task in tasks}
    if not any(task.is_evaluation for task in tasks):
        raise BadInput(
            folders[0] if folders else KIND,
            f"no source has tasks in a folder or subset `{'`, `'.join(config.evaluation)}`, whose"
            " test pairs are the test split: add a source that has it, such as ARC-AGI/data, or"
            " name another one, as [settings] evaluation = ['evaluation2']",
        )
    for field, given in (("evaluation", config.evaluation), ("subsets", config.subsets)):
        if (name := next((name for name in given if name not in found), None)) is not None:
            raise BadInput(
                folders[0],
                f"no source has tasks in a folder or subset `{name}`, which {field} names; there"
                f" are `{'`, `'.join(sorted(found))}`: correct the name, or take it out",
            )


def _of_sources(
    selection: Selection, folders: Sequence[Path], *, is_evaluation: bool
) -> dict[str, int]:
    """How many tasks of a role the dataset has, by the name of their source."""
    found = [task.source for task in selection.tasks if task.is_evaluation == is_evaluation]
    return {label: found.count(folder) for folder, label in source_labels(folders).items()}


def _counts(out: Path, config: ArcConfig) -> tuple[int, int]:
    """Draws that were left out as duplicates, and groups without all their augmentations."""
    split = names.SPLITS[0]
    groups, puzzles = (
        np.load(out / names.array(split, names.SET, field))
        for field in ("group_indices", "puzzle_indices")
    )
    origins = np.load(out / names.origins(split, names.SET), mmap_mode="r")
    kept = np.diff(groups) - 1
    last = origins[puzzles[groups[1:]] - 1, 2].astype(np.int64)
    is_full = kept == config.num_aug
    tries = np.where(is_full, last, TRIES * config.num_aug)
    return int((tries - kept).sum()), int((~is_full).sum())


def write_trm(
    out: Path, selection: Selection, files: Mapping[str, FileNote]
) -> dict[str, FileNote]:
    """Write `trm/` into a dataset that is staged.

    selection: the tasks of the dataset. files: what is noted of its arrays.
    """
    folder = out / names.TRM
    notes = {}
    for split in names.SPLITS:
        (folder / split).mkdir(parents=True)
        for path in sorted((out / split).iterdir()):
            name = f"{split}/{path.name}"
            _link(path, folder / name)
            if name in files:
                notes[f"{names.TRM}/{name}"] = files[name]
    tasks = {task.base: task.task for task in selection.tasks}
    listed = [trm_name(name, tasks) for name in read_identifiers(out / names.IDENTIFIERS)]
    (folder / names.IDENTIFIERS).write_text(json.dumps(listed))
    (folder / names.TEST_PUZZLES).write_text(json.dumps(dict(_test_puzzles(selection))))
    return notes


def trm_name(name: str, tasks: Mapping[str, str]) -> str:
    """A name in the form of TRM, `task|||t1|||0123456789`. tasks: id in its source of each base."""
    if name == names.BLANK:
        return name
    base, *augmentation = name.split("_")
    return TRM_MARK.join([tasks[base], *augmentation])


def _test_puzzles(selection: Selection) -> Iterator[tuple[str, Any]]:
    """Id and pairs of each task of the test split, without test pairs that are left out."""
    for task in selection.tasks:
        tested = selection.numbers(task, "test")
        if tested:
            shown = [number for number, is_test in enumerate(task.is_test) if not is_test]
            yield task.task, {"train": _pairs(task, shown), "test": _pairs(task, tested)}


def _pairs(task: ArcTask, numbers: Any) -> list[dict[str, Any]]:
    return [
        {"input": task.pairs[number][0].tolist(), "output": task.pairs[number][1].tolist()}
        for number in numbers
    ]


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # as on exFAT
        shutil.copyfile(source, target)
