"""ARC tasks to a dataset: augmented puzzles with ids, grids placed among EOS borders.

Each id of several sources is taken once, and no test pair that training has. Pairs of two tasks are
compared in their canonical form, since an augmented twin is a leak, too; those of one task are
compared cell by cell. Source: docs/formats/puzzles.md#leaks

The folder `trm/` has the same arrays, and names and tasks as TRM splits them: HRM and TRM split at
other marks, and a name that is misread is no error. Source: docs/formats/puzzles.md#arc-for-trm
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill.contract import BadInput, FileNote
from gristmill.puzzles import format as names
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.domains.arc_grid import (
    ENCODING,
    KIND,
    SEQ_LEN,
    TRANSLATION,
    TRM_MARK,
    FlatTask,
    Grid,
    flat,
    task_hash,
)
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.format import SPLITS
from gristmill.puzzles.format.dataset import Batch, Sets, SourceFile, read_identifiers
from gristmill.puzzles.raw.arc_tasks import ArcTask, Parts, is_collection, part_of, read_tasks
from gristmill.puzzles.raw.file_forms import source_folders, source_labels
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import threaded_map
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

KNOWN_LEAKS: Final = {
    ("070dd51e", "40853293"): "a0d8a1c820dff36a63e0e518281156f710b3cada01066a70f04bba930133272b",
    ("50a16a69", "caa06a1f"): "84f2b735e8ebcbac9e9f0101cebfa219604f406edd94b052b47a7e55fe7ee8a8",
}
"""Evaluation and training task of ARC-1 that share a pair, and the sha256 of its canonical form.

They are part of the published benchmark, whose scores count them: `leaks = "refuse"` lets them be.
"""
_NAMED: Final = 10
_ADVICE: Final = 'leave a source out, a part of one by subsets, or set leaks = "drop"'
_OWN_ADVICE: Final = 'take one of the pairs out of the file, or set leaks = "drop"'


class _Leak(NamedTuple):
    """A test pair that training has too."""

    evaluation: ArcTask
    pair: int
    training: ArcTask
    training_pair: int
    is_known: bool


@dataclass(frozen=True)
class Selection:
    """The tasks of a dataset, the test pairs that are left out, and those that are not."""

    tasks: tuple[ArcTask, ...]
    dropped: dict[str, frozenset[int]]
    leaks_dropped: int
    known_leaks: int
    files_dropped: int

    def numbers(self, task: ArcTask, split: str) -> tuple[int, ...]:
        """The numbers of the pairs of a task that the dataset has in a split."""
        left_out = self.dropped.get(task.base, frozenset()) if split == "test" else frozenset()
        return tuple(number for number in task.numbers(split) if number not in left_out)


def select(tasks: Sequence[ArcTask], config: ArcConfig) -> Selection:
    """Return the tasks; BadInput names ids of two files, and test pairs that training has."""
    drops = config.leaks == "drop"
    files: dict[str, list[ArcTask]] = defaultdict(list)
    # A training task before an evaluation task, so that it is the one that stays.
    for task in sorted(tasks, key=lambda each: (each.base, each.is_evaluation, str(each.path))):
        files[task.base].append(task)
    if not drops:
        _refuse_mixed(files)
    for same in files.values():
        _refuse_twice(same, drops)
    kept = tuple(same[0] for same in files.values())
    leaks = _leaks(kept)
    unknown = [leak for leak in leaks if not leak.is_known]
    if unknown and not drops:
        _refuse_leaks(unknown)
    dropped: dict[str, frozenset[int]] = {}
    for leak in leaks if drops else ():
        base = leak.evaluation.base
        dropped[base] = dropped.get(base, frozenset()) | {leak.pair}
    return Selection(
        kept,
        dropped,
        _test_pairs_of_files(files) + sum(map(len, dropped.values())),
        0 if drops else len({(leak.evaluation.base, leak.pair) for leak in leaks}),
        len(tasks) - len(kept),
    )


def _test_pairs_of_files(files: dict[str, list[ArcTask]]) -> int:
    """The test pairs of evaluation tasks whose ids are for training: of copies, those of one."""
    first_ones = (
        next((task for task in same if task.is_evaluation), None)
        for same in files.values()
        if not same[0].is_evaluation
    )
    return sum(len(task.numbers("test")) for task in first_ones if task)


def _refuse_mixed(files: dict[str, list[ArcTask]]) -> None:
    mixed = [same for same in files.values() if len({task.is_evaluation for task in same}) > 1]
    if not mixed:
        return
    named = ", ".join(same[0].base for same in mixed[:_NAMED])
    first = mixed[0]
    raise BadInput(
        first[-1].path,
        f"this evaluation task has the id of the training task {first[0].path}, so training would"
        f" hold its test pairs. Ids with both roles: {len(mixed):,}"
        f" ({named}{', ...' if len(mixed) > _NAMED else ''}): {_ADVICE}",
    )


def _refuse_twice(same: Sequence[ArcTask], drops: bool) -> None:
    """Refuse files of one id; with `drops` only those of one role that differ."""
    first_of_role: dict[bool, ArcTask] = {}
    for task in same:
        first = first_of_role.setdefault(task.is_evaluation, task)
        # First what no setting allows, so that its advice helps.
        if task is not first and _content(task) != _content(first):
            raise BadInput(
                task.path,
                f"has the id {task.base} of {first.path}, and other pairs: rename one of them, or"
                " remove it",
            )
        if not drops and task is not same[0]:
            raise BadInput(
                task.path, f"has the id {task.base} of {same[0].path}: {_ADVICE} for one of them"
            )


def _content(task: ArcTask) -> tuple[str, ...]:
    """The hashes of the pairs of a task, those of each split together."""
    return tuple(
        task_hash(task.pairs[number] for number in task.numbers(split)) for split in SPLITS
    )


def _leaks(tasks: Sequence[ArcTask]) -> list[_Leak]:
    from gristmill.puzzles.domains.arc_kernels import canonical_pair

    training: dict[bytes, list[tuple[ArcTask, int]]] = defaultdict(list)
    tested: list[tuple[bytes, ArcTask, int]] = []
    for task in tasks:
        arrays = flat(task.pairs)
        of_test = set(task.numbers("test"))
        for number in range(len(task.pairs)):
            form = canonical_pair(*arrays, number).tobytes()
            if number in of_test:
                tested.append((form, task, number))
            else:
                training[form].append((task, number))
    return [
        _Leak(task, number, other, place, _is_known(task, other, form))
        for form, task, number in tested
        for other, place in training.get(form, ())
        if other is not task or is_same_pair(task.pairs[number], task.pairs[place])
    ]


def is_same_pair(first: tuple[Grid, Grid], second: tuple[Grid, Grid]) -> bool:
    """Whether two pairs have equal grids, cell by cell."""
    return all(map(np.array_equal, first, second))


def _is_known(evaluation: ArcTask, training: ArcTask, form: bytes) -> bool:
    digest = KNOWN_LEAKS.get((evaluation.base, training.base))
    return digest is not None and hashlib.sha256(form).hexdigest() == digest


def _refuse_leaks(leaks: Sequence[_Leak]) -> None:
    first = leaks[0]
    is_own = first.training is first.evaluation
    owner = "its own task" if is_own else str(first.training.path)
    how = "cell by cell" if is_own else "up to symmetry and colours"
    advice = _OWN_ADVICE if is_own else _ADVICE
    named = ", ".join(
        f"{leak.evaluation.base} pair {leak.pair} = {leak.training.base} pair {leak.training_pair}"
        for leak in leaks[:_NAMED]
    )
    raise BadInput(
        first.evaluation.path,
        f"has a test pair that {owner} has for training, {how};"
        f" {len(leaks)} such pairs in all: {named}{', ...' if len(leaks) > _NAMED else ''}"
        f" (pairs are numbered from 0 in the order of the file): {advice}",
    )


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
    _, symmetries, colours = drawn
    digits = (colours + _ZERO).tobytes().decode()
    width = colours.shape[1]
    yield base
    for place, symmetry in enumerate(symmetries.tolist()[1:], 1):
        yield f"{base}_t{symmetry}_{digits[place * width : (place + 1) * width]}"


def _pieces(selection: Selection, config: ArcConfig) -> Iterator[tuple[str, list[_Source]]]:
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
    """Write `trm/` into a dataset that is staged."""
    folder = out / names.TRM
    notes = {}
    for split in names.SPLITS:
        (folder / split).mkdir(parents=True)
        for path in sorted((out / split).iterdir()):
            name = f"{split}/{path.name}"
            target = folder / name
            try:
                os.link(path, target)
            except OSError:  # as on exFAT
                shutil.copyfile(path, target)
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
