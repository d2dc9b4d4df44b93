"""The identifiers of an ARC dataset, taken apart: tasks and augmentations as arrays.

Source: `docs/formats/puzzles.md#arc-augmentation`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few
from gristmill.puzzles.domains.arc_augment import is_base
from gristmill.puzzles.domains.arc_grid import COLOURS
from gristmill.puzzles.domains.dihedral import SYMMETRIES
from gristmill.puzzles.format import names
from gristmill.puzzles.read.rows import Dataset

_TAIL: Final = "t0_0123456789"
"""The end of an id whose augmentation changes nothing."""
_ZERO: Final = ord("0")
_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True)
class Identifiers:
    """The identifiers by their numbers; number 0 is the blank one, with task -1.

    tasks: names of the tasks, in the order in which they come first.
    task: int64, the task of each identifier; -1 for a text that is no id.
    is_task: bool, whether it is the task itself.
    symmetries: uint8. colours: uint8 [identifiers, 10].
    """

    tasks: Sequence[str]
    task: npt.NDArray[np.int64]
    is_task: npt.NDArray[np.bool_]
    symmetries: npt.NDArray[np.uint8]
    colours: npt.NDArray[np.uint8]


def parsed(listed: Sequence[str]) -> Identifiers:
    """Take identifiers apart.

    listed: the content of `identifiers.json`, the blank one first.
    """
    numbers: dict[str, int] = {}
    task = np.full(len(listed), -1, np.int64)
    is_task = np.zeros(len(listed), np.bool_)
    letters = np.empty((len(listed), len(_TAIL)), np.uint8)
    letters[:] = np.frombuffer(_TAIL.encode(), np.uint8)
    for first in range(1, len(listed), _AT_ONCE):
        tails = []
        for number, name in enumerate(listed[first : first + _AT_ONCE], first):
            base, mark, tail = name.partition("_")
            is_id = not mark or (len(tail) == len(_TAIL) and tail.isascii())
            is_id &= base in numbers or is_base(base)
            if is_id:
                task[number] = numbers.setdefault(base, len(numbers))
                is_task[number] = not mark
            tails.append(tail if is_id and mark else _TAIL)
        end = first + len(tails)
        letters[first:end] = np.frombuffer("".join(tails).encode(), np.uint8).reshape(
            -1, len(_TAIL)
        )
        task[first:end][~_augments(letters[first:end])] = -1
    # Kernels take these numbers without looking at them.
    letters[task < 0] = np.frombuffer(_TAIL.encode(), np.uint8)
    return Identifiers(list(numbers), task, is_task, letters[:, 1] - _ZERO, letters[:, 3:] - _ZERO)


def _augments(letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which ends of ids are augmentations."""
    colours = letters[:, 3:] - _ZERO
    is_right: npt.NDArray[np.bool_] = (letters[:, 0] == ord("t")) & (letters[:, 2] == ord("_"))
    is_right &= (letters[:, 1] - _ZERO < SYMMETRIES) & (colours[:, 0] == 0)
    is_right &= (np.sort(colours, axis=1) == np.arange(COLOURS)).all(axis=1)
    return is_right


def identifier_laws(listed: Sequence[str], found: Identifiers) -> Iterator[Violation]:
    """Yield identifiers that are no ids of ARC puzzles."""
    few = Few(names.IDENTIFIERS, "{count:,} in all")
    for number in (1 + np.flatnonzero(found.task[1:] < 0)).tolist():
        yield from few.at("identifier", f"{names.IDENTIFIERS} {number}", f"{listed[number]!r}")
    yield from few.rest()


def split_laws(dataset: Dataset, found: Identifiers) -> Iterator[Violation]:
    """Every puzzle of the test split is one of the training split."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for split, set_name in dataset.sets():
        listed = np.asarray(dataset.arrays(split, set_name).puzzle_identifiers)
        numbers[split].update(listed.tolist())
    few = Few(names.IDENTIFIERS, "{count:,} in all")
    for number in sorted(numbers["test"] - numbers["train"]):
        where = f"{names.IDENTIFIERS} {number}"
        yield from few.at("identifier", where, "is in the test split alone: nothing trains it")
    yield from few.rest()
