"""The eight symmetries of the board, for step rows and for whatever has a value for each move.

Symmetry k is k quarter turns clockwise for 0 to 3, and for 4 to 7 a left-right mirror image before
k - 4 quarter turns. Source: docs/formats/macroxue.md#symmetries.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.annotations import ROWS, STUDENT
from gristmill.macroxue.format.rows import Rows, as_bytes, pack_boards
from gristmill.macroxue.rules.board_eval import board_eval
from gristmill.macroxue.rules.moves import bits_at
from gristmill.macroxue.rules.true_ranks import true_ranks

COUNT: Final = 8
_GRID = np.arange(16).reshape(4, 4)
_MIRRORED = (_GRID, np.fliplr(_GRID))
CELLS: Final = np.stack([np.rot90(_MIRRORED[k // 4], -k).ravel() for k in range(COUNT)])
"""int64 [8, 16]: the cell that each cell of the image comes from."""

_TURN, _MIRROR = np.array([2, 3, 1, 0]), np.array([0, 1, 3, 2])


def _branches(symmetry: int) -> npt.NDArray[np.int64]:
    taken = _MIRROR if symmetry >= 4 else np.arange(4)
    for _ in range(symmetry % 4):
        taken = taken[_TURN]
    return taken


BRANCHES: Final = np.stack([_branches(k) for k in range(COUNT)])
"""int64 [8, 4]: the move (up, down, left, right) that each move of the image comes from."""

MOVES: Final = np.argsort(BRANCHES, axis=1).astype(np.uint8)
"""uint8 [8, 4]: what each move becomes in the image."""


def turned(
    rows: Rows,
    symmetries: int | npt.NDArray[np.integer[Any]],
    ranks: npt.NDArray[np.uint8] | None = None,
) -> Rows:
    """The images of step rows [N] under symmetries, as a new array of the same layout.

    symmetries: one of 0 to 7 for all rows, or integers [N].
    ranks: uint8 [N, 16], the true ranks of the boards. Default: those that board_eval tells of a
        row by itself, and 16 where it tells none (docs/formats/macroxue.md#true-ranks).

    board, tile_65536_mask, move_dir, ev_legal and branch_evs are permuted, and board_eval is
    computed from the turned ranks. Raises OverflowError where it does not fit int32, ValueError for
    another symmetry, or another number of them than rows.
    """
    which = np.asarray(symmetries)
    if which.shape not in ((), (len(rows),)):
        raise ValueError(f"{which.shape} symmetries for {len(rows)} rows: give one, or one a row")
    if which.size and not 0 <= int(which.min()) <= int(which.max()) < COUNT:
        raise ValueError(f"symmetries are 0 to 7, not {int(which.min())} to {int(which.max())}")
    image = np.empty(len(rows), rows.dtype)
    as_bytes(image)[:] = as_bytes(np.ascontiguousarray(rows))
    if ranks is None:
        known = true_ranks(image, np.arange(len(rows)))
        ranks = np.where(known.unknown[:, None], np.minimum(known.ranks, 16), known.ranks)
    for symmetry in np.unique(which).tolist():
        if symmetry:
            own = np.flatnonzero(which == symmetry) if which.ndim else slice(None)
            _turn(image, own, symmetry, ranks[own])
    return image


def _turn(
    image: Rows,
    own: npt.NDArray[np.int64] | slice,
    symmetry: int,
    ranks: npt.NDArray[np.uint8],
) -> None:
    """Turn the rows `own`, whose ranks are uint8 [M, 16], in place."""
    boards = ranks[:, CELLS[symmetry]]
    image["board"][own], image["tile_65536_mask"][own] = pack_boards(boards)
    image["board_eval"][own] = board_eval(boards)
    moves = image["move_dir"][own]
    image["move_dir"][own] = np.where(moves < 4, MOVES[symmetry][moves & 3], moves)
    image["ev_legal"][own] = bits_at(image["ev_legal"][own], BRANCHES[symmetry])
    image["branch_evs"][own] = image["branch_evs"][own][:, BRANCHES[symmetry]]


def turned_annotations(stem: str, rows: npt.NDArray[Any], symmetry: int) -> npt.NDArray[Any]:
    """Rows [N] of a file as those of the image of their boards, as a new array."""
    image = rows.copy()
    if stem == ROWS:
        for name in ("teacher_move", "argmax_head"):
            moves = rows[name]
            image[name] = np.where(moves < 4, MOVES[symmetry][moves & 3], moves)
        image["legal_mask"] = bits_at(rows["legal_mask"], BRANCHES[symmetry])
        for name in ("policy_p1", "policy_logp", "policy_hard"):
            image[name] = rows[name][:, BRANCHES[symmetry]]
    elif stem == STUDENT:
        image["bins"] = rows["bins"][:, BRANCHES[symmetry]]
    return image
