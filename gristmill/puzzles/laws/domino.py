"""What must hold of Domino: every row, every group, and the splits beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError, Violation
from gristmill.puzzles.domains.domino_augment import MODULAR, canonical
from gristmill.puzzles.domains.domino_findings import (
    MODULAR_BREAKS,
    RULES,
    findings,
    mask,
    rule_names,
)
from gristmill.puzzles.domains.domino_rows import ENCODING, LEFT, ON_RIGHT, POSITION, SEQ_LEN
from gristmill.puzzles.format.names import SPLITS
from gristmill.puzzles.laws.encoding import encoding_laws, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays

_MOST: Final = 24


@dataclass(frozen=True)
class _Seen:
    """The canonical forms of a set's rows, 0 where a row has findings: uint64 [examples]."""

    split: str
    set_name: str
    forms: npt.NDArray[np.uint64]
    is_source: npt.NDArray[np.bool_]


def domino_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the rules of Domino in a dataset.

    dataset: or its folder, published or staged.

    The first 24 violations are named, the others counted. Where augmentations are modular, their
    rows may break `label_not_heaviest` and `tile_not_low_high`.
    Source: docs/formats/puzzles.md#domino
    """
    dataset = Dataset.of(dataset)
    found = _violations(dataset)
    try:
        yield from islice(found, _MOST)
        if more := sum(1 for _ in found):
            yield Violation("domino", str(dataset.folder), f"{more:,} more violations")
    except GristmillError as error:
        yield Violation("readable", str(dataset.folder), str(error))


def _violations(dataset: Dataset) -> Iterator[Violation]:
    yield from unnamed_laws(dataset)
    yield from encoding_laws(dataset, ENCODING)
    kind = str(dataset.sources.config.get("augmentation"))
    seen = []
    for split, set_name in dataset.sets():
        arrays = dataset.arrays(split, set_name)
        here = _Seen(
            split,
            set_name,
            np.zeros(len(arrays.inputs), np.uint64),
            _is_source(arrays),
        )
        for violations in dataset.each(split, set_name, partial(_row_violations, here, kind)):
            yield from violations
        yield from _group_violations(here, arrays)
        seen.append(here)
    yield from _twice(seen)


def _is_source(arrays: SetArrays) -> npt.NDArray[np.bool_]:
    """Whether each row is a source, not an augmentation; all are where there is no trace."""
    if arrays.origins is None:
        return np.ones(len(arrays.inputs), np.bool_)
    return np.asarray(arrays.origins[:, 2] == 0)


def _row_violations(seen: _Seen, kind: str, rows: Rows) -> list[Violation]:
    """What is wrong with rows; their forms go to `seen`."""
    here = slice(rows.first, rows.first + len(rows.inputs))
    is_source = seen.is_source[here]
    broken = findings(rows.inputs, rows.labels)
    if kind == MODULAR:
        broken[~is_source] &= np.uint32(~mask(MODULAR_BREAKS) & 0xFFFFFFFF)
    violations = [
        _violation(name, seen, rows.first + row, RULES[name])
        for row in np.flatnonzero(broken).tolist()
        for name in rule_names(int(broken[row]))
    ]
    if rows.inputs.shape[1] != SEQ_LEN:
        return violations
    seen.forms[here] = np.where(broken == 0, canonical(rows.inputs, kind), 0)
    # Turned round, a tile that fits both ends is on the right; one double alone cannot be turned.
    is_double = (rows.inputs[:, 2] == 0) & (rows.inputs[:, 0] == rows.inputs[:, 1])
    is_bound = (is_source | is_double) & (broken == 0)
    on_right = np.flatnonzero((rows.labels[:, POSITION] == ON_RIGHT) & is_bound)
    fits_left = rows.labels[on_right, :POSITION] == rows.inputs[on_right, LEFT, None]
    for row in on_right[fits_left.any(axis=1)].tolist():
        found = "the tile is played on the right, though it has the left end"
        violations.append(_violation("left_before_right", seen, rows.first + row, found))
    return violations


def _group_violations(seen: _Seen, arrays: SetArrays) -> Iterator[Violation]:
    """Rows of a group that are another scenario than its first one."""
    groups = np.clip(arrays.group_indices, 0, len(arrays.puzzle_indices) - 1)
    starts = arrays.puzzle_indices[groups].astype(np.int64)
    sizes = starts[1:] - starts[:-1]
    if not len(sizes) or starts[0] or sizes.min() < 1 or int(sizes.sum()) != len(seen.forms):
        return  # the law of the contract names it
    first = np.repeat(seen.forms[starts[:-1]], sizes)
    differs = (first != seen.forms) & (first != 0) & (seen.forms != 0)
    for row in np.flatnonzero(differs).tolist():
        yield _violation("group", seen, row, "is another scenario than the first of its group")


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
