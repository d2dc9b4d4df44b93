"""Positions of a step, and of one rank in it.

A position counts the samples of a run over all ranks. A step is a run of positions, and a rank has
a run of those, whatever the number of ranks. Source: docs/formats/loading.md#steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.bijection import Numbers

Ends = Literal["short", "drop", "pad"]
ENDS: Final = ("short", "drop", "pad")


class Step(NamedTuple):
    """A step: its number, its first position, and its samples over all ranks."""

    number: int
    position: int
    size: int


class Change(NamedTuple):
    """From a step on, which begins at a position, steps have this size."""

    step: int
    position: int
    size: int


def share(step: Step, rank: int, world: int) -> Numbers:
    """The positions int64 of a rank in a step."""
    first = step.position + rank * step.size // world
    return np.arange(first, step.position + (rank + 1) * step.size // world)


def step_at(changes: list[Change], number: int, length: int, ends: Ends) -> Step:
    """A step by number.

    changes: of the sizes, the first from step 0 on. length: positions of the run.
    """
    change = next((each for each in reversed(changes) if each.step <= number), None)
    if change is None or number < 0:
        raise IndexError(f"no step {number}: steps count from 0")
    position = change.position + (number - change.step) * change.size
    following = next((each for each in changes if each.step > change.step), None)
    # A change may follow on a short step: where the run was at its end, and goes on.
    end = following.position if following else length
    rest = end - position
    size = change.size if ends == "pad" and not following else min(change.size, rest)
    if rest <= 0 or (ends == "drop" and not following and rest < change.size):
        raise IndexError(f"no step {number}: the run has {length:,} positions")
    return Step(number, position, size)


def steps_from(changes: list[Change], position: int, length: int, ends: Ends) -> Iterator[Step]:
    """Yield the steps from a position on, which is the first one of a step."""
    number = step_after(changes, position)
    while True:
        try:
            step = step_at(changes, number, length, ends)
        except IndexError:
            return
        yield step
        number += 1


def step_after(changes: Sequence[Change], position: int) -> int:
    """The number of the step that begins at a position; after the last one their number."""
    last = changes[-1]
    return last.step + -(-(position - last.position) // last.size)


def step_of(changes: Sequence[Change], position: int) -> int:
    """The number of the step that gave a position."""
    change = next(each for each in reversed(changes) if each.position <= position)
    return change.step + (position - change.position) // change.size


def count_of(changes: list[Change], position: int, length: int, ends: Ends) -> int:
    """How many steps there are from a position on."""
    size = changes[-1].size
    rest = max(length - position, 0)
    return rest // size if ends == "drop" else -(-rest // size)


def refuse_uneven(size: int, world: int) -> None:
    """Raise GristmillError where the ranks of a step would have different numbers of samples."""
    if size % world:
        fitting = [n for n in range(1, min(size, 4 * world) + 1) if size % n == 0]
        raise GristmillError(
            f"{world} ranks do not divide a batch of {size} samples: use {_listed(fitting)} ranks,"
            f" a batch that is a multiple of {world}, or uneven=True, by which shares differ by one"
        )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}" if numbers[1:] else "1"
