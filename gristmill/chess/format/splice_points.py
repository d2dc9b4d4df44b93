"""Splice indices of games, without a cap and with the two caps.

A splice index i is the index of the last move of the context; the label is
move i + 1 (docs/formats/chess.md#splice-points).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

# Shuffles the splice indices of one game in place: (indices, seed, game id).
Order = Callable[[list[int], int, str], None]


def runtime_order(indices: list[int], seed: int, game_id: str) -> None:
    """Shuffle the indices as the cache does (docs/formats/chess.md#runtime-cap).

    indices: splice indices of one game, changed in place.
    game_id: id of the game; an empty id counts as `unknown`.
    """
    random.Random(f"{seed}:{game_id or 'unknown'}").shuffle(indices)


def legacy_order(indices: list[int], seed: int, game_id: str) -> None:
    """Shuffle the indices as the legacy rows do (docs/formats/chess.md#legacy-cap).

    indices: splice indices of one game, changed in place.
    game_id: id of the game; an empty id stays empty.
    """
    digest = hashlib.sha1(f"{seed}:{game_id}".encode(), usedforsecurity=False).hexdigest()
    random.Random(int(digest[:8], 16)).shuffle(indices)


def counts(plies: NDArray[np.int64], min_context: int, min_target: int) -> NDArray[np.int64]:
    """The number of samples of each game without a cap (docs/formats/chess.md#splice-points).

    plies: moves of each game, int64 [games].
    min_context: plies of the context at least, from 1.
    min_target: plies after the context at least, from 1.
    """
    samples: NDArray[np.int64] = np.maximum(
        plies.astype(np.int64) - min_target - min_context + 1, 0
    )
    return samples


def ranges(samples: NDArray[np.int64], min_context: int) -> NDArray[np.int64]:
    """All splice indices, ascending in each game (docs/formats/chess.md#splice-points).

    samples: samples of each game, int64 [games].
    min_context: plies of the context at least, from 1.
    """
    ends = np.cumsum(samples)
    first = np.repeat(ends - samples, samples)
    return np.arange(int(ends[-1]) if len(ends) else 0) - first + (min_context - 1)


def capped(
    samples: NDArray[np.int64],
    min_context: int,
    cap: int,
    ids: Sequence[str],
    seed: int,
    order: Order,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The samples of each game under a cap (docs/formats/chess.md#runtime-cap).

    samples: samples of each game without a cap, int64 [games].
    min_context: plies of the context at least, from 1.
    cap: samples of a game at most, 0 for no cap.
    ids: id of each game.
    seed: seed of the config.
    order: `runtime_order` or `legacy_order`.

    Returns (samples that stay of each game, their splice indices, game after game).
    The indices of a game are shuffled where the cap removes any.
    """
    if not cap or not (samples > cap).any():
        return samples, ranges(samples, min_context)
    kept: list[int] = []
    for n, game_id in zip(samples.tolist(), ids, strict=True):
        indices = list(range(min_context - 1, min_context - 1 + n))
        if n > cap:
            order(indices, seed, game_id)
            del indices[cap:]
        kept += indices
    return np.minimum(samples, cap), np.array(kept, dtype=np.int64)
