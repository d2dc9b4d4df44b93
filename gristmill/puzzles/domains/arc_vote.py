"""Answers to augmented ARC puzzles, back in the frame of the task, and their votes.

Source: `docs/formats/puzzles.md#arc-scoring`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from gristmill.contract import GristmillError
from gristmill.puzzles.domains.arc_augment import Augmentation, parse_id
from gristmill.puzzles.domains.arc_grid import Grid, checked_grid


def inverse(identifier: str, grid: Grid) -> Grid:
    """Return a grid of an augmented puzzle as it is in the task itself.

    identifier: of the puzzle, as `identifiers.json` has it.
    grid: uint8 [height, width], colours 0 to 9; from tokens: `arc_grid.decode` for those of a
        dataset, `arc_grid.read_answer` for those that a model predicts.

    Raises GristmillError for a text that is no id of a puzzle, and for what is no grid: other
    colours, no integers, another number of dimensions, no cell, or more than 30 x 30.
    """
    augmentation = parse_id(identifier)[1] or Augmentation()
    try:
        return augmentation.undo(checked_grid(grid))
    except ValueError as error:
        raise GristmillError(f"the answer to {identifier} {error}") from error


def arc_vote(answers: Iterable[tuple[str, Grid | None]]) -> list[tuple[Grid, int]]:
    """Count the answers to one test pair in the frame of the task, most votes first.

    answers: id of the puzzle and predicted grid, integers [height, width], for the task and its
        augmentations. None, as `arc_grid.read_answer` gives it where no grid is predicted, is no
        vote. Several answers to one puzzle are as many votes.

    Returns grids, uint8, with their votes. Of equally many votes the smaller grid is first, by
    height, width, and cells; the order of the answers changes nothing.
    Raises GristmillError for answers of several tasks, and as `inverse`.
    """
    votes: Counter[tuple[tuple[int, ...], bytes]] = Counter()
    tasks = set()
    for identifier, grid in answers:
        tasks.add(parse_id(identifier)[0])
        if grid is None:
            continue
        before = inverse(identifier, grid)
        votes[before.shape, before.tobytes()] += 1
    if len(tasks) > 1:
        named = ", ".join(sorted(tasks)[:10])
        raise GristmillError(f"answers of several tasks: {named}; vote on one task at a time")
    ranked = sorted(votes.items(), key=lambda entry: (-entry[1], *entry[0]))
    return [(np.frombuffer(cells, np.uint8).reshape(shape), n) for (shape, cells), n in ranked]
