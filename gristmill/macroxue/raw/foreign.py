"""Boards of 2048 in forms that no drop has, and the form that one has.

Source: docs/formats/macroxue.md#steps-of-other-programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

NPY: Final = (
    "`macroxue` reads them from steps*.npy, whose rows have named columns, and ranks for cells "
    "(1 is the tile 2), as "
    '`np.save("steps.npy", np.array(rows, [("game", "u4"), ("exps", "u1", 16), ("move", "u1")]))` '
    "writes them, beside a steps.toml that says which column is run_id and which is board, as "
    'schema = 1, kind = "steps", [fields] run_id = "game", board = "exps"'
)
"""What makes a drop of boards."""
_RANKS: Final = {*map(str, range(18)), *(str(1 << rank) for rank in range(18))}
"""Cells of a board, as ranks or as tiles."""


def board_hints(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what rows are that hold boards, or steps of a game; rows: that were looked at."""
    if rows and all(map(_has_board, rows)):
        yield f"boards of 2048, by the 16 cells of each row: {NPY}"
    names = {name for row in rows for name in row}
    if {"board", "move"} <= names or {"state", "action"} <= names:
        yield "steps of a game: `macroxue` reads the games that its player writes"


def _has_board(row: Mapping[str, Any]) -> bool:
    """Whether a row has the cells of a board, with at most a few numbers beside them."""
    words = re.findall(r"[^]\s,;:(){}'\"[]+", " ".join(map(str, row.values())))
    runs = [len([*own]) for is_cell, own in groupby(words, _RANKS.__contains__) if is_cell]
    return any(16 <= length < 24 for length in runs)
