"""The head of what `random.Random(seed).shuffle` makes of ascending numbers, game after game.

The generator is the Mersenne twister as CPython seeds it by the 32-bit words of a number; an
index below n is drawn from as many bits as n has, until one is below n.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.run.kernels import kernel

_WORDS = 624
_32 = np.uint64(0xFFFFFFFF)
_MIX = np.uint64(30)


def _before_any_seed():
    """The state that CPython begins with, before it mixes the words of a seed in."""
    state = np.empty(_WORDS, np.uint64)
    word = state[0] = 19650218
    for i in range(1, _WORDS):
        word = state[i] = (1812433253 * (word ^ word >> 30) + i) & 0xFFFFFFFF
    return state


_BEGIN = _before_any_seed()


@njit(forceinline=True)
def _mixed(state, i, before, factor):
    return state[i] ^ (before ^ before >> _MIX) * np.uint64(factor)


@njit
def _seed(key, state):
    state[:] = _BEGIN
    i, j = 1, 0
    for _ in range(max(_WORDS, len(key))):
        state[i] = (_mixed(state, i, state[i - 1], 1664525) + key[j] + np.uint64(j)) & _32
        i, j = i + 1, j + 1
        if i == _WORDS:
            state[0] = state[_WORDS - 1]
            i = 1
        if j == len(key):
            j = 0
    for _ in range(_WORDS - 1):
        state[i] = (_mixed(state, i, state[i - 1], 1566083941) - np.uint64(i)) & _32
        i += 1
        if i == _WORDS:
            state[0] = state[_WORDS - 1]
            i = 1
    state[0] = 0x80000000


@njit(forceinline=True)
def _word(state, place):
    """The next 32 bits; `place` counts the words before, and each is renewed when it is read."""
    i = place % _WORDS
    after, far = (i + 1) % _WORDS, (i + 397) % _WORDS
    y = (state[i] & np.uint64(0x80000000)) | (state[after] & np.uint64(0x7FFFFFFF))
    word = state[far] ^ (y >> np.uint64(1))
    if y & np.uint64(1):
        word ^= np.uint64(0x9908B0DF)
    state[i] = word
    word ^= word >> np.uint64(11)
    word ^= (word << np.uint64(7)) & np.uint64(0x9D2C5680)
    word ^= (word << np.uint64(15)) & np.uint64(0xEFC60000)
    return word ^ (word >> np.uint64(18))


@kernel()
def shuffled_heads(keys, ends, samples, first, cap, out):
    """Write the indices that stay of each game; those of a game of more than `cap` are shuffled.

    keys: words of the seeds of the games that are shuffled, the lowest first; uint64 [words].
    ends: where the words of each of these games end, int64 [shuffled games].
    samples: samples of each game, int64 [games].
    out: gets the indices, int64 [sum of min(samples, cap)].
    """
    state = np.empty(_WORDS, np.uint64)
    indices = np.empty(max(samples.max(), 1), np.int64)
    o = begin = seeded = 0
    for n in samples:
        if n <= cap:
            for i in range(n):
                out[o + i] = first + i
            o += n
            continue
        _seed(keys[begin : ends[seeded]], state)
        begin, seeded = ends[seeded], seeded + 1
        for i in range(n):
            indices[i] = first + i
        place, bits = 0, 0
        while n >> bits:
            bits += 1
        for i in range(n - 1, 0, -1):
            while not (i + 1) >> (bits - 1):
                bits -= 1
            while True:
                drawn = np.int64(_word(state, place) >> np.uint64(32 - bits))
                place += 1
                if drawn <= i:
                    break
            indices[i], indices[drawn] = indices[drawn], indices[i]
        out[o : o + cap] = indices[:cap]
        o += cap
