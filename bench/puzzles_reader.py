"""PuzzleDataset against a plain reader of the same batches, in turns in one run.

Run from the checkout: python -m bench.puzzles_reader. The plain reader follows the specification in
Python loops: one draw for each group in training, one binary search for each example in testing.
Exit status 1 where a required ratio is missed: in training and in testing, on a dataset like Sudoku
and on one like ARC, at least 5 times its batches per CPU second.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
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


def compare(name: str, root: Path, test: bool, most: int) -> bool:
    """Measure both in turns; print the medians and the median ratio of the rounds."""
    split = "test" if test else "train"
    ours = PuzzleDataset(PuzzleDatasetConfig(0, root, BATCH, test, 4, 0, 1), split)
    plain = PlainReader(root, split, seed=0, size=BATCH, test=test, epochs=4)
    rate(ours, most), rate(plain, most)
    pairs = [(rate(ours, most), rate(plain, most)) for _ in range(ROUNDS)]
    ratio = statistics.median(one / other for one, other in pairs)
    good = ratio >= LEAST
    own, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{name}, {split}: {own:,.0f} batches per CPU second, plain reader {other:,.0f},"
        f" ratio {ratio:.1f} (required {LEAST:g}) {'ok' if good else 'MISSED'}"
    )
    return good


def main() -> None:
    """All of it; see the module's head."""
    warnings.simplefilter("ignore")  # torch warns about itself
    with tempfile.TemporaryDirectory() as scratch:
        sudoku = write_dataset(Path(scratch) / "sudoku", 81, 11, 2_000, 50, 1)
        arc = write_dataset(Path(scratch) / "arc", 900, 12, 800, 10, 4)
        good = [
            compare(name, root, test, most)
            for name, root, most in (("Sudoku", sudoku, 60), ("ARC", arc, 20))
            for test in (False, True)
        ]
    if not all(good):
        sys.exit("missed a required ratio")


if __name__ == "__main__":
    main()
