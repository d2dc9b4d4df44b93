"""What must hold of Sudoku, Domino, mazes and grids: rows, groups, and both splits.

A symmetry keeps the number of solutions, so the source of a group is solved for all of them.
Source: docs/formats/puzzles.md#sudoku-findings
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few
from gristmill.puzzles import format as names
from gristmill.puzzles.domains import domino_augment, domino_game, maze_paths
from gristmill.puzzles.domains.domino_augment import MODULAR
from gristmill.puzzles.domains.domino_rows import ENCODING, LEFT, ON_RIGHT, POSITION, SEQ_LEN
from gristmill.puzzles.domains.grid import (
    CELLS,
    PAD,
    SUDOKU_ENCODING,
    SYMMETRIES,
    Symbols,
    extents,
    index_maps,
    maze_encoding,
    side_of,
    turned_cells,
)
from gristmill.puzzles.laws.contract import encoding_laws, guarded, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Integers, Rows, SetArrays

Groups = npt.NDArray[np.int64]
_Finding = tuple[str, int, str]
"""Law, row, and what is wrong."""
_TOGETHER: Final = 4096
"""Rows that are checked together: few enough for the cache of a processor."""


@guarded
def sudoku_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields what breaks a rule in a Sudoku dataset, whose index arrays keep the contract."""
    is_solved = dataset.config.get("unique") != "off"
    yield from encoding_laws(dataset, SUDOKU_ENCODING)
    yield from unnamed_laws(dataset)
    checked = []
    for split, name in dataset.sets():
        each = _Set(dataset, split, name, is_solved)
        yield from each.violations()
        checked.append(each)
    yield from _repeats(checked)


class _Set:
    """One set: its rows are read once, and the sources of its groups are kept as invariants."""

    def __init__(self, dataset: Dataset, split: str, name: str, is_solved: bool) -> None:
        self.split, self.name, self.place = split, name, f"{split}/{name}"
        self._dataset, self._is_solved = dataset, is_solved
        self._few = Few(self.place)
        self.arrays: SetArrays = dataset.arrays(split, name)
        bounds = self.arrays.puzzle_indices[:][self.arrays.group_indices[:]]
        self.sources = np.asarray(bounds[:-1], np.int64)
        self.invariants = np.zeros(len(self.sources), np.uint64)

    def violations(self) -> Iterator[Violation]:
        if self.arrays.inputs.shape[1] != CELLS:
            found = f"{self.arrays.inputs.shape[1]} tokens, not {CELLS}"
            yield Violation("seq_len_mismatch", self.place, found)
            return
        for findings in self._dataset.each(self.split, self.name, self._looked, _TOGETHER):
            for law, row, what in findings:
                yield from self._few.at(law, f"{self.place} row {row}", what)
        yield from self._few.rest()

    def _looked(self, rows: Rows) -> list[_Finding]:
        from gristmill.puzzles.domains.sudoku_checks import described

        here = rows.first + np.arange(len(rows.inputs))
        group = np.searchsorted(self.sources, here, "right") - 1
        source = self.sources[group]
        findings = _checked(rows.inputs, rows.labels)
        clues, expected = (
            np.count_nonzero(boards_of(tokens), axis=1)
            for tokens in (rows.inputs, self.arrays.inputs[source])
        )
        found: list[_Finding] = [
            (law, rows.first + row, "breaks a rule of Sudoku")
            for row in np.flatnonzero(findings).tolist()
            for law in described(rows.inputs[row], rows.labels[row])
        ]
        found += [
            (
                "clues_differ",
                rows.first + row,
                f"has {clues[row]} clues, its source {expected[row]}",
            )
            for row in np.flatnonzero(clues != expected).tolist()
        ]
        own = np.flatnonzero(source == here)
        return found + self._solved(rows.inputs[own], findings[own], group[own])

    def _solved(
        self, inputs: npt.NDArray[Any], findings: npt.NDArray[np.uint8], groups: Groups
    ) -> list[_Finding]:
        """Note the invariants of sources, and solve those without findings."""
        from gristmill.puzzles.domains.sudoku_checks import solutions_of
        from gristmill.puzzles.domains.sudoku_symmetry import invariants

        boards = boards_of(inputs)
        self.invariants[groups] = invariants(boards)
        if not self._is_solved:
            return []
        whole = np.flatnonzero(findings == 0)
        solutions = solutions_of(boards[whole])[1]
        rows = self.sources[groups][whole]
        return [
            (
                "not_unique",
                int(rows[k]),
                "has more than one solution" if solutions[k] > 1 else "takes too long to solve",
            )
            for k in np.flatnonzero(solutions != 1).tolist()
        ]

    def boards(self, groups: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """The questions of the sources of groups, as digits."""
        tokens = np.asarray(self.arrays.inputs[self.sources[groups]])
        return boards_of(tokens)


def _checked(inputs: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The findings of each row, as bits."""
    from gristmill.puzzles.domains.sudoku_checks import check

    findings = np.empty(len(inputs), np.uint8)
    check(_narrow(inputs), _narrow(labels), findings, np.empty(len(inputs), np.int32))
    return findings


def _narrow(tokens: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Tokens in a type that the compiled checks know; no wrong value becomes a valid one."""
    if tokens.dtype in (np.uint8, np.int32):
        return tokens
    narrowed: npt.NDArray[np.int32] = np.clip(tokens, -1, 127).astype(np.int32)
    return narrowed


def boards_of(tokens: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Tokens of boards as digits; a wrong token counts as the nearest one."""
    digits: npt.NDArray[np.uint8] = (np.clip(tokens, 1, 10) - 1).astype(np.uint8)
    return digits


def _repeats(sets: list[_Set]) -> Iterator[Violation]:
    """Sources that are twice in a set, and test sources that training has up to symmetry."""
    sets = [each for each in sets if each.arrays.inputs.shape[1] == CELLS]
    for each in sets:
        yield from _duplicates(each)
    from gristmill.puzzles.domains.sudoku_symmetry import canonical_forms

    trained: dict[bytes, str] = {}
    known = [each.invariants for each in sets if each.split == "train"]
    tested = [each.invariants for each in sets if each.split == "test"]
    if not known or not tested:
        return
    shared = np.intersect1d(np.concatenate(known), np.concatenate(tested))
    for each in sets:
        few = Few(each.place)
        groups = np.flatnonzero(np.isin(each.invariants, shared))
        for group, form in zip(groups.tolist(), canonical_forms(each.boards(groups)), strict=True):
            row = int(each.sources[group])
            if each.split == "train":
                trained[form.tobytes()] = f"{each.place} row {row}"
            elif (twin := trained.get(form.tobytes())) is not None:
                place = f"{each.place} row {row}"
                yield from few.at("leak", place, f"is {twin} up to symmetry")
        yield from few.rest()


def _duplicates(each: _Set) -> Iterator[Violation]:
    marks, counts = np.unique(each.invariants, return_counts=True)
    groups = np.flatnonzero(np.isin(each.invariants, marks[counts > 1]))
    few = Few(each.place)
    seen: dict[bytes, int] = {}
    for first in range(0, len(groups), 4096):
        here = groups[first : first + 4096]
        for group, board in zip(here.tolist(), each.boards(here), strict=True):
            row = int(each.sources[group])
            if (other := seen.setdefault(board.tobytes(), row)) != row:
                found = f"has the question of row {other}"
                yield from few.at("duplicate", f"{each.place} row {row}", found)
    yield from few.rest()


_PLAIN: Final = "reversal"


@dataclass(frozen=True)
class _Seen:
    """What was seen of a set."""

    split: str
    set_name: str
    forms: npt.NDArray[np.uint64]
    is_source: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int64] | None


@partial(guarded, limited=True)
def domino_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields what breaks the rules of Domino in a dataset, the first 20 of each law by name."""
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
            sources,
        )
        look = partial(_domino_rows, here, kind)
        for violations in dataset.each(split, set_name, look):
            yield from violations
        yield from _group_violations(here)
        if dataset.kind is None and sources is not None:
            # Nothing says that an offset makes no other scenario of a source.
            plain = domino_augment.canonical(np.asarray(arrays.inputs[sources]), _PLAIN)
            here.forms[sources] = np.where(here.forms[sources] == 0, 0, plain)
        seen.append(here)
    yield from _played_twice(seen)


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


def _domino_rows(seen: _Seen, kind: str, rows: Rows) -> list[Violation]:
    """What is wrong with rows; their forms go to `seen`."""
    here = slice(rows.first, rows.first + len(rows.inputs))
    is_source = seen.is_source[here]
    broken, forms = looked_at(rows.inputs, rows.labels, is_source, kind)
    seen.forms[here] = forms
    violations = [
        _violation(name, seen, rows.first + row, domino_game.RULES[name])
        for row in np.flatnonzero(broken).tolist()
        for name in domino_game.rule_names(int(broken[row]))
    ]
    if rows.inputs.shape[1] != SEQ_LEN:
        return violations
    # Turned round, a tile that fits both ends is on the right; one double alone cannot be turned.
    is_double = (rows.inputs[:, 2] == 0) & (rows.inputs[:, 0] == rows.inputs[:, 1])
    is_bound = (is_source | is_double) & (broken == 0)
    on_right = np.flatnonzero((rows.labels[:, POSITION] == ON_RIGHT) & is_bound)
    fits_left = rows.labels[on_right, :POSITION] == rows.inputs[on_right, LEFT, None]
    for row in on_right[fits_left.any(axis=1)].tolist():
        found = "the tile is played on the right, though it has the left end"
        violations.append(_violation("left_before_right", seen, rows.first + row, found))
    return violations


def looked_at(
    inputs: Integers, labels: Integers, is_source: npt.NDArray[np.bool_], kind: str
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """The rules that rows break, and their canonical forms, 0 where they break some."""
    broken = domino_game.findings(inputs, labels)
    if kind == MODULAR:
        broken[~is_source] &= np.uint32(~domino_game.mask(domino_game.MODULAR_BREAKS) & 0xFFFFFFFF)
    if inputs.shape[1] != SEQ_LEN:
        return broken, np.zeros(len(inputs), np.uint64)
    return broken, np.where(broken == 0, domino_augment.canonical(inputs, kind), 0)


def _group_violations(seen: _Seen) -> Iterator[Violation]:
    """Rows of another scenario than the first of their group."""
    if seen.sources is None:
        return
    sizes = np.diff(seen.sources, append=len(seen.forms))
    first = np.repeat(seen.forms[seen.sources], sizes)
    differs = (first != seen.forms) & (first != 0) & (seen.forms != 0)
    for row in np.flatnonzero(differs).tolist():
        yield _violation("group", seen, row, "is another scenario than the first of its group")


def _played_twice(sets: list[_Seen]) -> Iterator[Violation]:
    """Source rows that an earlier row is the same as."""
    forms: dict[str, npt.NDArray[np.uint64]]
    forms = {split: np.empty(0, np.uint64) for split in names.SPLITS}
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


_BORDER: Final = "is not one grid at the upper left, with padding right of it and below"


@partial(guarded, limited=True)
def grid_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields what breaks the rules of grids in a dataset; without a trace nothing is looked at."""
    if dataset.kind is None:
        return
    config = dataset.config
    if not config["identifiers"]:
        yield from unnamed_laws(dataset)
    sides = (int(config["height"]), int(config["width"]))
    symbols = Symbols.of(config["alphabet"], config["values"], config["pad"])
    yield from encoding_laws(dataset, symbols.encoding(*sides))
    trained: set[bytes] = set()
    for split, set_name in dataset.sets():
        arrays = dataset.arrays(split, set_name)
        if arrays.inputs.shape[1] != sides[0] * sides[1]:
            continue  # the contract names it
        turned = SYMMETRIES if config["dihedral"] and split == "train" else 1
        yield from _groups(arrays, turned, f"{split}/{set_name}")
        if config["identifiers"]:
            yield from _names(dataset.identifiers, arrays, turned, f"{split}/{set_name}")
        looked = _Looked(arrays, sides, turned, bool(config["dihedral"]), config["pad"] is None)
        for found, marks in dataset.each(split, set_name, looked):
            for law, row, rule in found:
                yield Violation(law, f"{split}/{set_name} row {row}", rule)
            for row, mark in marks:
                if split == "train":
                    trained.add(mark)
                elif mark in trained:
                    rule = "training has the same example"
                    yield Violation("leak", f"{split}/{set_name} row {row}", rule)


def _groups(arrays: SetArrays, turned: int, place: str) -> Iterator[Violation]:
    """Puzzles that are not followed by their symmetries in order."""
    if arrays.origins is None:
        return
    draws = np.asarray(arrays.origins[np.asarray(arrays.puzzle_indices[:-1]), 2])
    begins = np.asarray(arrays.group_indices[:-1])
    if len(draws) % turned or (draws != np.arange(len(draws)) % turned).any():
        rule = f"must have the symmetries 0 to {turned - 1} of each puzzle in order"
        yield Violation("group", place, rule)
    elif (begins % turned).any():
        yield Violation("group", place, "a group begins within the symmetries of a puzzle")


def _names(listed: list[str], arrays: SetArrays, turned: int, place: str) -> Iterator[Violation]:
    """Puzzles without a name, or whose name is not that of their source and their symmetry."""
    numbers = np.asarray(arrays.puzzle_identifiers).tolist()
    for puzzle, number in enumerate(numbers):
        symmetry = puzzle % turned
        source = listed[numbers[puzzle - symmetry]]
        expected = f"{source}_t{symmetry}" if symmetry else source
        if not number or listed[number] != expected or expected == names.BLANK:
            yield Violation("identifier", f"{place} puzzle {puzzle}", f"must be {expected!r:.120}")


class _Looked:
    """What is wrong with the rows of a batch, and the marks of rows that are no symmetries."""

    def __init__(
        self, arrays: SetArrays, sides: tuple[int, int], turned: int, dihedral: bool, is_whole: bool
    ) -> None:
        self._arrays, self._sides, self._is_whole = arrays, sides, is_whole
        self._puzzles = np.asarray(arrays.puzzle_indices).astype(np.int64)
        self._turned, self._marks = turned, partial(grid_marks, sides, dihedral)
        self._cells = partial(turned_cells, sides=sides)

    def __call__(self, rows: Rows) -> tuple[list[_Finding], list[tuple[int, bytes]]]:
        here = rows.first + np.arange(len(rows.inputs))
        puzzle = np.searchsorted(self._puzzles, here, "right") - 1
        draws = puzzle % self._turned
        sources = self._puzzles[puzzle - draws] + here - self._puzzles[puzzle]
        sources = np.clip(sources, 0, len(self._arrays.inputs) - 1)
        found: list[_Finding] = []
        for field, tokens in (("inputs", rows.inputs), ("labels", rows.labels)):
            grids = tokens.reshape(-1, *self._sides)
            sizes = extents(grids)
            is_whole = ~(sizes == 0).any(axis=1)
            if self._is_whole:
                is_whole &= (grids != PAD).sum(axis=(1, 2)) == sizes.prod(axis=1)
            found += [("border", int(row), f"the {field} {_BORDER}") for row in here[~is_whole]]
            if self._turned > 1:
                of_source = np.asarray(getattr(self._arrays, field)[sources])
                wrong = (self._turns(of_source, draws) != tokens).any(axis=1)
                rule = "is not the symmetry of its puzzle that its place says"
                found += [("symmetry", int(row), f"the {field} {rule}") for row in here[wrong]]
        own = np.flatnonzero(draws == 0)
        marks = self._marks(rows.inputs[own], rows.labels[own])
        return found, list(zip(here[own].tolist(), marks, strict=True))

    def _turns(self, tokens: npt.NDArray[Any], draws: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Rows of tokens after their symmetries."""
        made = tokens.copy()
        shapes = extents(tokens.reshape(-1, *self._sides))
        kinds, which = np.unique(np.c_[shapes, draws], axis=0, return_inverse=True)
        for number, (height, width, symmetry) in enumerate(kinds.tolist()):
            if symmetry and height and width:
                rows = np.flatnonzero(which.reshape(-1) == number)
                cells = self._cells(symmetry, (height, width))
                made[rows] = np.where(cells < 0, PAD, tokens[rows][:, cells])
        return made


def grid_marks(
    sides: tuple[int, int], is_dihedral: bool, inputs: Integers, labels: Integers
) -> list[bytes]:
    """A hash of each example, the same for its symmetries where these are made."""
    sizes = [extents(tokens.reshape(-1, *sides)).tolist() for tokens in (inputs, labels)]
    found = []
    for one, other, *shapes in zip(inputs, labels, *sizes, strict=True):
        forms = []
        for symmetry in range(SYMMETRIES if is_dihedral else 1):
            form = b""
            for tokens, shape in zip((one, other), shapes, strict=True):
                cells = turned_cells(symmetry, tuple(shape), sides=sides)
                form += np.where(cells < 0, PAD, tokens[cells]).astype(np.int32).tobytes()
            forms.append(form)
        found.append(hashlib.blake2b(min(forms), digest_size=16).digest())
    return found


_BATCH_BYTES: Final = 1 << 20


@partial(guarded, limited=True)
def maze_laws(dataset: Dataset) -> Iterator[Violation]:
    """Yields what breaks the rules of mazes in a dataset, the first 20 of each law by name."""
    yield from unnamed_laws(dataset)
    if side := side_of(dataset.metadata("train").seq_len):
        yield from encoding_laws(dataset, maze_encoding(side))
    has_symmetries = dataset.config.get("aug") is True
    trained: set[bytes] = set()
    seen: dict[str, set[bytes]] = {split: set() for split in names.SPLITS}
    for split, set_name in dataset.sets():
        arrays = dataset.arrays(split, set_name)
        count, width = arrays.inputs.shape
        place = f"{split}/{set_name}"
        if side_of(width) is None:
            yield Violation("not_square", place, f"{width} tokens a row are no square maze")
            continue
        group = SYMMETRIES if has_symmetries and split == "train" else 1
        if dataset.kind is None and split == "train":
            # Without a config its first group says whether there are symmetries.
            group = SYMMETRIES if arrays.group_indices[1:2].tolist() == [SYMMETRIES] else 1
        if not np.array_equal(arrays.group_indices, np.arange(0, count + 1, group)):
            found = f"must have {group} puzzles in every group"
            yield Violation("group", names.array(split, set_name, "group_indices"), found)
            continue
        origins = arrays.origins
        if origins is not None and (origins[:, 2] != np.arange(count) % group).any():
            found = f"must have the symmetries 0 to {group - 1} of each group in order"
            yield Violation("group", names.origins(split, set_name), found)
        step = max(1, _BATCH_BYTES // (group * width * arrays.inputs.itemsize)) * group
        look = partial(_maze_rows, place, group)
        for first, violations, keys in dataset.each(split, set_name, look, step):
            yield from violations
            yield from _mazes_twice(place, first, keys, group, seen[split], trained)
        if split == "train":
            trained = seen[split]


def _maze_rows(place: str, group: int, rows: Rows) -> tuple[int, list[Violation], list[bytes]]:
    """The number of the first row, what is wrong with the rows, and the keys of their groups."""
    violations = list(_maze_violations_of(place, group, rows))
    return rows.first, violations, maze_paths.canonical(rows.inputs[::group])


def _maze_violations_of(place: str, group: int, rows: Rows) -> Iterator[Violation]:
    broken = maze_paths.findings(rows.inputs[::group], rows.labels[::group])
    for source in np.flatnonzero(broken).tolist():
        for name in maze_paths.rule_names(int(broken[source])):
            row = rows.first + source * group
            yield Violation(name, f"{place} row {row}", maze_paths.RULES[name])
    if group == 1:
        return
    maps = index_maps(side_of(rows.inputs.shape[1]) or 1)
    differs = _differing(rows.inputs, maps, group) | _differing(rows.labels, maps, group)
    for row in np.flatnonzero(differs).tolist():
        where = f"{place} row {rows.first + row}"
        yield Violation("group", where, f"is not symmetry {row % group} of the group's first row")


def _mazes_twice(
    place: str, first: int, keys: list[bytes], group: int, seen: set[bytes], trained: set[bytes]
) -> Iterator[Violation]:
    """Mazes that an earlier row has; the keys of the others go to `seen`."""
    for source, key in enumerate(keys):
        where = f"{place} row {first + source * group}"
        if key in seen:
            yield Violation("distinct", where, "its split has the same maze before, up to symmetry")
        if key in trained:
            yield Violation("leak", where, "the training split has the same maze, up to symmetry")
        seen.add(key)


def _differing(tokens: Integers, maps: Integers, group: int) -> npt.NDArray[np.bool_]:
    """Which rows are not their symmetry of the first row of their group, bool [rows]."""
    rows = np.arange(len(tokens))
    symmetry = rows % group
    expected = np.take_along_axis(tokens[rows - symmetry], maps[symmetry], axis=1)
    differs: npt.NDArray[np.bool_] = (expected != tokens).any(axis=1)
    return differs
