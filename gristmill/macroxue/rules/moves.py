"""The rules of 2048 for many boards at once: how they slide, what that earns, what is legal.

How boards are stored (nibbles, masks) and how good they are (board_eval) do
not belong here. A board is 16 ranks, row-major from the top left: 0 is empty,
r is the tile 2^r.

The rule (docs/formats/macroxue.md#moves): a move pushes each of the four lines
towards a wall; each tile merges at most once, nearest the wall first; two
tiles of rank r become one of rank r+1 and earn 2^(r+1) points.

There is no table of lines. Ranks above 15 would need one of 32^4 entries,
larger than the processor's fast cache, while the rule on four arrays of bytes
is some fifty operations on bytes, of which it does 32 or more at a time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.uint8]

UP: Final = 0
DOWN: Final = 1
LEFT: Final = 2
RIGHT: Final = 3
DIRECTIONS: Final = ("up", "down", "left", "right")
"""Names by `move_dir`; bit k of `ev_legal` and element k of `branch_evs` mean the same move."""

MAX_RANK: Final = 31
"""The highest rank that a board may hold, in five bits as in the line tables of the original."""

# _LINES[direction] is [4 positions counted from the wall, 4 lines] of cell numbers.
_ROWS = np.arange(16).reshape(4, 4)
_LINES: Final = {
    UP: _ROWS,
    DOWN: _ROWS[::-1],
    LEFT: _ROWS.T,
    RIGHT: _ROWS.T[::-1],
}

# Rows worked on at a time, so that the few hundred kB of arrays stay in the cache.
_BLOCK: Final = 8192


def _slide(cells: list[Ranks]) -> tuple[list[Ranks], Ranks, Ranks]:
    """Slide lines whose cells, from the wall outwards, are four arrays of one shape.

    Returns the new cells and the ranks made by the first and the second merge
    of each line (0: none). A line of four has at most two.
    """
    a, b, c, d = cells

    def close_gap(near: Ranks, far: Ranks) -> tuple[Ranks, Ranks]:
        gap = (near == 0).view(np.uint8)
        moving = far * gap
        return near + moving, far - moving

    a, b = close_gap(a, b)
    b, c = close_gap(b, c)
    c, d = close_gap(c, d)
    a, b = close_gap(a, b)
    b, c = close_gap(b, c)
    a, b = close_gap(a, b)

    # No gaps are left, so a tile's neighbour is the next cell. A merge in one
    # place lets everything behind it move up by one.
    merge = ((a == b) & (a != 0)).view(np.uint8)
    a = a + merge
    first = a * merge
    stay = merge ^ 1
    b, c, d = b * stay + c * merge, c * stay + d * merge, d * stay

    merge = ((b == c) & (b != 0)).view(np.uint8)
    b = b + merge
    second = b * merge
    stay = merge ^ 1
    c, d = c * stay + d * merge, d * stay

    # After a merge at b the cell d is empty, so this excludes the one above.
    merge = ((c == d) & (c != 0)).view(np.uint8)
    c = c + merge
    second = second + c * merge
    d = d * (merge ^ 1)
    return [a, b, c, d], first, second


def _points(made: Ranks) -> NDArray[np.int64]:
    """2^r for each rank made, 0 where none was (rank 0); merges make 2 or more."""
    return (np.int64(1) << made.astype(np.int64)) & np.int64(-2)


def _slide_block(
    columns: Ranks, direction: int
) -> tuple[Ranks, NDArray[np.int64], NDArray[np.bool_]]:
    """`move_towards` on boards laid out as [16 cells, N]."""
    lines = _LINES[direction]
    cells = [columns[lines[position]] for position in range(4)]
    slid, first, second = _slide(cells)
    after = np.empty_like(columns)
    changed = np.zeros(columns.shape[1], dtype=np.bool_)
    for position in range(4):
        after[lines[position]] = slid[position]
        different = slid[position] != cells[position]
        changed |= different[0] | different[1] | different[2] | different[3]
    earned = _points(first) + _points(second)
    return after, earned[0] + earned[1] + earned[2] + earned[3], changed


def _check(boards: Ranks) -> None:
    if boards.dtype != np.uint8 or boards.ndim != 2 or boards.shape[1] != 16:
        raise ValueError(f"boards must be uint8 [N, 16], not {boards.dtype} {boards.shape}")
    if boards.size and int(boards.max()) > MAX_RANK:
        raise ValueError(f"a rank of {boards.max()} is above {MAX_RANK}")


def move_towards(
    boards: Ranks, direction: int
) -> tuple[Ranks, NDArray[np.int64], NDArray[np.bool_]]:
    """Make the same move on every board.

    boards: uint8 [N, 16] ranks of 0..31. direction: UP, DOWN, LEFT or RIGHT.
    Returns the boards after the move (uint8 [N, 16], no new tile yet), the
    points earned (int64 [N]) and whether anything moved (bool [N]); a move is
    legal where something does. ValueError for another dtype, shape or rank.
    """
    _check(boards)
    after = np.empty(boards.shape, dtype=np.uint8)
    reward = np.empty(len(boards), dtype=np.int64)
    changed = np.empty(len(boards), dtype=np.bool_)
    for start in range(0, len(boards), _BLOCK):
        rows = slice(start, start + _BLOCK)
        columns = np.ascontiguousarray(boards[rows].T)
        slid, reward[rows], changed[rows] = _slide_block(columns, direction)
        after[rows] = slid.T
    return after, reward, changed


def move(
    boards: Ranks, moves: NDArray[np.uint8]
) -> tuple[Ranks, NDArray[np.int64], NDArray[np.bool_]]:
    """Make each board's own move: `moves` is uint8 [N] of 0 up, 1 down, 2 left, 3 right.

    Otherwise as `move_towards`. ValueError also for moves above 3.
    """
    _check(boards)
    if moves.shape != (len(boards),) or (moves.size and int(moves.max()) > RIGHT):
        raise ValueError("moves must be one number of 0..3 for each board")
    after = np.empty(boards.shape, dtype=np.uint8)
    reward = np.empty(len(boards), dtype=np.int64)
    changed = np.empty(len(boards), dtype=np.bool_)
    for direction in range(4):
        rows = np.flatnonzero(moves == direction)
        after[rows], reward[rows], changed[rows] = move_towards(boards[rows], direction)
    return after, reward, changed


def legal_moves(boards: Ranks) -> NDArray[np.uint8]:
    """Bit k set where move k changes the board: uint8 [N], in the order of `ev_legal`."""
    _check(boards)
    legal = np.zeros(len(boards), dtype=np.uint8)
    for direction in range(4):
        legal |= move_towards(boards, direction)[2].view(np.uint8) << np.uint8(direction)
    return legal
