"""True ranks of tiles above 65536, which a pack keeps only as a mask bit.

Decoding a row gives 16 for every masked cell, so a 65536 and a 131072 side by
side look like a pair that merges: the value sidecar of the original earned
millions of points by that (docs/formats/macroxue.md#true-ranks). The truth can nearly always be told:

1. Follow the game. Where the row before is known and this board is what its
   move makes of it, with one new tile of rank 1 or 2, the slid board tells the
   ranks. So a game played from the start is known throughout.
2. Solve. Where a run starts with masked tiles, or does not follow, `board_eval`
   tells, for packers compute it from the true ranks: the only ranks of 16 up to
   the column `max_rank` (31 where that holds less than 16) that give it are the
   truth. Of several, the only ones whose highest is `max_rank`.
3. Trace back. Of what is still open, the only ranks that also lead to the known
   board of the row after.
4. What then remains is unknown and counted. Its masked tiles are taken as all
   different: they slide, but never merge with one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows, decode_boards


@dataclass(frozen=True)
class TrueRanks:
    """Ranks of rows, and how far they are sure.

    ranks: uint8 [N, 16], row-major. unknown: bool [N], rows of rule 4. unfit: bool
    [N], those of them whose board_eval no ranks have, which a packer never writes.
    masked, followed, solved, unknown_rows: counts of rows with a masked tile, and of
    these by rule (solved: rules 2 and 3).
    """

    ranks: npt.NDArray[np.uint8]
    unknown: npt.NDArray[np.bool_]
    unfit: npt.NDArray[np.bool_]
    masked: int = 0
    followed: int = 0
    solved: int = 0
    unknown_rows: int = 0


def capped_ranks(rows: Rows) -> TrueRanks:
    """Step rows [N] decoded as they are: a masked cell is 16, whatever its tile."""
    ranks = decode_boards(rows["board"], rows["tile_65536_mask"])
    none = np.zeros(len(rows), np.bool_)
    return TrueRanks(ranks, none, none, int(np.count_nonzero(rows["tile_65536_mask"])))


def true_ranks(rows: Rows, run_starts: npt.NDArray[np.int64]) -> TrueRanks:
    """The true ranks of whole runs: step rows [N] of either layout, runs one after another.

    run_starts: where each run begins in `rows`, the first at 0. Values of columns
    are taken as they are; a `move_dir` above 3 is a move that nothing follows from.
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
