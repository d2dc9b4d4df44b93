"""The rules of 2048 for many boards at once: moves, scores, true ranks, gaps, symmetries, bins.

A board is 16 ranks, row by row from the top left: 0 is empty, r is the tile 2^r. A move pushes each
of the four lines towards a wall. Each tile merges at most once, nearest the wall first. Two tiles
of rank r become one of rank r+1 and earn 2^(r+1) points.

There is no table of lines: ranks up to 31 would need 32^4 entries, more than the fast cache of a
processor holds, and the rule on arrays of bytes runs on 32 or more of them at a time.

Symmetry k is k quarter turns clockwise for 0 to 3, and for 4 to 7 a left-right mirror image before
k - 4 quarter turns. It applies to step rows and to whatever has a value for each move.

board_eval is the engine's heuristic score of a board. A tile of rank r weighs T(r) = r * 2**r. The
score of a line starts with T of its first cell; each adjacent pair (a, b) of weights adds a + b if
a >= b, else 12 * (a - b), and a once more if a == b. The score of a board is the sum over its 4
rows, read left to right, and its 4 columns, read top to bottom. `../raw/fast_scanner.py` and
`rank_search.py` hold compiled forms.

Bins are fitted as the trainer's second tokenizer fits them. A branch that was not chosen is a
failure, is worth as much as the chosen one, or has a negative difference to it. The bins are
quantiles of these differences.

Source: docs/formats/macroxue.md#moves, docs/formats/macroxue.md#board-evaluation,
docs/formats/macroxue.md#true-ranks, docs/formats/macroxue.md#gaps,
docs/formats/macroxue.md#symmetries, docs/formats/macroxue.md#tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from gristmill.macroxue.format.rows import ROWS, STUDENT, Rows, as_bytes, decode_boards, pack_boards

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
    """Make the same move on every board uint8 [N, 16] of ranks 0..31, row by row.

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
    """Make on each board a move of its own: 0 up, 1 down, 2 left, 3 right; as `move_towards`."""
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


FITS_INT32 = 19
"""The highest rank with which the score of every board fits int32."""

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


@lru_cache(maxsize=1 << 16)
def line_score(line: tuple[int, int, int, int]) -> int:
    """Score of one line."""
    weights = [rank << rank for rank in line]
    score = weights[0]
    for a, b in pairwise(weights):
        score += a + b if a >= b else 12 * (a - b)
        if a == b:
            score += a
    return score


def board_score(ranks: Sequence[int]) -> int:
    """Score of one board; from rank 20 on it may not fit int32."""
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = ranks
    return (
        line_score((a, b, c, d))
        + line_score((e, f, g, h))
        + line_score((i, j, k, m))
        + line_score((n, o, p, q))
        + line_score((a, e, i, n))
        + line_score((b, f, j, o))
        + line_score((c, g, k, p))
        + line_score((d, h, m, q))
    )


def _line_scores(weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    a, b = weights[..., :-1], weights[..., 1:]
    pairs = np.where(a >= b, a + b, 12 * (a - b)) + np.where(a == b, a, 0)
    scores: npt.NDArray[np.int64] = weights[..., 0] + pairs.sum(axis=-1)
    return scores


def board_eval(ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
    """Scores of many boards [N, 16] of ranks 0..31 as int32 [N].

    Raises OverflowError, naming the first board, where a score does not fit int32, which is
    possible from rank 20 on. Raises ValueError for a rank out of range.
    """
    scores = board_scores(ranks)
    too_large = np.flatnonzero((scores < INT32_MIN) | (scores > INT32_MAX))
    if len(too_large):
        first = int(too_large[0])
        raise OverflowError(f"board {first}: board_eval {int(scores[first])} does not fit int32")
    return scores.astype(np.int32)


def board_scores(ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Scores of ranks [N, 16] as int64 [N], also where they do not fit int32."""
    cells = np.asarray(ranks, np.int64).reshape(-1, 4, 4)
    if cells.size and not 0 <= cells.min() <= cells.max() <= MAX_RANK:
        raise ValueError(f"ranks must be 0..{MAX_RANK}")
    weights = cells << cells
    scores: npt.NDArray[np.int64] = _line_scores(weights).sum(axis=1)
    scores += _line_scores(weights.swapaxes(1, 2)).sum(axis=1)
    return scores


def line_table() -> npt.NDArray[np.int32]:
    """Scores int32 [65536] of lines of ranks 0..15, by their nibbles, the first the highest."""
    keys = np.arange(1 << 16, dtype=np.int64)
    cells: npt.NDArray[np.int64] = np.stack([keys >> k & 15 for k in (12, 8, 4, 0)], axis=1)
    return _line_scores(cells << cells).astype(np.int32)


def _nibbles_at(*cells: int) -> np.uint64:
    return np.uint64(sum(15 << (60 - 4 * cell) for cell in cells))


# A transposition swaps the two cells off the diagonal in each quarter of the board (3 cells,
# 12 bits apart), then the two quarters off the diagonal (6 cells, 24 bits): (shift, lower cells).
_SWAPS = (
    (np.uint64(12), _nibbles_at(4, 6, 12, 14)),
    (np.uint64(24), _nibbles_at(8, 9, 12, 13)),
)


def transposed(boards: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Packed boards uint64 [N] with rows and columns exchanged."""
    for shift, lower in _SWAPS:
        difference = (boards ^ (boards >> shift)) & lower
        boards = boards ^ difference ^ (difference << shift)
    return boards


def packed_scores(
    boards: npt.NDArray[np.uint64], table: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Scores int32 [N] of packed boards uint64 [N] without ranks above 15."""
    total = np.zeros(len(boards), np.int32)
    for lines in (np.ascontiguousarray(boards), transposed(boards)):
        keys = lines.view(np.uint16).reshape(-1, 4)
        for line in range(4):
            total += table[keys[:, line]]
    return total


@dataclass(frozen=True)
class TrueRanks:
    """The ranks of rows, and how they became known.

    ranks: uint8 [N, 16], row by row.
    unknown: bool [N], rows of rule 4.
    unfit: bool [N], unknown rows whose board_eval no ranks give; no packer writes them.
    followed, solved, unknown_rows: how many of them by rule 1, by rules 2 and 3, by rule 4.
    """

    ranks: npt.NDArray[np.uint8]
    unknown: npt.NDArray[np.bool_]
    unfit: npt.NDArray[np.bool_]
    masked: int = 0
    followed: int = 0
    solved: int = 0
    unknown_rows: int = 0


def capped_ranks(rows: Rows) -> TrueRanks:
    """The ranks as decoding gives them: 16 in each masked cell, whatever its tile is."""
    ranks = decode_boards(rows["board"], rows["tile_65536_mask"])
    none = np.zeros(len(rows), np.bool_)
    return TrueRanks(ranks, none, none, int(np.count_nonzero(rows["tile_65536_mask"])))


def true_ranks(rows: Rows, run_starts: npt.NDArray[np.int64]) -> TrueRanks:
    """The true ranks of tiles above 65536 in whole runs; a pack keeps only a mask bit of them.

    Decoding gives 16 for each masked cell, so a 65536 next to a 131072 looks like a pair that
    merges. These rules find the truth for nearly every row:

    1. Follow the game. If the row before is known, and this board is what its move makes of it plus
       one new tile of rank 1 or 2, then the ranks are those of the moved board.
    2. Solve. Packers compute `board_eval` from the true ranks. Try all ranks from 16 to the column
       `max_rank` (to 31 if it is below 16 or above 31). If one choice gives `board_eval`, it is the
       truth. If several do, take the only one whose highest rank is `max_rank`.
    3. Trace back. For a row that is still open, take the only choice that gives `board_eval` and
       whose move leads to the known board of the next row.
    4. Otherwise the row is unknown and counted. Its masked tiles count as all different, so they
       slide but never merge with one another.

    rows: step rows [N] of either layout, runs one after another.
    run_starts: int64 [R], the first row of each run; the first one is 0.
    Columns may hold any values: no board follows from a `move_dir` above 3.
    """
    masks = rows["tile_65536_mask"]
    ranks = decode_boards(rows["board"], masks)
    masked = np.flatnonzero(masks)
    if not len(masked):
        return capped_ranks(rows)
    from gristmill.macroxue.rules import rank_search

    starts = np.zeros(len(rows), np.bool_)
    starts[run_starts[run_starts < len(rows)]] = True
    how = rank_search.search(
        ranks,
        np.ascontiguousarray(masks),
        np.ascontiguousarray(rows["move_dir"]),
        np.ascontiguousarray(rows["board_eval"]),
        np.ascontiguousarray(rows["max_rank"]),
        starts,
    )
    unknown = how >= rank_search.UNKNOWN
    count = np.bincount(how, minlength=rank_search.UNFIT + 1)
    return TrueRanks(
        ranks,
        unknown,
        how == rank_search.UNFIT,
        len(masked),
        int(count[rank_search.FOLLOWED]),
        int(count[rank_search.SOLVED] + count[rank_search.TRACED_BACK]),
        int(unknown.sum()),
    )


def broken(
    known: TrueRanks, after: npt.NDArray[np.uint8], judged: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Rows whose board is not the one before, moved, with one new tile of rank 1 or 2: bool [N].

    after: uint8 [N, 16], ranks after the recorded moves. judged: bool [N - 1], whether a row is
    compared with the row before. Rows behind one of unknown ranks are not.
    """
    wrong = np.zeros(len(after), np.bool_)
    # If the ranks of the later row are unknown, ranks of 16 and more count as equal.
    cap = np.where(known.unknown[1:], 16, 32).astype(np.uint8)[:, None]
    board, expected = np.minimum(known.ranks[1:], cap), np.minimum(after[:-1], cap)
    wrong[1:] = judged & ~known.unknown[:-1] & ~has_new_tile(expected, board)
    return wrong


def fresh(board: npt.NDArray[np.uint8]) -> bool:
    """Whether ranks uint8 [16] are the board of a new game: two tiles of rank 1 or 2."""
    return np.count_nonzero(board) == 2 and int(board.max()) <= 2


def lacks_points(first: npt.NDArray[np.uint8], points: int, score: int) -> bool:
    """Whether the rewards of a game do not sum to its score, nor to its score from a late start.

    A board that is no new game's was reached with the points of its tiles: (r - 1) * 2^r for a tile
    of rank r if all new tiles had rank 1, (r - 2) * 2^r if all had rank 2.
    """
    if points == score:
        return False
    ranks = [int(rank) for rank in first if rank]
    most = sum((rank - 1) << rank for rank in ranks)
    least = sum((rank - 2) << rank for rank in ranks if rank > 2)
    return fresh(first) or not least <= score - points <= most


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


KINDS: Final = ("search", "tuple10", "tuple11")
"""The valuation types that have bins."""
SEARCH_SCALE: Final = 1000.0
_STEP: Final = 1e-9
# Differences that are gathered before they are counted.
_GATHERED: Final = 1 << 20


@dataclass(frozen=True)
class BinRules:
    """How branches are judged: search branches below board_eval + failure_cutoff are failures."""

    failure_cutoff: int
    zero_tolerance: float


class Branches(NamedTuple):
    """The branches of rows of one kind that have a value and were not chosen.

    rows, legal, failures, zeros: numbers of rows, of these branches, of failures, and of those
        that are worth as much as the chosen one.
    below: float64 [M], the negative differences of the others.
    """

    rows: int
    legal: int
    failures: int
    zeros: int
    unvalued: int
    below: npt.NDArray[np.float64]


def branches(rows: Rows, kind: str, rules: BinRules) -> Branches:
    """Judge the branches of rows [N], all of one kind."""
    places, moves = np.arange(len(rows)), rows["move_dir"] & 3
    legal = ((rows["ev_legal"][:, None] >> np.arange(4)) & 1).astype(np.bool_)
    unvalued = int(np.count_nonzero(~legal[places, moves]))
    legal[places, moves] = False
    values = rows["branch_evs"].astype(np.float64)
    if kind == "search":
        values = np.rint(values * SEARCH_SCALE)
        tolerance = 0.5
        worst = values - rows["board_eval"].astype(np.float64)[:, None] < rules.failure_cutoff
    else:
        tolerance = rules.zero_tolerance
        worst = values <= rules.zero_tolerance
    failures = worst & legal
    with np.errstate(invalid="ignore"):  # infinity less infinity
        differences = values - values[places, moves][:, None]
    judged = legal & ~failures
    zeros = judged & (np.abs(differences) <= tolerance)
    below = differences[judged & ~zeros]
    others, failed, equal = (int(np.count_nonzero(flags)) for flags in (legal, failures, zeros))
    return Branches(len(rows), others, failed, equal, unvalued, below[below < 0])


@dataclass
class Differences:
    """The negative differences of one kind, each once with its number: exact, and in little memory.

    counts: `rows`, `legal_branches`, `failure_branches` and `zero_disadvantage`, as the trainer
        calls them, and `unvalued`.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    _numbers: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _new: list[npt.NDArray[np.float64]] = field(default_factory=list)
    _gathered: int = 0

    def add(self, found: Branches) -> None:
        """Add the branches of more rows."""
        self.counts.update(
            rows=found.rows,
            legal_branches=found.legal,
            failure_branches=found.failures,
            zero_disadvantage=found.zeros,
            unvalued=found.unvalued,
        )
        self._new.append(found.below)
        self._gathered += len(found.below)
        if self._gathered >= max(_GATHERED, len(self._values)):
            self._count()

    def _count(self) -> None:
        new, numbers = np.unique(np.concatenate([np.empty(0), *self._new]), return_counts=True)
        self._new, self._gathered = [], 0
        joined = np.concatenate([self._values, new])
        self._values, places = np.unique(joined, return_inverse=True)
        weights = np.concatenate([self._numbers, numbers])
        self._numbers = np.zeros(len(self._values), np.int64)
        np.add.at(self._numbers, places, weights)

    def __len__(self) -> int:
        """The number of differences."""
        self._count()
        return int(self._numbers.sum())

    def edges(self, bins: int) -> list[float]:
        """The edges of bins: bins + 1 numbers, each above the one before.

        Linear quantiles at even distances, as `np.quantile` gives them; the last edge is at least
        0, and an edge that is not above the one before is 1e-9 above it. Raises ValueError where
        there are too few differences, or edges are infinite or too large for float64 to tell apart.
        """
        total = len(self)
        if total < bins:
            raise ValueError(f"{total} negative differences do not fill {bins} bins")
        ends = np.cumsum(self._numbers)
        quantiles = np.linspace(0.0, 1.0, bins + 1) * (total - 1)
        found: list[float] = []
        for place in quantiles.tolist():
            low = int(place)
            around = np.searchsorted(ends, [low, min(low + 1, total - 1)], "right")
            found.append(float(np.quantile(self._values[around], place - low)))
        found[-1] = max(found[-1], 0.0)
        for at in range(1, len(found)):
            if found[at] <= found[at - 1]:
                found[at] = found[at - 1] + _STEP
        if not (np.isfinite(found).all() and (np.diff(found) > 0).all()):
            raise ValueError("the edges of the bins are infinite, or too large to differ")
        return found


class Fit:
    """The fit of all kinds over the rows of a dataset."""

    def __init__(self, names: Sequence[str], rules: BinRules) -> None:
        self._ids = {kind: names.index(kind) for kind in KINDS if kind in names}
        self._rules = rules
        self.kinds = {kind: Differences() for kind in KINDS}

    def add(self, rows: Rows) -> None:
        """Add rows [N]."""
        for kind, number in self._ids.items():
            own = rows[rows["valuation_type"] == number]
            if len(own):
                self.kinds[kind].add(branches(own, kind, self._rules))
