"""What must hold between the puzzles of an ARC dataset and its source files.

Source: `docs/formats/puzzles.md#arc-augmentation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError, Violation
from gristmill.puzzles.build.arc import LEFT_OUT, TASK_HASH, TRIES
from gristmill.puzzles.build.arc_leaks import is_same_pair
from gristmill.puzzles.config import MOST_AUGMENTATIONS
from gristmill.puzzles.domains.arc_augment import KIND, flat, task_hash
from gristmill.puzzles.domains.arc_grid import Grid
from gristmill.puzzles.domains.source_key import source_key
from gristmill.puzzles.format import names
from gristmill.puzzles.format.sources import SourceFile
from gristmill.puzzles.read.rows import Dataset


@dataclass
class Built:
    """What a dataset holds of one file.

    base: id of the task.
    pairs: of the first puzzles, by their numbers.
    draws: int64 by split, the numbers of the draws of the group, 0 for the task itself.
    numbers: by split, of its pairs.
    """

    base: str = ""
    pairs: dict[int, tuple[Grid, Grid]] = field(default_factory=dict)
    draws: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    numbers: dict[str, set[int]] = field(default_factory=lambda: {s: set() for s in names.SPLITS})


Tasks = dict[int, Built]
"""By the number of the file."""


def source_laws(dataset: Dataset, tasks: Tasks) -> Iterator[Violation]:
    """Yield the files whose task the dataset does not hold as its seed augments it.

    tasks: what the sets hold, by the number of the file.

    No test pair is a demonstration of its task. The hash of the pairs is the one noted at reading;
    the draws of the group are those that the seed gives, up to `num_aug`, without the ones that
    repeat a puzzle. The law of the draws passes over tasks with a test pair that was left out,
    since it counted when the draws were compared.
    """
    if dataset.kind is None:
        return
    files, config = dataset.sources.files, dataset.sources.config
    seed, most = config.get("seed"), config.get("num_aug")
    if type(seed) is not int or type(most) is not int or not 0 <= most <= MOST_AUGMENTATIONS:
        raise GristmillError(f"{names.SOURCES}: config lacks seed or num_aug")
    for number, file in enumerate(files):
        built = tasks.get(number, Built())
        yield from _leaks(file, built)
        if task_hash(built.pairs.values()) != file.facts.get(TASK_HASH):
            yield Violation("source", file.path, "the pairs have not the hash of the source file")
        elif built.pairs and LEFT_OUT not in file.facts:
            yield from _draws(file, built, seed, most)
    for number in sorted(set(tasks) - set(range(len(files)))):
        yield Violation("source", f"file {number}", f"is not in {names.SOURCES}")


def _leaks(file: SourceFile, built: Built) -> Iterator[Violation]:
    """Test pairs that are, cell by cell, pairs of the task in training."""
    for number in sorted(built.numbers["test"]):
        for other in sorted(built.numbers["train"]):
            if is_same_pair(built.pairs[number], built.pairs[other]):
                yield Violation("leak", file.path, f"test pair {number} is training pair {other}")


def _draws(file: SourceFile, built: Built, seed: int, most: int) -> Iterator[Violation]:
    from gristmill.puzzles.domains.arc_kernels import kept_draws

    key = np.uint64(source_key(seed, KIND, built.base))
    kept, _, _ = kept_draws(key, most, TRIES * most, *flat(list(built.pairs.values())))
    for split, numbers in built.draws.items():
        if not np.array_equal(numbers, kept):
            found = f"{len(numbers) - 1} augmentations in {split}, not those that the seed gives"
            yield Violation("augmentations", file.path, found)
