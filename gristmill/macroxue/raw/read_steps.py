"""One run of .npy steps to rows, and which readings of a drop of steps give games of 2048.

To find a reading, boards are moved as the file has them. What counts of a row is some bits, of
which rows have few combinations: each reading turns these.
Source: docs/formats/macroxue.md#rows-of-other-programs, docs/formats/macroxue.md#readings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import (
    MOVES,
    STEP_ROW_DTYPE,
    Rows,
    decode_boards,
    pack_boards,
)
from gristmill.macroxue.raw.step_files import (
    READINGS,
    STEPS,
    Reading,
    StepDrop,
    StepRun,
    find_steps,
    runs_of,
)
from gristmill.macroxue.raw.strict_parser import Meta, Names, RunFacts
from gristmill.macroxue.rules.game import (
    BRANCHES,
    CELLS,
    INT32_MAX,
    INT32_MIN,
    MAX_RANK,
    Ranks,
    bits_at,
    board_scores,
    has_new_tile,
    move,
    move_towards,
)
from gristmill.untrusted.files import LinkRule

MOST_STEPS = 1 << 22
"""Steps of a run: all its rows are in memory at once."""

_U32 = (1 << 32) - 1
_NO_NAME = "none"
_Bools = npt.NDArray[np.bool_]


def read_steps(run: StepRun, run_id: int, names: Names, sink: Callable[[Rows], None]) -> RunFacts:
    """Read a run."""
    if run.listed is None and run.meta_name == "metadata.db":
        rule = f"has no row for run {run.raw_run} of {run.steps_name}: add it, or remove the file"
        raise BadInput(run.steps.folder / run.meta_name, rule)
    raw = RawRun.read(run)
    reading = run.steps.reading
    ranks = raw.cells(reading.first_cell)[:, CELLS[reading.turn]]
    moves, several = _moves(raw, ranks)
    kept = np.flatnonzero(moves <= 3)
    after, reward, _ = move(ranks[kept], moves[kept])
    rows = np.zeros(len(kept), STEP_ROW_DTYPE)
    rows["run_id"], rows["step_index"] = run_id, raw.index[kept]
    board, mask = pack_boards(ranks)
    columns: dict[str, npt.NDArray[Any]] = {
        "board": board,
        "tile_65536_mask": mask,
        "board_eval": _evals(raw, ranks),
        "move_dir": moves,
        "max_rank": raw.numbers("max_rank", ranks.max(axis=1, initial=0)),
        "seed": raw.seeds,
    }
    # The place of each move among the numbers of the program.
    numbers = np.argsort(reading.moves)
    evs, bits = raw.expected()
    columns["branch_evs"], columns["ev_legal"] = evs[:, numbers], bits_at(bits, numbers)
    for name, values in columns.items():
        rows[name] = values[kept]
    rows["valuation_type"] = _valuations(raw, kept, names)
    listed = run.listed
    reached = max(int(ranks.max(initial=0)), int(after.max(initial=0)))
    meta = Meta(
        seed=listed.seed if listed else raw.seed,
        num_moves=listed.steps if listed else len(rows),
        score=listed.max_score if listed else int(reward.sum()),
        max_tile=listed.highest_tile if listed else 1 << reached if reached else 0,
        max_rank=None,
        depth=None,
        seconds=None,
    )
    facts = RunFacts(meta, *run.digests)
    facts.rows_with = {
        "no_next_board": len(ranks) - len(kept),
        "several_moves": int(several.sum()),
        "no_mask": int((ranks.max(axis=1, initial=0) >= 15).sum()) if raw.cap == 15 else 0,
    }
    if len(rows):
        facts.count(rows)
        sink(rows)
    return facts


@dataclass
class RawRun:
    """The rows of a run by step_index, and where each of them is.

    rows: [N]. index: int64 [N]. places: int64 [N, 2], number of the file, and row in it.
    """

    run: StepRun
    rows: Rows
    index: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    @staticmethod
    def read(run: StepRun) -> RawRun:
        """The rows in order."""
        places = run.places
        raw = RawRun(run, np.empty(len(places), run.steps.dtype), np.arange(len(places)), places)
        if len(places) > MOST_STEPS:
            raise raw.error(0, f"the run has {len(places):,} steps, more than {MOST_STEPS:,}")
        raw.rows = run.rows()
        index = raw.numbers("step_index", np.arange(len(places)), np.uint32).astype(np.int64)
        order = np.argsort(index, kind="stable")
        raw = RawRun(run, raw.rows[order], index[order], places[order])
        raw.refuse(np.append(False, raw.index[1:] == raw.index[:-1]), "the step is there twice")
        return raw

    def place(self, step_index: int) -> tuple[str, int, int, int]:
        """The file of a step, its row there from 1, and its first byte and last byte + 1."""
        number, row = self.places[int(np.searchsorted(self.index, step_index))].tolist()
        file, size = self.run.steps.files[number], self.rows.itemsize
        begin = file.offset + row * size
        return file.name, row + 1, begin, begin + size

    def error(self, at: int, rule: str) -> BadInput:
        """The error of a row."""
        number, row = self.places[at].tolist()
        path = self.run.steps.folder / self.run.steps.files[number].name
        return BadInput(path, f"run {self.run.raw_run} step {self.index[at]}: {rule}", row + 1)

    def refuse(self, wrong: _Bools, rule: str) -> None:
        """Raise BadInput for the first wrong row."""
        if wrong.any():
            raise self.error(int(wrong.argmax()), rule)

    def has(self, field: str) -> bool:
        """Whether the files have a field."""
        return field in self.run.steps.fields

    def column(self, field: str) -> npt.NDArray[Any]:
        """The column of a field, as the files have it."""
        return self.rows[self.run.steps.fields[field]]

    def numbers(
        self, field: str, default: npt.NDArray[Any], dtype: npt.DTypeLike = np.uint8
    ) -> npt.NDArray[Any]:
        """The column of a field as integers of a type; `default` where the files do not have it."""
        if not self.has(field):
            return default
        values, limits = self.column(field), np.iinfo(np.dtype(dtype))
        self.refuse((values < limits.min) | (values > limits.max), f"{field} does not fit {dtype}")
        return values.astype(dtype)

    @property
    def cap(self) -> int:
        """The highest rank that the column of boards can hold."""
        is_packed = self.run.steps.dtype[self.run.steps.fields["board"]].shape == ()
        return (16 if self.has("tile_65536_mask") else 15) if is_packed else MAX_RANK

    @property
    def seed(self) -> int:
        """The seed of a run that metadata.db does not tell: that of its first row, else 0."""
        return int(self.column("seed")[0]) if self.has("seed") and len(self.rows) else 0

    @cached_property
    def seeds(self) -> npt.NDArray[np.uint64]:
        """The low 32 bits of the seed of each row."""
        listed = self.run.listed.seed if self.run.listed else 0
        seeds = self.column("seed") if self.has("seed") else np.full(len(self.rows), listed)
        return seeds.astype(np.int64).view(np.uint64) & np.uint64(_U32)

    def cells(self, first_cell: str) -> Ranks:
        """The ranks of the boards in the order of the file: uint8 [N, 16], at most `cap`."""
        board = self.column("board")
        if self.cap == MAX_RANK:
            wrong = np.any((board < 0) | (board > MAX_RANK), axis=1)
            self.refuse(wrong, f"a rank is not 0..{MAX_RANK}")
            return board.astype(np.uint8)
        packed = board.astype(np.uint64)
        none = np.zeros(len(board), np.uint16)
        if first_cell == "low":
            packed, _ = pack_boards(decode_boards(packed, none)[:, ::-1])
        ranks = decode_boards(packed, self.numbers("tile_65536_mask", none, np.uint16))
        wrong = pack_boards(ranks)[0] != packed
        self.refuse(wrong, "tile_65536_mask marks a cell that is not 15")
        return ranks

    @cached_property
    def given(self) -> Ranks | None:
        """The numbers of the moves in the files, uint8 [N]; None without them."""
        if not self.has("move_dir"):
            return None
        column = self.column("move_dir")
        if not self.run.steps.has_names:
            names = "0 {}, 1 {}, 2 {} or 3 {}".format(*self.run.steps.reading.directions)
            self.refuse((column < 0) | (column > 3), f"the move is not {names}")
            return column.astype(np.uint8)
        moves = np.full(len(column), 255, np.uint8)
        for direction, name in enumerate(MOVES):
            # No text is made of a value: NumPy keeps characters that Python does not have.
            moves[column == np.array(name, column.dtype.kind)] = direction
        self.refuse(moves > 3, f"the move is not {', '.join(MOVES)}")
        return moves

    def expected(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
        """Expected values float32 [N, 4], and which are there as bits uint8 [N], by number."""
        count = len(self.rows)
        if not self.has("branch_evs"):
            return np.zeros((count, 4), np.float32), np.zeros(count, np.uint8)
        with np.errstate(over="ignore"):
            evs = self.column("branch_evs").astype(np.float32)
        numbers = (~np.isnan(evs) << np.arange(4)).sum(axis=1).astype(np.uint8)
        legal = self.numbers("ev_legal", numbers)
        self.refuse(legal > 15, "ev_legal has more than 4 bits")
        is_nan = (legal & ~numbers) != 0
        self.refuse(is_nan, "ev_legal has the bit of an expected value that is NaN")
        is_legal = (legal[:, None] >> np.arange(4)) & 1 == 1
        return np.where(is_legal, evs, np.float32(0)), legal

    @cached_property
    def follows(self) -> _Bools:
        """Whether the next row is the next step: bool [N]."""
        return np.append(self.index[1:] == self.index[:-1] + 1, False)[: len(self.rows)]


def _moves(raw: RawRun, ranks: Ranks) -> tuple[Ranks, _Bools]:
    """The moves, uint8 [N], 255 where the next board is not there, and where several moves fit.

    Ranks at the cap that follow from the game are raised to the truth.
    """
    steps, given = raw.run.steps, raw.given
    if given is not None and not steps.has_names:
        given = steps.reading.moves[given]
    fits = np.zeros((4, len(ranks)), np.bool_)
    for direction in range(4):
        after, _, changed = move_towards(ranks[:-1], direction)
        is_next = has_new_tile(np.minimum(after, raw.cap), ranks[1:])
        fits[direction, :-1] = changed & is_next & raw.follows[:-1]
    chosen = fits.argmax(axis=0).astype(np.uint8) if given is None else given
    # A merge of two tiles at the cap is not on the next board: the truth is followed from there.
    merged = (move(ranks, chosen)[0].max(axis=1, initial=0) > raw.cap) & raw.follows
    if merged.any():
        _follow(raw, ranks, fits, given, int(merged.argmax()))
    if given is not None:
        return given, np.zeros(len(given), np.bool_)
    raw.refuse(raw.follows & ~fits.any(axis=0), "no move leads to the board of the next step")
    moves = np.where(raw.follows, fits.argmax(axis=0), 255).astype(np.uint8)
    return moves, fits.sum(axis=0) > 1


def _follow(raw: RawRun, ranks: Ranks, fits: _Bools, given: Ranks | None, first: int) -> None:
    """Raise ranks at the cap to what the game makes of them, from a row on, while it follows."""
    for at in range(first, len(ranks) - 1):
        made = None
        fits[:, at] = False
        for direction in range(4) if given is None else (int(given[at]),):
            after, _, changed = move_towards(ranks[at : at + 1], direction)
            capped = np.minimum(after, raw.cap)
            if changed[0] and has_new_tile(capped, ranks[at + 1 : at + 2])[0]:
                fits[direction, at] = True
                made = after[0] if made is None else made
        if made is None or not raw.follows[at]:
            return
        is_made = np.minimum(made, raw.cap) == ranks[at + 1]
        ranks[at + 1] = np.where(is_made, made, ranks[at + 1])


def _evals(raw: RawRun, ranks: Ranks) -> npt.NDArray[np.integer[Any]]:
    """The board_eval of each row; a column of the files is compared where ranks are certain."""
    scores = board_scores(ranks)
    given = raw.numbers("board_eval", scores, np.int32)
    is_certain = (ranks.max(axis=1, initial=0) < raw.cap) | (raw.cap == MAX_RANK)
    raw.refuse(is_certain & (scores != given), "board_eval is not that of the board")
    raw.refuse((given < INT32_MIN) | (given > INT32_MAX), "board_eval does not fit int32")
    return given


def _valuations(raw: RawRun, kept: npt.NDArray[np.int64], names: Names) -> npt.NDArray[np.uint8]:
    """The ids of the valuation names of the rows that are kept; new names are added."""
    kinds = raw.run.steps.kinds
    if kinds is None or not raw.has("valuation_type"):
        kinds, ids = (_NO_NAME,), np.zeros(len(raw.rows), np.uint8)
    else:
        ids = raw.numbers("valuation_type", np.zeros(0))
        raw.refuse(ids >= len(kinds), "valuation_types.json has no name for the valuation_type")
    found, first, which = np.unique(ids[kept], return_index=True, return_inverse=True)
    known = np.zeros(len(found), np.uint8)
    for at in np.argsort(first).tolist():
        known[at] = names.id_of(kinds[int(found[at])])
    return known[which]


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
