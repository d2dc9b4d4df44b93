"""Augmentations of Domino scenarios, drawn once more: each must be what its draw makes.

The rules of single rows: `domino.py`. Of the code that writes examples it shares the streams alone.
Source: docs/formats/puzzles.md#domino-augmentation
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.puzzles.domains.domino_augment import MODULAR
from gristmill.puzzles.domains.domino_game import game_keys
from gristmill.puzzles.domains.domino_rows import (
    HAND,
    HAND_SIZE,
    LEFT,
    ON_LEFT,
    ON_RIGHT,
    POSITION,
    RIGHT,
    SEQ_LEN,
    VALUES,
)
from gristmill.puzzles.domains.randomness import below, mixed, shuffle, start
from gristmill.puzzles.laws.groups import Batch, Bools, Marks, Repeats, narrow
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays
from gristmill.run.kernels import kernel

_KINDS: Final = ("reversal", MODULAR)
_WEIGHTS = np.array([pow(5, 2 * k + 41, 1 << 64) for k in range(SEQ_LEN)], np.uint64)


class Redraws:
    """The augmentations of one set with a trace.

    repeats: of inputs in a group, by the marks of `compared`.
    """

    def __init__(
        self,
        arrays: SetArrays,
        origins: npt.NDArray[Any],
        split: str,
        sources: npt.NDArray[np.int64],
        seed: int,
        is_modular: bool,
    ) -> None:
        self._origins = origins
        self._arrays, self._split, self._sources = arrays, split, sources
        self._seed, self._is_modular = seed, is_modular
        self.repeats = Repeats((arrays.inputs,), sources)

    @classmethod
    def of(
        cls, dataset: Dataset, split: str, set_name: str, sources: npt.NDArray[np.int64] | None
    ) -> Redraws | None:
        """Of a set; None where it has no trace, or its config does not say how to draw.

        sources: the first row of each group; None where the index arrays break the contract.
        """
        arrays, config = dataset.arrays(split, set_name), dataset.config
        seed, kind = config.get("seed"), config.get("augmentation")
        if arrays.origins is None or sources is None or arrays.inputs.shape[1] != SEQ_LEN:
            return None
        if type(seed) is not int or kind not in _KINDS:
            return None
        return cls(arrays, arrays.origins, split, sources, seed, kind == MODULAR)

    def has_added(self, rows: Rows) -> bool:
        """Whether rows have augmentations among them."""
        last = rows.first + len(rows.inputs)
        first, after = np.searchsorted(self._sources, [rows.first, last])
        return bool(after - first < len(rows.inputs))

    def batch(self, rows: Rows) -> Batch:
        """The rows with their sources."""
        return Batch.of(rows, self._arrays, self._sources)

    def compared(self, batch: Batch) -> tuple[Bools, Marks]:
        """Which rows are not what their draws make of their sources, and the mark of each row.

        The marks are hashes of group and input.
        """
        rows, origins, count = batch.rows, self._origins, len(batch.rows.inputs)
        wrong, marks = np.zeros(count, np.bool_), np.zeros(count, np.uint64)
        here = np.asarray(origins[rows.first : rows.first + count])
        keys = game_keys(self._seed, self._split, np.asarray(origins[batch.sources, 1]))
        given, solved = (
            np.clip(tokens, 0, VALUES).astype(np.uint8) for tokens in (batch.inputs, batch.labels)
        )
        _compare(
            narrow(rows.inputs),
            narrow(rows.labels),
            here[:, 2].astype(np.int64),
            batch.is_source,
            batch.place,
            given,
            solved,
            keys,
            batch.groups,
            self._is_modular,
            wrong,
            marks,
        )
        return wrong, marks


@njit
def _reversed(state, given, label, order, made, move):
    """Write what a draw makes: another direction of the chain, and another order of the hand.

    order: int64 [7], scratch.
    """
    for slot in range(HAND_SIZE):
        order[slot] = slot
    turns = below(state, 2) == 1
    shuffle(state, order)
    made[:], move[:] = given, label
    tiles = 0
    while 2 * tiles < HAND and given[2 * tiles]:
        tiles += 1
    if turns:
        for tile in range(tiles):
            other = 2 * (tiles - 1 - tile)
            made[2 * tile], made[2 * tile + 1] = given[other], given[other + 1]
        made[LEFT], made[RIGHT] = given[RIGHT], given[LEFT]
        is_other = tiles > 1 or (tiles == 1 and given[0] != given[1])
        if is_other and label[POSITION] == ON_LEFT:
            move[POSITION] = ON_RIGHT
        elif is_other and label[POSITION] == ON_RIGHT:
            move[POSITION] = ON_LEFT
    to = HAND
    for slot in order:
        tile = HAND + 2 * slot
        if given[tile]:
            made[to], made[to + 1] = given[tile], given[tile + 1]
            to += 2


@njit
def _shifted(state, given, label, after, made, move):
    """Write what a draw makes: an offset added to every value.

    after: uint8 [8], scratch.
    """
    offset = 1 + below(state, VALUES - 1)
    after[0] = 0
    for value in range(VALUES):
        after[value + 1] = (value + offset) % VALUES + 1
    for place in range(SEQ_LEN):
        made[place] = after[given[place]]
        move[place] = after[label[place]] if place < POSITION else label[place]


@kernel(nogil=True)
def _compare(
    inputs,
    labels,
    draws,
    is_source,
    place,
    given,
    solved,
    keys,
    groups,
    is_modular,
    wrong,
    marks,
):
    """Note the rows that are not what their draws make of their sources.

    inputs, labels: tokens, [rows, 72]. draws: int64 [rows]. is_source: bool [rows].
    place: int64 [rows], the place of the source in: given, solved, uint8 [sources, 72]; keys,
        groups, uint64 [sources], of the games, and the number of the group.
    wrong: bool [rows], set for augmentations. marks: uint64 [rows], a hash of group and input.
    """
    state = np.zeros(1, np.uint64)
    made, move = np.empty(SEQ_LEN, np.uint8), np.empty(SEQ_LEN, np.uint8)
    order, after = np.empty(HAND_SIZE, np.int64), np.empty(VALUES + 1, np.uint8)
    for row in range(inputs.shape[0]):
        source = place[row]
        # What tells the inputs of a group apart: the hand, the ends, and the first tile.
        total = np.uint64(0)
        for cell in range(HAND, SEQ_LEN):
            total += _WEIGHTS[cell] * np.uint64(inputs[row, cell])
        for cell in range(2):
            total += _WEIGHTS[cell] * np.uint64(inputs[row, cell])
        marks[row] = mixed(total ^ mixed(groups[source]))
        if is_source[row]:
            continue
        start(state, keys[source], draws[row])
        if is_modular:
            _shifted(state, given[source], solved[source], after, made, move)
        else:
            _reversed(state, given[source], solved[source], order, made, move)
        differs = np.int32(0)
        for cell in range(SEQ_LEN):
            differs |= np.int32(made[cell]) ^ np.int32(inputs[row, cell])
            differs |= np.int32(move[cell]) ^ np.int32(labels[row, cell])
        wrong[row] = differs != 0
