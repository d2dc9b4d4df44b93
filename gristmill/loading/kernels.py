"""The order of samples, compiled: the same numbers as in NumPy, which `bijection.py` gives.

Importing this module loads numba: see `compiled`.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.run.kernels import kernel

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_TOGETHER = 32
"""Values that take each round together, so that the processor's wide registers are used."""


@njit(inline="always")
def _mixed(word):
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@njit(inline="always")
def _moved(half, other, key, end):
    """One half of a value after a round, by the other half; below `end`."""
    half = half + (((_mixed(other + key) >> _32) * end) >> _32)
    # Without a sign the difference is huge where `half` is below `end`. A branch would cost more.
    return min(half, half - end)


@njit
def _permute(values, rows, columns, keys, left, right):
    """Replace each value by the next one; `left` and `right` have room for their halves."""
    for at in range(len(values)):
        left[at] = values[at] // columns
        right[at] = values[at] - left[at] * columns
    for number in range(0, len(keys), 2):
        even, odd = keys[number], keys[number + 1]
        for at in range(len(values)):
            left[at] = moved = _moved(left[at], right[at], even, rows)
            right[at] = _moved(right[at], moved, odd, columns)
    for at in range(len(values)):
        values[at] = left[at] * columns + right[at]


@kernel("int64[::1](int64[::1], uint64, uint64, uint64, uint64[::1])", nogil=True)
def permuted(places, length, rows, columns, keys):
    """Returns the numbers int64 [N] at places int64 [N] of a permutation of 0..length-1.

    rows, columns: of the rectangle; keys: uint64, one a round, an even number of them.
    """
    found = np.empty(len(places), np.int64)
    values = np.empty(_TOGETHER, np.uint64)
    left, right = np.empty_like(values), np.empty_like(values)
    for first in range(0, len(places), _TOGETHER):
        size = min(_TOGETHER, len(places) - first)
        for at in range(size):
            values[at] = np.uint64(places[first + at])
        _permute(values[:size], rows, columns, keys, left, right)
        for at in range(size):
            while values[at] >= length:
                _permute(values[at : at + 1], rows, columns, keys, left, right)
            found[first + at] = values[at]
    return found


@kernel("uint64[::1](int64[::1], uint64)", nogil=True)
def drawn_bits(draws, key):
    """Returns the random bits uint64 [N] of draws int64 [N]; key: uint64, of their source."""
    found = np.empty(len(draws), np.uint64)
    for at in range(len(draws)):
        found[at] = _mixed(key + _mixed(np.uint64(draws[at])))
    return found
