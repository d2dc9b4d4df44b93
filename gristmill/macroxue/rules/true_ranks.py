"""True ranks of tiles above 65536, of which a pack keeps only a mask bit.

Decoding gives 16 for each masked cell, so a 65536 next to a 131072 looks like a pair that merges.
These rules find the truth for nearly every row:

1. Follow the game. If the row before is known, and this board is what its move makes of it plus one
   new tile of rank 1 or 2, then the ranks are those of the moved board.
2. Solve. Packers compute `board_eval` from the true ranks. Try all ranks from 16 to the column
   `max_rank` (to 31 if it is below 16 or above 31). If one choice gives `board_eval`, it is the
   truth. If several do, take the only one whose highest rank is `max_rank`.
3. Trace back. For a row that is still open, take the only choice that gives `board_eval` and whose
   move leads to the known board of the next row.
4. Otherwise the row is unknown and counted. Its masked tiles count as all different, so they slide
   but never merge with one another.

Source: docs/formats/macroxue.md#true-ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gristmill.macroxue.format.rows import Rows, decode_boards


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
    """The true ranks of whole runs.

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
