"""What must hold of mazes: every row, every group, and the splits beside each other."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.boards import maze_encoding, side_of
from gristmill.puzzles.domains.grid import SYMMETRIES, index_maps
from gristmill.puzzles.domains.maze_paths import RULES, canonical, findings, rule_names
from gristmill.puzzles.format import names
from gristmill.puzzles.laws.contract import encoding_laws, unnamed_laws
from gristmill.puzzles.read.rows import Dataset, Rows
from gristmill.run.kernels import kernel

_BATCH_BYTES: Final = 1 << 20


def maze_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the rules of mazes in a dataset, the first 20 of each law by name."""
    dataset = Dataset.of(dataset)
    few = Few(str(dataset.folder), "{more:,} more violations")
    return or_unreadable(few.of(_violations(dataset)), str(dataset.folder))


def _violations(dataset: Dataset) -> Iterator[Violation]:
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
        look = partial(_looked, place, group)
        for first, violations, keys in dataset.each(split, set_name, look, step):
            yield from violations
            yield from _twice(place, first, keys, group, seen[split], trained)
        if split == "train":
            trained = seen[split]


def _looked(place: str, group: int, rows: Rows) -> tuple[int, list[Violation], list[bytes]]:
    """The number of the first row, what is wrong with the rows, and the keys of their groups."""
    violations = list(_row_violations(place, group, rows))
    return rows.first, violations, canonical(rows.inputs[::group])


def _row_violations(place: str, group: int, rows: Rows) -> Iterator[Violation]:
    broken = findings(rows.inputs[::group], rows.labels[::group])
    for source in np.flatnonzero(broken).tolist():
        for name in rule_names(int(broken[source])):
            row = rows.first + source * group
            yield Violation(name, f"{place} row {row}", RULES[name])
    if group == 1:
        return
    maps = index_maps(side_of(rows.inputs.shape[1]) or 1)
    differs = _differing(rows.inputs, maps, group) | _differing(rows.labels, maps, group)
    for row in np.flatnonzero(differs).tolist():
        where = f"{place} row {rows.first + row}"
        yield Violation("group", where, f"is not symmetry {row % group} of the group's first row")


def _twice(
    place: str,
    first: int,
    keys: list[bytes],
    group: int,
    seen: set[bytes],
    trained: set[bytes],
) -> Iterator[Violation]:
    """Mazes that an earlier row has; the keys of the others go to `seen`."""
    for source, key in enumerate(keys):
        where = f"{place} row {first + source * group}"
        if key in seen:
            yield Violation("distinct", where, "its split has the same maze before, up to symmetry")
        if key in trained:
            yield Violation("leak", where, "the training split has the same maze, up to symmetry")
        seen.add(key)


@kernel(nogil=True)
def _differing(tokens, maps, group):
    """Which rows are not their symmetry of the first row of their group: bool [rows]."""
    found = np.zeros(tokens.shape[0], np.bool_)
    for row in range(tokens.shape[0]):
        symmetry = row % group
        first, here, cells = tokens[row - symmetry], tokens[row], maps[symmetry]
        differs = False
        for cell in range(cells.shape[0]):
            differs |= here[cell] != first[np.uint64(cells[cell])]
        found[row] = differs
    return found
