"""What must hold of the folder `trm/` of an ARC dataset: the same rows, names and tasks."""

from __future__ import annotations

import filecmp
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.domains.arc_augment import TRM_MARK, base_of
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import read_identifiers
from gristmill.puzzles.read.rows import Dataset

_PUZZLES = f"{names.TRM}/{names.TEST_PUZZLES}"
_NAMES = f"{names.TRM}/{names.IDENTIFIERS}"


def trm_laws(dataset: Dataset | Path) -> Iterator[Violation]:
    """Yields what breaks the folder `trm/` of a dataset; datasets of earlier versions have none.

    Its arrays are those of the dataset. Its names are those of the dataset, with `|||` between
    their parts. Its tasks are those of the test split, with as many test pairs.
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
    listed = [_own_name(name) for name in read_identifiers(trm / names.IDENTIFIERS)]
    if len(listed) != len(dataset.identifiers):
        found = f"has {len(listed)} names, expected {len(dataset.identifiers)}"
        yield Violation("trm", _NAMES, found)
    few = Few(_NAMES, "{count:,} in all")
    for number, (own, expected) in enumerate(zip(listed, dataset.identifiers, strict=False)):
        if own != expected:
            yield from few.at("trm", f"{_NAMES} {number}", f"is not the name of {expected!r:.120}")
    yield from few.rest()
    found_pairs, expected_pairs = _pairs(trm / names.TEST_PUZZLES), _tested(dataset)
    for base in sorted({*found_pairs, *expected_pairs}):
        if found_pairs.get(base) != expected_pairs.get(base):
            yield Violation("trm", f"{_PUZZLES} {base}", "has not the test pairs of the split")


def _own_name(name: str) -> str:
    """A name of TRM in the form of the dataset. One without `|||` names a task alone."""
    task, *augmentation = name.split(TRM_MARK)
    return "_".join([base_of(task), *augmentation])


def _pairs(path: Path) -> dict[str, int]:
    """How many test pairs each task of `test_puzzles.json` has, by its base; -1: it has no list."""
    try:
        tasks = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(path, f"cannot be read: {error}") from error
    if not isinstance(tasks, dict):
        raise BadInput(path, "must hold an object")
    pairs = {
        task: held.get("test") if isinstance(held, dict) else None for task, held in tasks.items()
    }
    return {base_of(task): len(of) if isinstance(of, list) else -1 for task, of in pairs.items()}


def _tested(dataset: Dataset) -> dict[str, int]:
    """How many test pairs each task of the test split has: the first puzzle of its group."""
    found = {}
    for split, set_name in dataset.sets():
        if split == "test":
            arrays = dataset.arrays(split, set_name)
            firsts = np.asarray(arrays.group_indices[:-1])
            sizes = np.diff(arrays.puzzle_indices)[firsts]
            for number, size in zip(arrays.puzzle_identifiers[firsts], sizes, strict=True):
                found[dataset.identifiers[int(number)]] = int(size)
    return found
