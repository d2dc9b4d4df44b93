"""The moves of 2048 for many boards at once: boards after them, points, legality.

A board is 16 ranks, row by row from the top left: 0 is empty, r is the tile 2^r. A move pushes each
of the four lines towards a wall. Each tile merges at most once, nearest the wall first. Two tiles
of rank r become one of rank r+1 and earn 2^(r+1) points.

There is no table of lines: ranks up to 31 would need 32^4 entries, more than the fast cache of a
processor holds, and the rule on arrays of bytes runs on 32 or more of them at a time.
Source: docs/formats/macroxue.md#moves.
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
"""Names of `move_dir` 0..3; bit k of `ev_legal` and element k of `branch_evs` are of move k."""

MAX_RANK: Final = 31
"""The highest rank that a board may hold (docs/formats/macroxue.md#step-object)."""

# _LINES[direction] is [4 positions counted from the wall, 4 lines] of cell numbers.
_ROWS = np.arange(16).reshape(4, 4)
_LINES: Final = {
    UP: _ROWS,
    DOWN: _ROWS[::-1],
    LEFT: _ROWS.T,
    RIGHT: _ROWS.T[::-1],
}

# Boards moved together, so that their arrays of a few hundred kB stay in the cache.
_BATCH: Final = 8192


def _slide(cells: list[Ranks]) -> tuple[list[Ranks], Ranks, Ranks]:
    """The new cells of lines, and the ranks that their two merges made (0: no merge)."""
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

    # No gaps are left, so the neighbour of a tile is the next cell. After a merge all tiles
    # behind it move up by one cell.
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

    # After a merge at b the cell d is empty, so at most one of the two happens.
    merge = ((c == d) & (c != 0)).view(np.uint8)
    c = c + merge
    second = second + c * merge
    d = d * (merge ^ 1)
    return [a, b, c, d], first, second


def _points(made: Ranks) -> NDArray[np.int64]:
    """2^r for each rank that a merge made, which is at least 2; 0 for rank 0, no merge."""
    return (np.int64(1) << made.astype(np.int64)) & np.int64(-2)


def _slide_batch(
    columns: Ranks, direction: int
) -> tuple[Ranks, NDArray[np.int64], NDArray[np.bool_]]:
    """`move_towards` for boards as [16 cells, N]."""
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

    boards: uint8 [N, 16], ranks 0..31, row by row.

    Returns the boards after the move without the new tile (uint8 [N, 16]), the points (int64 [N]),
    and whether the board changed (bool [N]), which is whether the move is legal.
    """
    _check(boards)
    after = np.empty(boards.shape, dtype=np.uint8)
    reward = np.empty(len(boards), dtype=np.int64)
    changed = np.empty(len(boards), dtype=np.bool_)
    for start in range(0, len(boards), _BATCH):
        rows = slice(start, start + _BATCH)
        columns = np.ascontiguousarray(boards[rows].T)
        slid, reward[rows], changed[rows] = _slide_batch(columns, direction)
        after[rows] = slid.T
    return after, reward, changed


def move(
    boards: Ranks, moves: NDArray[np.uint8]
) -> tuple[Ranks, NDArray[np.int64], NDArray[np.bool_]]:
    """Make on each board a move of its own: 0 up, 1 down, 2 left, 3 right.

    boards: uint8 [N, 16], ranks 0..31, row by row. Returns as `move_towards`.
    """
    _check(boards)
    if moves.shape != (len(boards),) or (moves.size and int(moves.max()) > RIGHT):
        raise ValueError("moves must be one number 0..3 for each board")
    after = np.empty(boards.shape, dtype=np.uint8)
    reward = np.empty(len(boards), dtype=np.int64)
    changed = np.empty(len(boards), dtype=np.bool_)
    for direction in range(4):
        rows = np.flatnonzero(moves == direction)
        after[rows], reward[rows], changed[rows] = move_towards(boards[rows], direction)
    return after, reward, changed


def has_new_tile(after: Ranks, boards: Ranks) -> NDArray[np.bool_]:
    """Whether boards are the moved ones plus one tile of rank 1 or 2 in an empty cell: bool [N]."""
    differs = boards != after
    is_new = differs & (after == 0) & (boards <= 2)
    found: NDArray[np.bool_] = (differs.sum(axis=1) == 1) & is_new.any(axis=1)
    return found


def legal_moves(boards: Ranks) -> NDArray[np.uint8]:
    """The legal moves of boards uint8 [N, 16] as uint8 [N]: bit k if move k changes the board."""
    _check(boards)
    legal = np.zeros(len(boards), dtype=np.uint8)
    for direction in range(4):
        legal |= move_towards(boards, direction)[2].view(np.uint8) << np.uint8(direction)
    return legal


def bits_at(bits: NDArray[np.uint8], taken: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Bits of the four moves, uint8 [N], in another order: bit k is what was bit taken[k]."""
    made = np.zeros_like(bits)
    for new, old in enumerate(taken.tolist()):
        made |= ((bits >> old) & 1) << np.uint8(new)
    return made
