"""What must hold of Domino: every row, every group, and the splits beside each other."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.domino_augment import MODULAR, canonical
from gristmill.puzzles.domains.domino_findings import (
    MODULAR_BREAKS,
    RULES,
    findings,
    mask,
    rule_names,
)
from gristmill.puzzles.domains.domino_game import game_keys
from gristmill.puzzles.domains.domino_rows import (
    ENCODING,
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
from gristmill.puzzles.format.batch import Integers
from gristmill.puzzles.format.names import SPLITS
from gristmill.puzzles.laws.contract import encoding_laws, unnamed_laws
from gristmill.puzzles.laws.groups import Batch, Bools, Marks, Repeats, narrow
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays
from gristmill.run.kernels import kernel

_KINDS: Final = ("reversal", MODULAR)
_WEIGHTS = np.array([pow(5, 2 * k + 41, 1 << 64) for k in range(SEQ_LEN)], np.uint64)


class Redraws:
    """The augmentations of one set with a trace."""

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
    """Write what a draw makes: another direction of the chain, and another order of the hand."""
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
    """Write what a draw makes: an offset added to every value."""
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
    """Note the rows that are not what their draws make of their sources."""
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


_PLAIN: Final = "reversal"


@dataclass(frozen=True)
class _Seen:
    """What was seen of a set."""

    split: str
    set_name: str
    forms: npt.NDArray[np.uint64]
    is_source: npt.NDArray[np.bool_]
    is_wrong: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int64] | None
    redraws: Redraws | None


def domino_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the rules of Domino in a dataset.

    The first 20 violations of each law are named, the others counted. Where augmentations are
    modular, as in a dataset without a trace, their rows may break `label_not_heaviest` and
    `tile_not_low_high`.
    """
    dataset = Dataset.of(dataset)
    few = Few(str(dataset.folder), "{more:,} more violations")
    return or_unreadable(few.of(_violations(dataset)), str(dataset.folder))


def _violations(dataset: Dataset) -> Iterator[Violation]:
    yield from unnamed_laws(dataset)
    yield from encoding_laws(dataset, ENCODING)
    # The original's builder, which writes no trace, has modular augmentations alone.
    kind = MODULAR if dataset.kind is None else str(dataset.config.get("augmentation"))
    seen = []
    for split, set_name in dataset.sets():
        arrays = dataset.arrays(split, set_name)
        sources = _sources(arrays)
        here = _Seen(
            split,
            set_name,
            np.zeros(len(arrays.inputs), np.uint64),
            _is_source(arrays, sources),
            np.zeros(len(arrays.inputs), np.bool_),
            sources,
            Redraws.of(dataset, split, set_name, sources),
        )
        look = partial(_row_violations, here, kind)
        for first, violations, marks in dataset.each(split, set_name, look):
            yield from violations
            for row, other in here.redraws.repeats.of(first, marks) if here.redraws else ():
                found = f"has the input of row {other}, in the same group"
                yield _violation("repeated", here, row, found)
        yield from _group_violations(here)
        if dataset.kind is None and sources is not None:
            # Nothing says that an offset makes no other scenario of a source.
            plain = canonical(np.asarray(arrays.inputs[sources]), _PLAIN)
            here.forms[sources] = np.where(here.forms[sources] == 0, 0, plain)
        seen.append(here)
    yield from _twice(seen)


def _is_source(arrays: SetArrays, sources: npt.NDArray[np.int64] | None) -> npt.NDArray[np.bool_]:
    """Whether each row is a source, not an augmentation: without a trace the first of its group."""
    if arrays.origins is not None:
        return np.asarray(arrays.origins[:, 2] == 0)
    if sources is None:
        return np.ones(len(arrays.inputs), np.bool_)
    return np.isin(np.arange(len(arrays.inputs)), sources)


def _sources(arrays: SetArrays) -> npt.NDArray[np.int64] | None:
    """The first row of each group; None where the index arrays break the contract."""
    groups = np.clip(arrays.group_indices, 0, len(arrays.puzzle_indices) - 1)
    starts = arrays.puzzle_indices[groups].astype(np.int64)
    sizes = np.diff(starts)
    if not len(sizes) or starts[0] or sizes.min() < 1 or starts[-1] != len(arrays.inputs):
        return None  # the law of the contract names it
    return starts[:-1]


def _row_violations(seen: _Seen, kind: str, rows: Rows) -> tuple[int, list[Violation], Marks]:
    """The first row, what is wrong with rows, and their marks; the rest goes to `seen`."""
    here = slice(rows.first, rows.first + len(rows.inputs))
    is_source = seen.is_source[here]
    marks = np.empty(0, np.uint64)
    if seen.redraws is None or not seen.redraws.has_added(rows):
        broken, forms = _looked(rows.inputs, rows.labels, is_source, kind)
    else:
        batch = seen.redraws.batch(rows)
        seen.is_wrong[here], marks = seen.redraws.compared(batch)
        every = np.ones(len(batch.sources), np.bool_)
        of_sources, forms_of_sources = _looked(batch.inputs, batch.labels, every, kind)
        broken, forms = of_sources[batch.place], forms_of_sources[batch.place]
        # What a draw makes of a good scenario is the same one, and good.
        look = np.flatnonzero(seen.is_wrong[here] | (broken > 0))
        broken[look], forms[look] = _looked(
            rows.inputs[look], rows.labels[look], is_source[look], kind
        )
    seen.forms[here] = forms
    violations = [
        _violation(name, seen, rows.first + row, RULES[name])
        for row in np.flatnonzero(broken).tolist()
        for name in rule_names(int(broken[row]))
    ]
    if rows.inputs.shape[1] != SEQ_LEN:
        return rows.first, violations, marks
    # Turned round, a tile that fits both ends is on the right; one double alone cannot be turned.
    is_double = (rows.inputs[:, 2] == 0) & (rows.inputs[:, 0] == rows.inputs[:, 1])
    is_bound = (is_source | is_double) & (broken == 0)
    on_right = np.flatnonzero((rows.labels[:, POSITION] == ON_RIGHT) & is_bound)
    fits_left = rows.labels[on_right, :POSITION] == rows.inputs[on_right, LEFT, None]
    for row in on_right[fits_left.any(axis=1)].tolist():
        found = "the tile is played on the right, though it has the left end"
        violations.append(_violation("left_before_right", seen, rows.first + row, found))
    return rows.first, violations, marks


def _looked(
    inputs: Integers, labels: Integers, is_source: npt.NDArray[np.bool_], kind: str
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """The rules that rows break, and their canonical forms, 0 where they break some."""
    broken = findings(inputs, labels)
    if kind == MODULAR:
        broken[~is_source] &= np.uint32(~mask(MODULAR_BREAKS) & 0xFFFFFFFF)
    if inputs.shape[1] != SEQ_LEN:
        return broken, np.zeros(len(inputs), np.uint64)
    return broken, np.where(broken == 0, canonical(inputs, kind), 0)


def _group_violations(seen: _Seen) -> Iterator[Violation]:
    """Rows of another scenario than the first of their group, or not what their draw makes."""
    if seen.sources is None:
        return
    sizes = np.diff(seen.sources, append=len(seen.forms))
    first = np.repeat(seen.forms[seen.sources], sizes)
    is_whole = (first != 0) & (seen.forms != 0)
    differs = (first != seen.forms) & is_whole
    for row in np.flatnonzero(differs).tolist():
        yield _violation("group", seen, row, "is another scenario than the first of its group")
    for row in np.flatnonzero(seen.is_wrong & is_whole & ~differs).tolist():
        found = "is not what its draw makes of the first row of its group"
        yield _violation("not_augmentation", seen, row, found)


def _twice(sets: list[_Seen]) -> Iterator[Violation]:
    """Source rows that an earlier row is the same as."""
    forms: dict[str, npt.NDArray[np.uint64]] = {split: np.empty(0, np.uint64) for split in SPLITS}
    for seen in sets:
        rows = np.flatnonzero(seen.is_source & (seen.forms != 0))
        own = seen.forms[rows]
        unique, first = np.unique(own, return_index=True)
        repeated = np.ones(len(rows), np.bool_)
        repeated[first] = False
        for row in rows[repeated | np.isin(own, forms[seen.split])].tolist():
            yield _violation("distinct", seen, row, "its split has the same scenario before")
        if seen.split == "test":
            for row in rows[np.isin(own, forms["train"])].tolist():
                yield _violation("leak", seen, row, "the training split has the same scenario")
        forms[seen.split] = np.concatenate([forms[seen.split], unique])


def _violation(law: str, seen: _Seen, row: int, found: str) -> Violation:
    return Violation(law, f"{seen.split}/{seen.set_name} row {row}", found)
