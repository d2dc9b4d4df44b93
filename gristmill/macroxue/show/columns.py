"""The columns of packs and value sidecars, for people who look for a field."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gristmill.families import Column
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE

_STEPS = {
    "run_id": "the run: runs.id in metadata.db",
    "step_index": "number of the step in its game",
    "board": "the board before the move, four bits a cell",
    "board_eval": "evaluation of the board, of the true ranks",
    "tile_65536_mask": "cells with a tile of 65,536 or more",
    "move_dir": "the chosen move: 0 up, 1 down, 2 left, 3 right",
    "valuation_type": "id of the name in valuation_types.json",
    "ev_legal": "bit 0 up, 1 down, 2 left, 3 right: the expected value was a number",
    "max_rank": "as the log has it",
    "seed": "low 32 bits of the seed",
    "branch_evs": "expected values of up, down, left, right; 0.0 where there is none",
}
_VALUES = {
    "run_id": "as in the steps",
    "step_index": "as in the steps",
    "reward": "points of the recorded move",
    "reward_scaled": "reward times reward_scale",
    "return_raw": "discounted return",
    "return_scaled": "the return on the scale of value heads",
}
_DATABASE = (
    Column("runs.id", "INTEGER", "run_id"),
    Column("runs.seed", "BIGINT", "the meta's seed as a signed number"),
    Column("runs.steps", "INT", "rows of the run"),
    Column("runs.max_score", "INT", "score of the game"),
    Column("runs.highest_tile", "INT", "highest tile of the game"),
    Column("session.meta_key", "TEXT", "a key of the session"),
    Column("session.meta_value", "TEXT", "its value"),
)
_GAPS = (
    Column("gaps.run_id", "INTEGER", "a run with missing steps, whose values are NaN"),
    Column("gaps.step_index", "INT", "the first step that does not follow, or the last step"),
    Column("gaps.reason", "TEXT", "board, or score: what tells that steps are missing"),
)


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables."""
    if asset in ("macroxue/pack", "macroxue/pool"):
        return [*_of(STEP_ROW_DTYPE, "steps", _STEPS), *_DATABASE]
    if asset == "macroxue/values":
        return _of(VALUE_ROW_DTYPE, "values", _VALUES)
    if asset == "macroxue/training_view":
        packed, valued = columns("macroxue/pack"), columns("macroxue/values")
        return [*packed, *valued, *_GAPS]
    return ()


def _of(dtype: np.dtype[np.void], table: str, texts: dict[str, str]) -> list[Column]:
    found = []
    for name in dtype.names or ():
        base, shape = dtype[name].subdtype or (dtype[name], ())
        size = "".join(f"[{length}]" for length in shape)
        found.append(Column(f"{table}.{name}", f"{base.name}{size}", texts[name]))
    return found
