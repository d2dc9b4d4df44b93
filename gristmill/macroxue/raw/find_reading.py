"""Which readings of a drop of steps give games of 2048. Source: docs/formats/macroxue.md#readings.

What a row says under one reading is what it says under another, turned. So boards are moved in the
order of the file, and each reading is tried on the few combinations of bits that the rows have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.raw.read_steps import RawRun
from gristmill.macroxue.raw.readings import Reading
from gristmill.macroxue.raw.step_files import STEPS, StepDrop, StepRun, find_steps, runs_of
from gristmill.macroxue.rules.board_eval import board_scores
from gristmill.macroxue.rules.moves import MAX_RANK, Ranks, bits_at, has_new_tile, move_towards
from gristmill.macroxue.rules.symmetries import BRANCHES, CELLS
from gristmill.untrusted.files import LinkRule

_ROWS: Final = 1 << 16
"""Rows that are judged together."""
_FOUND: Final = 4
"""The number of a move that is not recorded."""
_CHANGES: Final = {
    "first_cell": "another first cell",
    "directions": "another order of the directions",
    "cells": "another order of the cells",
}


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
    if steps is None or not wrong.get(stated := steps.reading):
        return ""
    fitting = [reading for reading, rows in wrong.items() if not rows]
    if not fitting:
        return f"none of the {len(Reading.every())} orders of directions and cells fits all rows"
    best = min(fitting, key=lambda each: _distance(stated, each))
    lines = stated.changed(best)
    names = " and ".join(text for key, text in _CHANGES.items() if key in lines)
    others = ""
    if len(fitting) > 1:
        others = (
            f" ({len(fitting) - 1:,} others fit as well, since a game that is turned or mirrored is"
            " one, too: this one changes least)"
        )
    rule = f"{wrong[stated]:,} of {count:,} rows break the rules of 2048 as it has them read, and"
    rule = f"{rule} all rows fit {names}{others}: write above [fields]:"
    raise BadInput(drop / STEPS, "\n".join([rule, *lines.values()]))


def _distance(stated: Reading, other: Reading) -> tuple[int, list[int], int]:
    """How much of what is stated another reading changes: keys, which ones, and directions."""
    changed = [at for at, key in enumerate(_CHANGES) if key in stated.changed(other)]
    return len(changed), changed, int((stated.moves != other.moves).sum())


class _Rows(NamedTuple):
    """Some rows, by the cells and numbers of the file.

    ranks: uint8 [N, 16]. follows: whether the next row is the next step. number: of the move.
    valued, bits: of values other than 0, and of all values. score: the board_eval; scored: whether
    it can be compared.
    """

    ranks: Ranks
    follows: npt.NDArray[np.bool_]
    number: Ranks
    valued: Ranks
    bits: Ranks
    score: npt.NDArray[np.int64]
    scored: npt.NDArray[np.bool_]


def _wrong_rows(steps: StepDrop) -> tuple[dict[Reading, int], int]:
    """How many rows break a rule under each reading, and the number of all rows that are judged."""
    runs, wrong, count = runs_of(steps), dict[Reading, int](), 0
    is_named = "move_dir" in steps.fields and steps.dtype[steps.fields["move_dir"]].kind not in "iu"
    is_packed = not steps.dtype[steps.fields["board"]].shape
    for first_cell in ("high", "low") if is_packed else ("high",):
        readings = [each for each in Reading.every() if each.first_cell == first_cell]
        turns = [_turn(each) for each in readings]
        seen, misjudged = Counter[int](), [0] * len(CELLS)
        try:
            for cap, rows in _batches(runs, first_cell):
                keys, counts = np.unique(_combinations(rows, cap), return_counts=True)
                seen.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
                scored = np.flatnonzero(rows.scored)
                for turn, cells in enumerate(CELLS):
                    if len(scored) and (not misjudged[turn] or turn == _turn(steps.reading)):
                        scores = board_scores(rows.ranks[scored][:, cells])
                        misjudged[turn] += int((scores != rows.score[scored]).sum())
        except BadInput:
            continue  # the mask is not that of these nibbles
        keys, counts = np.array([*seen], np.int64), np.array([*seen.values()], np.int64)
        count = max(count, int(counts.sum()))
        for turn, reading in zip(turns, readings, strict=True):
            numbers = BRANCHES[turn][reading.moves]
            moves = BRANCHES[turn] if is_named else numbers
            broken = int(counts[_is_broken(keys, moves, numbers)].sum())
            wrong[reading] = max(broken, misjudged[turn])
    return wrong, count


def _turn(reading: Reading) -> int:
    """The symmetry that makes the boards of the file those of a pack."""
    return int((reading.order == CELLS).all(axis=1).argmax())


def _batches(runs: Iterable[StepRun], first_cell: str) -> Iterator[tuple[int, _Rows]]:
    """Yield the rows of some runs, and the highest rank that they can hold."""
    waiting, count, cap = list[_Rows](), 0, MAX_RANK
    for run in runs:
        raw = RawRun.read(run)
        cap, ranks = raw.cap, raw.cells(first_cell)
        (evs, bits), number = raw.expected(), np.full(len(ranks), _FOUND, np.uint8)
        if raw.given is not None:
            is_named = raw.column("move_dir").dtype.kind not in "iu"
            own = np.arange(4) if is_named else np.argsort(run.steps.reading.moves)
            number = own[raw.given].astype(np.uint8)
        valued = bits & np.packbits(evs != 0, axis=1, bitorder="little")[:, 0]
        scored = np.full(len(ranks), raw.has("board_eval"))
        scored &= (ranks.max(axis=1, initial=0) < cap) | (cap == MAX_RANK)
        score = raw.numbers("board_eval", np.zeros(len(ranks)), np.int32).astype(np.int64)
        waiting.append(_Rows(ranks, raw.follows, number, valued, bits, score, scored))
        count += len(ranks)
        if count >= _ROWS:
            yield cap, _Rows(*map(np.concatenate, zip(*waiting, strict=True)))
            waiting, count = [], 0
    if waiting:
        yield cap, _Rows(*map(np.concatenate, zip(*waiting, strict=True)))


def _combinations(rows: _Rows, cap: int) -> npt.NDArray[np.int64]:
    """What counts of each row that becomes a row of a pack: int64 [M].

    From the lowest bit: 3 of the number of its move, then 4 each of legal moves, of those that lead
    to the next board, of values other than 0, and of values.
    """
    ranks = rows.ranks
    legal, leads = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
    for direction in range(4):
        after, _, changed = move_towards(ranks, direction)
        is_next = has_new_tile(np.minimum(after[:-1], cap), ranks[1:])
        legal |= changed.astype(np.int64) << direction
        leads[:-1] |= is_next.astype(np.int64) << direction
    leads = np.where(rows.follows, leads, 15)
    # Two tiles that the column cannot tell apart need not merge.
    kept = (rows.follows | (rows.number != _FOUND)) & ((ranks >= cap).sum(axis=1) < 2)
    bits = (rows.valued.astype(np.int64) << 11) | (rows.bits.astype(np.int64) << 15)
    made: npt.NDArray[np.int64] = rows.number | (legal << 3) | (leads << 7) | bits
    return made[kept]


def _is_broken(
    keys: npt.NDArray[np.int64], moves: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether rows of each combination break a rule: bool [K].

    moves, numbers: the direction in the file of each number of a move, and of each value.
    """
    number, legal, leads = keys & 7, (keys >> 3) & 15, (keys >> 7) & 15
    at = np.argsort(numbers)
    valued, bits = (bits_at(((keys >> by) & 15).astype(np.uint8), at) for by in (11, 15))
    made = legal & leads
    made = np.where(number == _FOUND, made, made & (1 << moves[number & 3]))
    broken: npt.NDArray[np.bool_] = (made == 0) | (valued & ~legal != 0)
    return broken | ((bits != 0) & (bits & made == 0))
