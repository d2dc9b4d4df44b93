"""Seeded draws, which depend on the key of a source and the number of a draw, and batches of them.

A stream of 64-bit words is splitmix64: the state grows by a constant and is mixed to a word.
A draw is the same at any number of workers, in any order, for any part of the sources, on any
version of NumPy. Source: docs/formats/puzzles.md#randomness
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import hashlib

import numpy as np
from numba import njit

from gristmill.run.kernels import kernel


def source_key(seed: int, kind: str, source: str) -> int:
    """The key of the draws of a kind, as `sudoku:subsample`, of a source: below 2 to the 64."""
    digest = hashlib.sha256(f"{seed}:{kind}:{source}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_MOST = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit
def mixed(word):
    """A 64-bit word whose bits all depend on all bits of `word` (uint64)."""
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@njit
def start(state, key, number):
    """Set a state, uint64 [1], to the beginning of the draw `number` of a source."""
    state[0] = mixed(key ^ mixed(np.uint64(number) * _STEP))


@njit
def word(state):
    """The next word of a stream, uint64; `state`: uint64 [1], changed."""
    state[0] += _STEP
    return mixed(state[0])


@njit
def below(state, bound):
    """An integer from 0 to bound - 1, int64, all equally likely; `bound` is at least 1."""
    size = np.uint64(bound)
    rest = _MOST - (_MOST % size)
    drawn = word(state)
    while drawn >= rest:
        drawn = word(state)
    return np.int64(drawn % size)


@njit
def shuffle(state, items):
    """Shuffle a one-dimensional array in place; each order is equally likely."""
    for last in range(items.shape[0] - 1, 0, -1):
        other = below(state, last + 1)
        kept = items[last]
        items[last] = items[other]
        items[other] = kept


@kernel()
def fill(puzzles, place, first, puzzle_indices, examples, key, rows, owners, filled):
    """Fill a batch from drawn puzzles; returns the next place, -1 if damaged, and its rows."""
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
    """Copy rows of tokens to the first of `out`, int32; `ignored` becomes `replaced`."""
    for at in range(rows.shape[0]):
        row = rows[at]
        for column in range(tokens.shape[1]):
            token = np.int32(tokens[row, column])
            out[at, column] = replaced if token == ignored else token
