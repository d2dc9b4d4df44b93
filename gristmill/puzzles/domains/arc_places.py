"""Compiled draws of where the training examples of an ARC task begin, for the laws.

Source: `docs/formats/puzzles.md#arc-augmentation`.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from gristmill.puzzles.domains.arc_kernels import room
from gristmill.puzzles.domains.randomness import below, start
from gristmill.run.kernels import kernel


@kernel(nogil=True)
def draw_places(key, shapes, numbers, symmetries, places):
    """Draw where the training examples of a task begin, as `write_examples` does.

    shapes: of the grids of its pairs, input and label in turn, int32 [2 * pairs, 2].
    places: int16 [augmentations * pairs, 2], row and column; written.
    """
    state = np.zeros(1, np.uint64)
    pairs = shapes.shape[0] // 2
    places[:] = 0
    for puzzle in range(numbers.shape[0]):
        start(state, key, numbers[puzzle])
        fixed = below(state, pairs)
        for pair in range(pairs):
            if pair != fixed:
                rows, columns = room(shapes, pair, np.int64(symmetries[puzzle]))
                example = puzzle * pairs + pair
                places[example, 0], places[example, 1] = below(state, rows), below(state, columns)
