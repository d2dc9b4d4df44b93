"""Tasks of several ARC sources: each id once, and no test pair that training has too.

Pairs of two tasks are compared in their canonical form, since an augmented twin is a leak, too;
those of one task are compared cell by cell. Source: docs/formats/puzzles.md#leaks
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from gristmill.contract import BadInput
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.domains.arc_augment import flat, task_hash
from gristmill.puzzles.domains.arc_grid import Grid
from gristmill.puzzles.format.names import SPLITS
from gristmill.puzzles.raw.arc_tasks import ArcTask

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
    """The tasks of a dataset.

    leaks_dropped: test pairs that are left out, those of whole files included.
    known_leaks: test pairs that are not, though training has them: see `KNOWN_LEAKS`.
    """

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
    """Return the tasks that a dataset is made of.

    tasks: of all sources, in any order.
    config: `leaks` counts.

    Raises BadInput for an id that two files have, for a test pair that another task has for
    training, and for one that is a demonstration of its own task; with `leaks = "drop"` only for
    files of one id and one role that differ.
    """
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
        f"is an evaluation task whose id {first[0].path} has for training, and so is the task of"
        f" {len(mixed)} ids in all: {named}{', ...' if len(mixed) > _NAMED else ''}. Training would"
        f" hold test pairs: {_ADVICE}",
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
