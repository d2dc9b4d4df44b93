"""Which readings of a drop of steps give games of 2048. Source: docs/formats/macroxue.md#readings.

Boards are moved as the file has them. What counts of a row is some bits, of which rows have few
combinations: each reading turns these.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.raw.read_steps import RawRun
from gristmill.macroxue.raw.step_files import (
    READINGS,
    STEPS,
    Reading,
    StepDrop,
    find_steps,
    runs_of,
)
from gristmill.macroxue.rules.board_eval import board_scores
from gristmill.macroxue.rules.moves import has_new_tile, move_towards
from gristmill.macroxue.rules.symmetries import BRANCHES, CELLS
from gristmill.untrusted.files import LinkRule

_KEYS: Final = 1 << 12
"""Combinations that are tried together."""
_FOUND: Final = 4
"""The number of a move that is not recorded."""
_Ints = npt.NDArray[np.integer[Any]]


def none_fits(drop: Path, links: LinkRule) -> str:
    """What to add to what is wrong with rows of a drop: that no other reading helps.

    Returns an empty text for a drop that is not of steps, whose rows cannot be read, or fit as they
    are read. Raises BadInput with the lines to write where all its rows fit another reading.
    """
    try:
        steps = find_steps(drop, links)
        wrong, count = _wrong_rows(steps) if steps else ({}, 0)
    except BadInput:
        return ""
    if steps is None or not wrong or not wrong.get(stated := steps.reading, count):
        return ""
    fitting = [reading for reading, rows in wrong.items() if not rows]
    if not fitting:
        return "; none of the 384 orders of directions, cells and nibbles fits all rows"

    def changed(other: Reading) -> list[str]:
        return [key for key in READINGS if getattr(other, key) != getattr(stated, key)]

    def distance(other: Reading) -> tuple[Any, ...]:
        keys = changed(other)
        return len(keys), [[*READINGS].index(key) for key in keys], sum(other.moves != stated.moves)

    best = min(fitting, key=distance)
    lines = " and ".join(f"`{key} = {json.dumps(getattr(best, key))}`" for key in changed(best))
    names = " and ".join({"first_cell": "nibbles"}.get(key, key) for key in changed(best))
    rule = f"{wrong.get(stated, count):,} of {count:,} rows break the rules of 2048 as it has them"
    rule += f" read; all fit another order of the {names}: write {lines} above [fields]"
    if len(fitting) > 1:
        rule += f" ({len(fitting) - 1} others fit, too: a game that is turned or mirrored is one)"
    raise BadInput(drop / STEPS, rule)


def _wrong_rows(steps: StepDrop) -> tuple[dict[Reading, int], int]:
    """How many rows break a rule under each reading, and the number of rows that are judged."""
    runs, wrong, count = runs_of(steps), dict[Reading, int](), 0
    is_packed = not steps.dtype[steps.fields["board"]].shape
    for first_cell in ("high", "low") if is_packed else ("high",):
        seen = Counter[int]()
        try:
            for run in runs:
                keys, counts = np.unique(_keys(RawRun.read(run), first_cell), return_counts=True)
                seen.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        except BadInput:
            continue  # as for a mask that is of the other nibbles
        count = max(count, seen.total())
        orders = product(READINGS["directions"][0], READINGS["cells"][0])
        readings = [Reading(first_cell, *each) for each in orders]
        rows = _broken(np.array([*seen]), np.array([*seen.values()]), readings, steps)
        wrong |= dict(zip(readings, rows.tolist(), strict=True))
    return wrong, count


def _keys(raw: RawRun, first_cell: str) -> _Ints:
    """What counts of each row that becomes a row of a pack: int64 [M].

    From the lowest bit: 3 of the number of its move, then 4 each of legal moves, of those that lead
    to the next board, of values other than 0, and of values; 8 of turns with its board_eval.
    """
    ranks = raw.cells(first_cell)
    number = np.full(len(ranks), _FOUND) if raw.given is None else raw.given.astype(int)
    (evs, stated), legal, leads, scored = raw.expected(), 0 * number, 0 * number, 0 * number
    for direction in range(4):
        after, _, changed = move_towards(ranks, direction)
        legal |= changed.astype(int) << direction
        is_next = has_new_tile(np.minimum(after[:-1], raw.cap), ranks[1:])
        leads[:-1] |= is_next.astype(int) << direction
    leads[~raw.follows] = 15
    score = raw.numbers("board_eval", number, np.int32)
    is_certain = (ranks.max(axis=1, initial=0) < raw.cap) & raw.has("board_eval")
    for turn, cells in enumerate(CELLS if is_certain.any() else ()):
        scored |= (board_scores(ranks[:, cells]) == score).astype(int) << turn
    scored[~is_certain] = 255
    valued = stated & np.packbits(evs != 0, axis=1, bitorder="little")[:, 0]
    # Two tiles that the column cannot tell apart need not merge.
    kept = (raw.follows | (number != _FOUND)) & ((ranks >= raw.cap).sum(axis=1) < 2)
    for part, by in ((legal, 3), (leads, 7), (valued, 11), (stated, 15), (scored, 19)):
        number |= part.astype(int) << by
    made: _Ints = number[kept]
    return made


def _broken(keys: _Ints, counts: _Ints, readings: list[Reading], steps: StepDrop) -> _Ints:
    """How many rows break a rule under each of R readings, of combinations [K] and their counts."""
    turns = np.array([reading.turn for reading in readings])
    moves = np.array([reading.moves for reading in readings], np.int64)
    # The direction in the file of each number, and of a move.
    numbers = np.take_along_axis(BRANCHES[turns], moves, axis=1)
    chosen = 1 << (BRANCHES[turns] if steps.has_names else numbers)
    # A move that is not recorded is any that leads to the next board.
    chosen = np.append(chosen, np.full((len(turns), 1), 15), axis=1).astype(np.uint8)
    bits = np.arange(16)[:, None] >> np.arange(4) & 1
    turned = (bits << numbers[:, None]).sum(axis=2).astype(np.uint8)
    rows = np.zeros(len(turns), np.int64)
    for at in range(0, len(keys), _KEYS):
        number, legal, leads, valued, stated, scored = (
            ((keys[at : at + _KEYS] >> by) & most).astype(np.uint8)
            for by, most in ((0, 7), (3, 15), (7, 15), (11, 15), (15, 15), (19, 255))
        )
        made, values = chosen[:, number] & legal & leads, turned[:, stated]
        broken = (
            (made == 0) | (turned[:, valued] & ~legal != 0) | (values != 0) & (values & made == 0)
        )
        broken |= scored >> turns[:, None] & 1 == 0
        rows += broken @ counts[at : at + _KEYS]
    return rows
