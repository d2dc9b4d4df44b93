"""How many first moves games have in common with games of another set."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.run.kernels import kernel

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)


@njit(forceinline=True)
def _place(keys, node, move):
    """The key of a move behind a node, which is not 0, and where in the table it is or would be."""
    key = np.uint64(node << 16 | move) + np.uint64(1)
    most = np.uint64(len(keys) - 1)
    at = (key * _SPREAD >> _HIGH) & most
    while keys[at] != key and keys[at] != 0:
        at = (at + np.uint64(1)) & most
    return key, np.int64(at)


@kernel()
def shared_plies(held, held_plies, others, other_plies, shared):
    """Raise `shared` to the plies with which some other game begins, too, of each held game.

    held, others: packed moves, uint16 [plies], game after game. held_plies, other_plies, shared:
    int64 [games]. Games that begin with the same moves have one node, so no hash is equal by lot.
    """
    size = 1024
    while size < 2 * len(held_plies):
        size *= 2
    keys, is_shared = np.zeros(size, np.uint64), np.zeros(size, np.bool_)
    starts, nodes = np.cumsum(held_plies) - held_plies, np.zeros_like(held_plies)
    left, count = np.arange(len(held_plies)), len(held_plies)
    other_starts, other_nodes = np.cumsum(other_plies) - other_plies, np.zeros_like(other_plies)
    other_left, other_count = np.arange(len(other_plies)), len(other_plies)
    depth = 0
    while count:
        keys[:], is_shared[:] = 0, False
        longer = 0
        for game in left[:count]:
            if held_plies[game] > depth:
                key, at = _place(keys, nodes[game], held[starts[game] + depth])
                keys[at], nodes[game] = key, at
                left[longer], longer = game, longer + 1
        equal = 0
        for game in other_left[:other_count]:
            if other_plies[game] > depth:
                key, at = _place(keys, other_nodes[game], others[other_starts[game] + depth])
                if keys[at] == key:
                    is_shared[at], other_nodes[game] = True, at
                    other_left[equal], equal = game, equal + 1
        depth, count, other_count = depth + 1, 0, equal
        for game in left[:longer]:
            if is_shared[nodes[game]]:
                shared[game] = max(shared[game], depth)
                left[count], count = game, count + 1
