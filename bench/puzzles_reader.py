"""PuzzleDataset and PuzzleExamples against plain readers of the same batches, in turns in one run.

Run from the checkout: python -m bench.puzzles_reader. The plain reader follows the specification in
Python loops: one draw for each group in training, one binary search for each example in testing.
By number, the plain one stacks what it maps and converts example by example.
Exit status 1 where a required ratio is missed: in training, in testing and by number, on a dataset
like Sudoku and on one like ARC, at least 5 times its batches per CPU second.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.puzzles.format.names import TOKENS
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


def rate(batches: Iterable[Any], most: int) -> float:
    """Batches per CPU second, of at most so many."""
    start = time.process_time()
    done = sum(1 for _ in islice(batches, most))
    return done / (time.process_time() - start)


def compare(name: str, ours: Iterable[Any], plain: Iterable[Any], most: int) -> bool:
    """Measure both in turns; print the medians and the median ratio of the rounds."""
    rate(ours, most), rate(plain, most)
    pairs = [(rate(ours, most), rate(plain, most)) for _ in range(ROUNDS)]
    ratio = statistics.median(one / other for one, other in pairs)
    good = ratio >= LEAST
    own, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{name}: {own:,.0f} batches per CPU second, plain reader {other:,.0f},"
        f" ratio {ratio:.1f} (required {LEAST:g}) {'ok' if good else 'MISSED'}"
    )
    return good


def of_original(name: str, root: Path, test: bool, most: int) -> bool:
    """Compare the batches of the original reader."""
    split = "test" if test else "train"
    ours = PuzzleDataset(PuzzleDatasetConfig(0, root, BATCH, test, 4, 0, 1), split)
    plain = PlainReader(root, split, seed=0, size=BATCH, test=test, epochs=4)
    return compare(f"{name}, {split}", ours, plain, most)


class Shuffled:
    """Batches of examples in an order of their own, as a data loader asks for them.

    batch: gives the examples of some numbers.
    """

    def __init__(self, batch: Callable[[list[int]], Any], count: int) -> None:
        self._batch, self._count = batch, count

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(0).permutation(self._count).tolist()
        return (self._batch(order[at : at + BATCH]) for at in range(0, self._count, BATCH))


def by_number(name: str, root: Path, most: int) -> bool:
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
    return compare(f"{name}, by number", ours, Shuffled(plain, len(examples)), most)


def main() -> None:
    """All of it; see the module's head."""
    warnings.simplefilter("ignore")  # torch warns about itself
    with tempfile.TemporaryDirectory() as scratch:
        sudoku = write_dataset(Path(scratch) / "sudoku", 81, 11, 2_000, 50, 1)
        arc = write_dataset(Path(scratch) / "arc", 900, 12, 800, 10, 4)
        good = []
        for name, root, most in (("Sudoku", sudoku, 60), ("ARC", arc, 20)):
            good += [of_original(name, root, test, most) for test in (False, True)]
            good.append(by_number(name, root, most))
    if not all(good):
        sys.exit("missed a required ratio")


if __name__ == "__main__":
    main()
