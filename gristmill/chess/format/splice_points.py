"""Where games are spliced: sample indices of a game, uncapped and under the two caps.

A splice index i is that of the last move kept in the context; the label is
move i + 1 (docs/formats/chess.md#splice-points).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Order = Callable[[list[int], int, str], None]


def runtime_order(indices: list[int], seed: int, game_id: str) -> None:
    """Shuffle in place, seeded by the text `seed:id` (docs/formats/chess.md#runtime-cap)."""
    random.Random(f"{seed}:{game_id or 'unknown'}").shuffle(indices)


def legacy_order(indices: list[int], seed: int, game_id: str) -> None:
    """Shuffle in place, seeded by a SHA-1's first digits (docs/formats/chess.md#legacy-cap)."""
    digest = hashlib.sha1(f"{seed}:{game_id}".encode(), usedforsecurity=False).hexdigest()
    random.Random(int(digest[:8], 16)).shuffle(indices)


def counts(plies: NDArray[np.int64], min_context: int, min_target: int) -> NDArray[np.int64]:
    """How many samples games of so many plies have, without a cap."""
    samples: NDArray[np.int64] = np.maximum(
        plies.astype(np.int64) - min_target - min_context + 1, 0
    )
    return samples


def ranges(samples: NDArray[np.int64], min_context: int) -> NDArray[np.int64]:
    """The ascending splice indices of each game, games laid end to end."""
    ends = np.cumsum(samples)
    begun = np.repeat(ends - samples, samples)
    return np.arange(int(ends[-1]) if len(ends) else 0) - begun + (min_context - 1)


def capped(
    samples: NDArray[np.int64],
    min_context: int,
    cap: int,
    ids: Sequence[str],
    seed: int,
    order: Order,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(samples kept of each game, their splice indices): shuffled where the cap bites."""
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
