"""What must hold of the folder `trm/` of an ARC dataset: the same rows, names and tasks."""

from __future__ import annotations

import filecmp
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.arc_grid import TRM_MARK, base_of, decode
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import read_identifiers
from gristmill.puzzles.read.rows import Dataset

_PUZZLES = f"{names.TRM}/{names.TEST_PUZZLES}"
_NAMES = f"{names.TRM}/{names.IDENTIFIERS}"


def trm_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the folder `trm/` of a dataset; datasets of earlier versions have none."""
    dataset = Dataset.of(dataset)
    if not (dataset.folder / names.TRM).is_dir():
        return iter(())
    return or_unreadable(_violations(dataset), str(dataset.folder / names.TRM))


def _violations(dataset: Dataset) -> Iterator[Violation]:
    trm = dataset.folder / names.TRM
    for split in names.SPLITS:
        for path in sorted((dataset.folder / split).iterdir()):
            other = trm / split / path.name
            if not other.is_file() or not filecmp.cmp(path, other, shallow=False):
                yield Violation("trm", f"{names.TRM}/{split}/{path.name}", "is not that of the set")
    listed = [_own_name(name) for name in read_identifiers(trm / names.IDENTIFIERS)]
    if len(listed) != len(dataset.identifiers):
        found = f"has {len(listed)} names, expected {len(dataset.identifiers)}"
        yield Violation("trm", _NAMES, found)
    few = Few(_NAMES, "{count:,} in all")
    for number, (own, expected) in enumerate(zip(listed, dataset.identifiers, strict=False)):
        if own != expected:
            yield from few.at("trm", f"{_NAMES} {number}", f"is not the name of {expected!r:.120}")
    yield from few.rest()
    held = _tasks(trm / names.TEST_PUZZLES)
    pairs = {split: _first_pairs(dataset, split) for split in names.SPLITS}
    few = Few(_PUZZLES, "{count:,} in all")
    for base in sorted({*held, *pairs["test"]}):
        both = {split: of.get(base, []) for split, of in pairs.items()}
        if None in both.values():
            continue  # the law of rows names it
        if base not in pairs["test"] or held.get(base) != _in_any_order(both):
            yield from few.at("trm", f"{_PUZZLES} {base}", "has not the pairs of the splits")
    yield from few.rest()


def _own_name(name: str) -> str:
    """A name of TRM in the form of the dataset. One without `|||` names a task alone."""
    task, *augmentation = name.split(TRM_MARK)
    return "_".join([base_of(task), *augmentation])


def _tasks(path: Path) -> dict[str, list[list[str]] | None]:
    """The pairs of each task of `test_puzzles.json`, by its base."""
    try:
        tasks = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(path, f"cannot be read: {error}") from error
    if not isinstance(tasks, dict):
        raise BadInput(path, "must hold an object")
    return {base_of(task): _in_any_order(pairs) for task, pairs in tasks.items()}


def _in_any_order(pairs: Any) -> list[list[str]] | None:
    """The pairs of a task, sorted, so that two tasks can be compared; None for what is no task."""
    if not isinstance(pairs, dict) or not all(isinstance(pairs.get(s), list) for s in names.SPLITS):
        return None
    return [sorted(map(json.dumps, pairs[split])) for split in names.SPLITS]


def _first_pairs(dataset: Dataset, split: str) -> dict[str, list[dict[str, Any]] | None]:
    """The pairs of the tasks themselves by base: of the first puzzle of each group of a split.

    None for a puzzle with a row that is no grid.
    """
    found: dict[str, list[dict[str, Any]] | None] = {}
    for set_name in (name for of_split, name in dataset.sets() if of_split == split):
        arrays = dataset.arrays(split, set_name)
        for puzzle in np.asarray(arrays.group_indices[:-1]).tolist():
            base = dataset.identifiers[int(arrays.puzzle_identifiers[puzzle])]
            rows = range(*map(int, arrays.puzzle_indices[puzzle : puzzle + 2]))
            try:
                found[base] = [
                    {
                        "input": decode(arrays.inputs[row]).grid.tolist(),
                        "output": decode(arrays.labels[row]).grid.tolist(),
                    }
                    for row in rows
                ]
            except ValueError:
                found[base] = None
    return found
