"""The compiled search of `game.true_ranks`; importing this module loads numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.run.kernels import kernel

UNMASKED, FOLLOWED, SOLVED, TRACED_BACK, UNKNOWN, UNFIT = 0, 1, 2, 3, 4, 5
"""How the ranks of a row became known. UNFIT: unknown, because no ranks give its board_eval."""

_JIT: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

_TOP = 31
_MOST_CHOICES = 1 << 14

# _LINES[direction, line, position from the wall] is a cell; _EIGHT: rows, then columns.
_CELLS = np.arange(16).reshape(4, 4)
_LINES = np.stack([_CELLS.T, _CELLS[::-1].T, _CELLS, _CELLS[:, ::-1]])
_EIGHT = np.concatenate([_CELLS, _CELLS.T])


@kernel(**_JIT)
def _slide(board: Any, direction: int, after: Any) -> None:
    """Write to `after` the board after a move, before the new tile."""
    for line in range(4):
        filled = 0
        waiting = 0
        for position in range(4):
            rank = board[_LINES[direction, line, position]]
            if rank == 0:
                continue
            if rank == waiting:
                after[_LINES[direction, line, filled - 1]] = rank + 1
                waiting = 0
            else:
                after[_LINES[direction, line, filled]] = rank
                filled += 1
                waiting = rank
        for position in range(filled, 4):
            after[_LINES[direction, line, position]] = 0


@kernel(**_JIT)
def _follows(board: Any, direction: int, seen: Any, after: Any) -> bool:
    """Whether the board `seen`, capped at 16, can follow `board`; its ranks go to `after`.

    It can if it differs from the moved board in one empty cell, which holds rank 1 or 2.
    """
    if direction > 3:
        return False
    _slide(board, direction, after)
    spawned = -1
    for cell in range(16):
        if after[cell] > _TOP:
            return False
        if min(after[cell], 16) != min(seen[cell], 16):
            if spawned >= 0 or after[cell] != 0 or seen[cell] > 2:
                return False
            spawned = cell
    if spawned < 0:
        return False
    after[spawned] = seen[spawned]
    return True


@kernel(**_JIT)
def _score(board: Any) -> int:
    """board_eval of one board (docs/formats/macroxue.md#board-evaluation)."""
    total = np.int64(0)
    for line in range(8):
        a = np.int64(board[_EIGHT[line, 0]])
        a <<= a
        total += a
        for position in range(1, 4):
            b = np.int64(board[_EIGHT[line, position]])
            b <<= b
            total += a + b if a >= b else 12 * (a - b)
            if a == b:
                total += a
            a = b
    return int(total)


@kernel(**_JIT)
def _choices(cells: Any, top: int) -> int:
    """The number of choices of ranks 16..top for so many cells; 0 if more than 16,384."""
    ways = 1
    for _ in range(cells):
        ways *= top - 15
        if ways > _MOST_CHOICES:
            return 0
    return ways


@kernel(**_JIT)
def _set(board: Any, cells: Any, count: int, top: int, which: int) -> int:
    """Give the masked cells the ranks of choice number `which`; returns the highest rank."""
    highest = 0
    for i in range(count):
        rank = 16 + which % (top - 15)
        which //= top - 15
        board[cells[i]] = rank
        highest = max(highest, rank)
    return highest


@kernel(**_JIT)
def _solve(board: Any, cells: Any, count: int, top: int, score: int) -> int:
    """Find the only choice of ranks with this board_eval. Returns SOLVED, UNKNOWN or UNFIT."""
    found = best = -1
    several = several_best = False
    for which in range(_choices(count, top)):
        highest = _set(board, cells, count, top, which)
        if _score(board) != score:
            continue
        several |= found >= 0
        found = which
        if highest == top:
            several_best |= best >= 0
            best = which
    # Several fit: the column max_rank may decide.
    if several and best >= 0 and not several_best:
        found, several = best, False
    if several or _choices(count, top) == 0:
        return UNKNOWN
    if found < 0:
        return UNFIT
    _set(board, cells, count, top, found)
    return SOLVED


@kernel(**_JIT)
def _solve_back(
    board: Any, cells: Any, count: int, top: int, score: int, move: int, then: Any, after: Any
) -> bool:
    """Find the only choice with this board_eval whose move leads to the known board `then`."""
    found = -1
    for which in range(_choices(count, top)):
        _set(board, cells, count, top, which)
        if _score(board) != score or not _follows(board, move, then, after):
            continue
        same = True
        for cell in range(16):
            same &= after[cell] == then[cell]
        if same:
            if found >= 0:
                return False
            found = which
    if found < 0:
        return False
    _set(board, cells, count, top, found)
    return True


@kernel(**_JIT)
def _masked(mask: int, cells: Any) -> int:
    """Write the masked cells to `cells`; returns their number."""
    count = 0
    for cell in range(16):
        if mask >> cell & 1:
            cells[count] = cell
            count += 1
    return count


@kernel(**_JIT)
def search(
    ranks: Any, masks: Any, moves: Any, scores: Any, tops: Any, starts: Any
) -> npt.NDArray[np.uint8]:
    """Replace the rank 16 of masked cells by their true ranks, in place.

    ranks: uint8 [N, 16], decoded boards of rows in order.
    masks: uint16 [N], the column tile_65536_mask.
    moves: uint8 [N], the column move_dir.
    scores: int32 [N], the column board_eval.
    tops: uint8 [N], the column max_rank.
    starts: bool [N], whether a run begins in this row.

    Returns how the ranks of each row became known as uint8 [N]: UNMASKED for a row without masked
    cell, else FOLLOWED to UNFIT.
    """
    rows = len(ranks)
    how = np.zeros(rows, np.uint8)
    after = np.empty(16, np.uint8)
    cells = np.empty(16, np.int64)
    for row in range(rows):
        if masks[row] == 0:
            continue
        if (
            not starts[row]
            and how[row - 1] < UNKNOWN
            and _follows(ranks[row - 1], moves[row - 1], ranks[row], after)
        ):
            ranks[row] = after
            how[row] = FOLLOWED
            continue
        count = _masked(masks[row], cells)
        top = tops[row] if 16 <= tops[row] <= _TOP else _TOP
        how[row] = _solve(ranks[row], cells, count, top, scores[row])
    for row in range(rows - 2, -1, -1):
        if how[row] != UNKNOWN or starts[row + 1] or how[row + 1] >= UNKNOWN:
            continue
        count = _masked(masks[row], cells)
        top = tops[row] if 16 <= tops[row] <= _TOP else _TOP
        score, move, then = scores[row], moves[row], ranks[row + 1]
        if _solve_back(ranks[row], cells, count, top, score, move, then, after):
            how[row] = TRACED_BACK
    for row in range(rows):
        if how[row] >= UNKNOWN:
            # All different, so that none of them merges with another.
            count = _masked(masks[row], cells)
            for i in range(count):
                ranks[row, cells[i]] = 16 + i
    return how
