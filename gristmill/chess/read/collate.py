"""Samples of games, and how they become padded tensors.

Only calling `collate` imports torch. Source: docs/formats/chess.md#reading-contract
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """One splice of a game.

    context, target: moves in UCI up to the splice, and from the label on, at most `horizon` plies.
    phase: id of that after the context. winner: 0 white, 1 black, 2 draw, 3 other.
    """

    game_id: str
    context: list[str]
    next_move: str
    target: list[str]
    phase: int
    winner: int
    side_to_move: int


def collate(
    samples: Sequence[Sample], vocabulary: Mapping[str, int], horizon: int | None = None
) -> dict[str, Any]:
    """Samples as torch tensors, padded with 0 and masked.

    samples: N samples.
    vocabulary: number of each word, as `GameSpliceDataset.vocabulary()` returns it.
    horizon: length of the targets; None (the default) for the longest one.

    Returns context int64 [N, longest], context_mask bool of the same shape, target int64
    [N, horizon], target_mask bool of the same shape, and phase, winner, side_to_move int64 [N].
    Padding is behind the moves.
    """
    import torch

    columns = columns_of(samples, vocabulary, horizon)
    return {name: torch.from_numpy(column) for name, column in columns.items()}


def columns_of(
    samples: Sequence[Sample], vocabulary: Mapping[str, int], horizon: int | None = None
) -> dict[str, NDArray[Any]]:
    """The columns of `collate` as arrays."""
    context, context_mask = _padded([s.context for s in samples], vocabulary, 0)
    target, target_mask = _padded([s.target for s in samples], vocabulary, horizon or 0)
    return {
        "context": context,
        "context_mask": context_mask,
        "target": target,
        "target_mask": target_mask,
        "phase": np.array([s.phase for s in samples], np.int64),
        "winner": np.array([s.winner for s in samples], np.int64),
        "side_to_move": np.array([s.side_to_move for s in samples], np.int64),
    }


def _padded(
    texts: Sequence[Sequence[str]], vocabulary: Mapping[str, int], width: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Words as numbers [N, at least width], and where there is a word."""
    unknown = vocabulary["<UNK>"]
    lengths = np.array([len(words) for words in texts], np.int64)
    mask = np.arange(int(lengths.max(initial=width))) < lengths[:, None]
    numbers = np.zeros(mask.shape, np.int64)
    numbers[mask] = [vocabulary.get(word, unknown) for words in texts for word in words]
    return numbers, mask
