"""Compiled loops of the reader: filling a batch with examples, copying their tokens.

Importing this module loads numba, so `batches.py` imports it when it reads.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from gristmill.puzzles.domains.randomness import below, start
from gristmill.run.kernels import kernel


@kernel()
def fill(puzzles, place, first, puzzle_indices, examples, key, rows, owners, filled):
    """Append examples of drawn puzzles to a batch until it is full or no puzzle is left.

    puzzles: int64 [n], the drawn puzzles. place: the next of them.
    first: the number of puzzles[0] among all draws of the iteration.
    puzzle_indices: int32 or int64 [P + 1]. examples: how many the set has.
    key: of the iteration's draws, uint64 [1].
    rows, owners: int64 [B], the examples of the batch and their puzzles, changed.
    """
    state = np.empty(1, np.uint64)
    while place < puzzles.shape[0] and filled < rows.shape[0]:
        puzzle = puzzles[place]
        if puzzle < 0 or puzzle + 1 >= puzzle_indices.shape[0]:
            return -1, filled
        begin = np.int64(puzzle_indices[puzzle])
        size = np.int64(puzzle_indices[puzzle + 1]) - begin
        if begin < 0 or size < 1 or size > examples - begin:
            return -1, filled
        taken = min(size, rows.shape[0] - filled)
        # A puzzle that does not fit whole needs all its examples to choose from.
        chosen = rows[filled : filled + taken] if taken == size else np.empty(size, np.int64)
        for at in range(size):
            chosen[at] = begin + at
        if size > 1:
            start(state, key[0], first + place)
            for at in range(min(taken, size - 1)):
                other = at + below(state, size - at)
                kept = chosen[at]
                chosen[at] = chosen[other]
                chosen[other] = kept
        for at in range(taken):
            rows[filled + at] = chosen[at]
            owners[filled + at] = puzzle
        filled += taken
        place += 1
    return place, filled


@kernel()
def copy_tokens(tokens, rows, ignored, replaced, out):
    """Copy rows of tokens as int32; one value becomes another.

    tokens: uint8, int32 or int64 [N, seq_len]. rows: int64 [n], within N.
    ignored, replaced: int32; every `ignored` becomes `replaced`.
    out: int32 [m, seq_len], m at least n; its first n rows are changed.
    """
    for at in range(rows.shape[0]):
        row = rows[at]
        for column in range(tokens.shape[1]):
            token = np.int32(tokens[row, column])
            out[at, column] = replaced if token == ignored else token
