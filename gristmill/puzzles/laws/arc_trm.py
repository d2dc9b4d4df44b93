"""What must hold of the folder `trm/` of an ARC dataset: the same rows, names and tasks."""

from __future__ import annotations

import filecmp
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.arc_augment import TRM_MARK, base_of
from gristmill.puzzles.domains.arc_grid import decode
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import read_identifiers
from gristmill.puzzles.read.rows import Dataset

_PUZZLES = f"{names.TRM}/{names.TEST_PUZZLES}"
_NAMES = f"{names.TRM}/{names.IDENTIFIERS}"


def trm_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the folder `trm/` of a dataset; datasets of earlier versions have none.

    Its arrays are those of the dataset. Its names are those of the dataset with `|||` in place of
    `_`, and with the ids of the sources. Its tasks are those of the test split, with the pairs that
    the splits hold.
    """
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
    found = read_identifiers(trm / names.IDENTIFIERS)
    tasks = {base_of(task): task for task in (name.partition(TRM_MARK)[0] for name in found)}
    if dataset.kind is not None:  # the sources say which of several ids is right
        noted = (file.facts.get("task") for file in dataset.sources.files)
        tasks |= {base_of(str(task)): str(task) for task in noted if task is not None}
    expected = [_name(name, tasks) for name in dataset.identifiers]
    few = Few(_NAMES, "{count:,} in all")
    if len(found) != len(expected):
        yield Violation("trm", _NAMES, f"has {len(found)} names, expected {len(expected)}")
    for number, (one, other_name) in enumerate(zip(found, expected, strict=False)):
        if one != other_name:
            yield from few.at("trm", f"{_NAMES} {number}", f"{one!r:.120}, not {other_name!r:.120}")
    yield from few.rest()
    yield from _puzzles(dataset, trm, tasks)


def _name(name: str, tasks: Mapping[str, str]) -> str:
    base, *rest = name.split("_")
    return TRM_MARK.join([tasks.get(base, base), *rest])


def _puzzles(dataset: Dataset, trm: Path, tasks: Mapping[str, str]) -> Iterator[Violation]:
    try:
        found = json.loads((trm / names.TEST_PUZZLES).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(trm / names.TEST_PUZZLES, f"cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise BadInput(trm / names.TEST_PUZZLES, "must hold an object")
    pairs = {split: _first_pairs(dataset, split) for split in names.SPLITS}
    expected = {
        tasks.get(base, base): {"train": pairs["train"].get(base, []), "test": tested}
        for base, tested in pairs["test"].items()
    }
    few = Few(_PUZZLES, "{count:,} in all")
    for task in sorted({*found, *expected}):
        held = expected.get(task, {})
        if None in (held.get("train", []), held.get("test", [])):
            continue  # the law of rows names it
        if _as_set(found.get(task)) != _as_set(expected.get(task)):
            yield from few.at("trm", f"{_PUZZLES} {task}", "has not the pairs of the splits")
    yield from few.rest()


def _first_pairs(dataset: Dataset, split: str) -> dict[str, list[dict[str, Any]] | None]:
    """The pairs of the tasks themselves by base: of the first puzzle of each group of a split."""
    found: dict[str, list[dict[str, Any]] | None] = {}
    for of_split, set_name in dataset.sets():
        if of_split != split:
            continue
        arrays = dataset.arrays(split, set_name)
        for puzzle in np.asarray(arrays.group_indices[:-1]).tolist():
            base = dataset.identifiers[int(arrays.puzzle_identifiers[puzzle])]
            first, end = (int(arrays.puzzle_indices[puzzle + at]) for at in (0, 1))
            try:
                found[base] = [
                    {
                        "input": decode(arrays.inputs[row]).grid.tolist(),
                        "output": decode(arrays.labels[row]).grid.tolist(),
                    }
                    for row in range(first, end)
                ]
            except ValueError:
                found[base] = None
    return found


def _as_set(pairs: Any) -> Sequence[Any]:
    """The pairs of a task in any order, so that two tasks can be compared."""
    if not isinstance(pairs, dict) or not all(isinstance(pairs.get(s), list) for s in names.SPLITS):
        return [pairs is not None]
    return [sorted(map(json.dumps, pairs[split])) for split in names.SPLITS]
