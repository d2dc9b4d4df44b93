"""PuzzleDataset and PuzzleExamples against plain readers of the same batches, in turns in one run.

Run from the checkout: python -m bench.puzzles_reader. The plain reader follows the specification in
Python loops: one draw for each group in training, one binary search for each example in testing.
By number, the plain one stacks what it maps and converts example by example.
Exit status 1 where a required ratio is missed: in training, in testing and by number, on a dataset
like Sudoku and on one like ARC, at least 5 times its batches per CPU second.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench import kit
from gristmill.puzzles.format import TOKENS
from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
from gristmill.puzzles.read.examples import PuzzleExamples
from tests.puzzles.read.plain_reader import PlainReader

ROUNDS = 7
BATCH = 768
LEAST = 5.0


def write_dataset(
    root: Path, seq_len: int, vocab_size: int, groups: int, puzzles: int, examples: int
) -> Path:
    """Write a training split and an equal test split.

    groups: of the set. puzzles: of each group. examples: of each puzzle.
    """
    chance = np.random.default_rng(0)
    count = groups * puzzles * examples
    tokens = chance.integers(0, vocab_size, (count, seq_len), np.uint8)
    # A task of ARC fills a part of its 900 cells.
    tokens[:, seq_len // 2 :] *= chance.integers(0, 2, (count, 1), np.uint8)
    arrays = {
        "inputs": tokens,
        "labels": tokens[::-1],
        "puzzle_identifiers": np.arange(groups * puzzles, dtype=np.int32),
        "puzzle_indices": np.arange(0, count + 1, examples, dtype=np.int32),
        "group_indices": np.arange(0, groups * puzzles + 1, puzzles, dtype=np.int32),
    }
    metadata = {
        "pad_id": 0,
        "ignore_label_id": 0,
        "blank_identifier_id": 0,
        "vocab_size": vocab_size,
        "seq_len": seq_len,
        "num_puzzle_identifiers": groups * puzzles,
        "total_groups": groups,
        "mean_puzzle_examples": float(examples),
        "sets": ["all"],
    }
    for split in ("train", "test"):
        (root / split).mkdir(parents=True)
        (root / split / "dataset.json").write_text(json.dumps(metadata))
        for field, array in arrays.items():
            np.save(root / split / f"all__{field}.npy", array)
    return root


def compare(what: str, ours: Iterable[Any], plain: Iterable[Any], most: int) -> None:
    """Compare so many batches at most."""
    kit.compare(
        what,
        lambda: sum(1 for _ in islice(ours, most)),
        lambda: sum(1 for _ in islice(plain, most)),
        "batches per CPU second",
        least=LEAST,
        rounds=ROUNDS,
    )


def of_original(name: str, root: Path, test: bool, most: int) -> None:
    """Compare the batches of the original reader."""
    split = "test" if test else "train"
    ours = PuzzleDataset(PuzzleDatasetConfig(0, root, BATCH, test, 4, 0, 1), split)
    plain = PlainReader(root, split, seed=0, size=BATCH, test=test, epochs=4)
    compare(f"{name}, {split}", ours, plain, most)


class Shuffled:
    """Batches of examples in an order of their own, as a data loader asks for them.

    batch: gives the examples of some numbers.
    """

    def __init__(self, batch: Callable[[list[int]], Any], count: int) -> None:
        self._batch, self._count = batch, count

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(0).permutation(self._count).tolist()
        return (self._batch(order[at : at + BATCH]) for at in range(0, self._count, BATCH))


def by_number(name: str, root: Path, most: int) -> None:
    """Compare examples by number with a loop that reads them one by one."""
    examples = PuzzleExamples(root)
    arrays = {field: np.load(root / f"train/all__{field}.npy", mmap_mode="r") for field in TOKENS}
    owners = np.load(root / "train/all__puzzle_identifiers.npy")
    bounds = np.load(root / "train/all__puzzle_indices.npy")

    def plain(numbers: list[int]) -> dict[str, Any]:
        rows = []
        for number in numbers:
            labels = arrays["labels"][number].astype(np.int32)
            labels[labels == 0] = -100
            owner = owners[np.searchsorted(bounds, number, "right") - 1]
            rows.append((arrays["inputs"][number].astype(np.int32), labels, owner))
        columns = zip(*rows, strict=True)
        return dict(zip((*TOKENS, "puzzle_identifiers"), map(np.stack, columns), strict=True))

    first = list(range(0, len(examples), 97))
    for field, column in plain(first).items():
        np.testing.assert_array_equal(examples.batch(first)[field], column)
    ours = Shuffled(examples.batch, len(examples))
    compare(f"{name}, by number", ours, Shuffled(plain, len(examples)), most)


def batches(given: kit.Given) -> None:
    sudoku = write_dataset(given.scratch / "sudoku", 81, 11, 2_000, 50, 1)
    arc = write_dataset(given.scratch / "arc", 900, 12, 800, 10, 4)
    for name, root, most in (("Sudoku", sudoku, 60), ("ARC", arc, 20)):
        for test in (False, True):
            of_original(name, root, test, most)
        by_number(name, root, most)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch warns about itself
    kit.main(__doc__, batches)
