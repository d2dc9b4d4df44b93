"""A Domino scenario as a row: what each of the 72 positions holds.

The input has the chain from left to right (positions 0 to 55, two for each tile), the hand (56 to
69) and the two open ends (70, 71); the label the tile to play (0, 1) and its position (2). A value
v is the token v + 1; 0 is empty. Source: docs/formats/puzzles.md#domino
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gristmill.puzzles.format.dataset import Encoding, Integers

KIND: Final = "domino"
SEQ_LEN: Final = 72
VALUES: Final = 7
"""A half of a tile has a value from 0 to 6."""
TILES: Final = 28
HAND_SIZE: Final = 7
HAND, LEFT, RIGHT = 56, 70, 71
"""Positions of an input: where the hand begins, and the two open ends."""
POSITION: Final = 2
"""The position of a label that holds where the tile is played."""
NONE, ON_LEFT, ON_RIGHT, FIRST = range(4)
"""Where a tile is played: nowhere, at the left end, at the right end, on an empty table."""
ENCODING: Final = Encoding(seq_len=SEQ_LEN, vocab_size=VALUES + 1)

Tile = tuple[int, int]


@dataclass(frozen=True)
class Scenario:
    """One scenario: the chain as stored, hand, open ends, and move; None where there is none."""

    table: tuple[Tile, ...]
    hand: tuple[Tile, ...]
    ends: Tile | None
    move: Tile | None
    position: int


def decoded(inputs: Integers, labels: Integers) -> Scenario:
    """The scenario of 72 integers, without half-empty pairs. Raises ValueError for others."""
    if inputs.shape != (SEQ_LEN,) or labels.shape != (SEQ_LEN,):
        raise ValueError(f"shape {inputs.shape} and {labels.shape}, expected ({SEQ_LEN},)")
    tokens, label = inputs.tolist(), labels.tolist()
    ends, move = _tiles(tokens[LEFT:]), _tiles(label[:POSITION])
    return Scenario(
        table=_tiles(tokens[:HAND]),
        hand=_tiles(tokens[HAND:LEFT]),
        ends=ends[0] if ends else None,
        move=move[0] if move else None,
        position=label[POSITION],
    )


def _tiles(tokens: Sequence[int]) -> tuple[Tile, ...]:
    pairs = zip(tokens[::2], tokens[1::2], strict=True)
    return tuple((low - 1, high - 1) for low, high in pairs if low and high)
