"""The oracle of views: rows turned as squares of numbers, not by the tables of the builder."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows, decode_boards, to_aligned
from gristmill.macroxue.rules.scores import board_scores

_KEPT = ("step_index", "valuation_type", "max_rank", "seed")
# The places of up, down, left, right as a cross in a square of 3 by 3, which turns as the board.
_PLACES = ((0, 1), (2, 1), (1, 0), (1, 2))
_CROSS = np.full((3, 3), -1)
for _number, _place in enumerate(_PLACES):
    _CROSS[_place] = _number


def assert_turned(source: Rows, found: Rows, symmetry: int, ranks: npt.NDArray[np.uint8]) -> None:
    """Assert that rows [N] are those of the source under a symmetry; ranks: true ones [N, 16]."""
    source, found = to_aligned(source), to_aligned(found)
    order = [int(_square(_CROSS.reshape(1, 9), 3, symmetry)[0][3 * x + y]) for x, y in _PLACES]
    boards = [decode_boards(rows["board"], rows["tile_65536_mask"]) for rows in (source, found)]
    assert np.array_equal(_square(boards[0], 4, symmetry), boards[1])
    assert np.array_equal(np.array(order)[found["move_dir"]], source["move_dir"])
    assert np.array_equal(found["branch_evs"], source["branch_evs"][:, order])
    bits, turned_bits = (
        (rows["ev_legal"][:, None] >> np.arange(4)) & 1 for rows in (source, found)
    )
    assert np.array_equal(turned_bits, bits[:, order])
    assert all(np.array_equal(source[name], found[name]) for name in _KEPT)
    assert np.array_equal(board_scores(_square(ranks, 4, symmetry)), found["board_eval"])


def _square(cells: npt.NDArray[Any], side: int, symmetry: int) -> npt.NDArray[Any]:
    """Squares [N, side * side] under a symmetry."""
    square = cells.reshape(-1, side, side)
    square = square[:, :, ::-1] if symmetry >= 4 else square
    turned = np.rot90(square, -(symmetry % 4), axes=(1, 2))
    return np.ascontiguousarray(turned).reshape(cells.shape)
