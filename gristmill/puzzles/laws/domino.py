"""What must hold of Domino: every row, every group, and the splits beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.domino_augment import MODULAR, canonical
from gristmill.puzzles.domains.domino_game import MODULAR_BREAKS, RULES, findings, mask, rule_names
from gristmill.puzzles.domains.domino_rows import (
    ENCODING,
    LEFT,
    ON_RIGHT,
    POSITION,
    SEQ_LEN,
)
from gristmill.puzzles.format.batch import Integers
from gristmill.puzzles.format.names import SPLITS
from gristmill.puzzles.laws.contract import encoding_laws, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Rows, SetArrays

_PLAIN: Final = "reversal"


@dataclass(frozen=True)
class _Seen:
    """What was seen of a set."""

    split: str
    set_name: str
    forms: npt.NDArray[np.uint64]
    is_source: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int64] | None


def domino_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the rules of Domino in a dataset, the first 20 of each law by name."""
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
            sources,
        )
        look = partial(_row_violations, here, kind)
        for violations in dataset.each(split, set_name, look):
            yield from violations
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


def _row_violations(seen: _Seen, kind: str, rows: Rows) -> list[Violation]:
    """What is wrong with rows; their forms go to `seen`."""
    here = slice(rows.first, rows.first + len(rows.inputs))
    is_source = seen.is_source[here]
    broken, forms = _looked(rows.inputs, rows.labels, is_source, kind)
    seen.forms[here] = forms
    violations = [
        _violation(name, seen, rows.first + row, RULES[name])
        for row in np.flatnonzero(broken).tolist()
        for name in rule_names(int(broken[row]))
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
    """Rows of another scenario than the first of their group."""
    if seen.sources is None:
        return
    sizes = np.diff(seen.sources, append=len(seen.forms))
    first = np.repeat(seen.forms[seen.sources], sizes)
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
