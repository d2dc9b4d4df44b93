"""Splice indices of games, without a cap and with the two caps.

The index i is that of the context's last move; the label is move i + 1.
Source: docs/formats/chess.md#splice-points
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Seed = Callable[[int, str], int]
"""The seed of a game's shuffle, from the seed of the config and the id of the game."""


def runtime_seed(seed: int, game_id: str) -> int:
    """The seed of a game's shuffle in the cache (docs/formats/chess.md#runtime-cap)."""
    # What `random.Random` makes of a text.
    text = f"{seed}:{game_id or 'unknown'}".encode()
    return int.from_bytes(text + hashlib.sha512(text).digest(), "big")


def legacy_seed(seed: int, game_id: str) -> int:
    """The seed of a game's shuffle in the legacy rows (docs/formats/chess.md#legacy-cap)."""
    text = f"{seed}:{game_id}".encode()
    return int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest()[:4], "big")


def counts(plies: NDArray[np.int64], min_context: int, min_target: int) -> NDArray[np.int64]:
    """The number of samples of each game without a cap (docs/formats/chess.md#splice-points)."""
    samples: NDArray[np.int64] = np.maximum(
        plies.astype(np.int64) - min_target - min_context + 1, 0
    )
    return samples


def ranges(samples: NDArray[np.int64], min_context: int) -> NDArray[np.int64]:
    """All splice indices, ascending in each game (docs/formats/chess.md#splice-points)."""
    ends = np.cumsum(samples)
    first = np.repeat(ends - samples, samples)
    return np.arange(int(ends[-1]) if len(ends) else 0) - first + (min_context - 1)


def capped(
    samples: NDArray[np.int64],
    min_context: int,
    cap: int,
    ids: Sequence[str],
    seed: int,
    seed_of: Seed,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The samples of each game under a cap (docs/formats/chess.md#runtime-cap).

    samples: samples of each game without a cap, int64 [games].
    Returns (samples that stay of each game, their splice indices). The indices of a game are
    shuffled where the cap removes any, as `random.Random(seed).shuffle` does it.
    """
    if not cap or not (samples > cap).any():
        return samples, ranges(samples, min_context)
    from gristmill.chess.kernels.shuffle import shuffled_heads

    seeds = [seed_of(seed, ids[game]) for game in np.flatnonzero(samples > cap).tolist()]
    sizes = [max(1, (each.bit_length() + 31) // 32) for each in seeds]
    words = b"".join(each.to_bytes(4 * n, "little") for each, n in zip(seeds, sizes, strict=True))
    kept = np.minimum(samples, cap)
    indices = np.empty(int(kept.sum()), np.int64)
    keys = np.frombuffer(words, "<u4").astype(np.uint64)
    shuffled_heads(keys, np.cumsum(sizes), samples, min_context - 1, cap, indices)
    return kept, indices
