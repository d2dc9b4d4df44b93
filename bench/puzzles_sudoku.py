"""Sudoku: our published build beside a NumPy loop that makes one example after another.

Ours reads, looks for duplicates and twins, solves, augments, writes, checks all laws, hashes and
publishes. The loop reads, augments and writes; it checks nothing. CPU seconds of one process;
medians of interleaved rounds. With --scale, two workers are compared with two independent builds,
by the clock, and the peak memory at one and at four times the rows is printed. Ends with status 1
where a floor is missed.

    python -m bench.puzzles_sudoku [--sources 500] [--aug 400] [--rounds 3] [--scale]
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench import kit
from bench.puzzles_build import Built, beside_loop, published, write_plain
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains.grid import digits, text_of
from gristmill.puzzles.domains.sudoku_symmetry import groups
from gristmill.puzzles.raw.samples import generated_sudoku

LEAST_EXAMPLES = 500_000
"""Examples a second, or:"""
LEAST_RATIO = 20.0
"""times as fast as the loop."""
_TWINS = 50


def write_drop(folder: Path, sources: int, twins: int = 1) -> Path:
    """A drop of `sources` training puzzles, so many twins of each, and 20 test puzzles."""
    folder.mkdir(parents=True)
    made = [generated_sudoku(k)[:2] for k in range(-(-sources // twins))]
    questions, answers = (
        digits(np.frombuffer("".join(pair[k] for pair in made).encode(), np.uint8)).reshape(-1, 81)
        for k in (0, 1)
    )
    keys = np.arange(len(made), dtype=np.uint64)
    inputs, labels, _, _ = groups(questions, answers, keys, twins - 1)
    train = [
        (text_of(given - 1), text_of(label - 1))
        for given, label in zip(inputs[:sources], labels[:sources], strict=True)
    ]
    test = [generated_sudoku(10_000 + k)[:2] for k in range(20)]
    for split, rows in (("train", train), ("test", test)):
        lines = [f"bench,{question},{answer},0\n" for question, answer in rows]
        (folder / f"{split}.csv").write_text("source,question,answer,rating\n" + "".join(lines))
    return folder


def plain_examples(
    rows: list[tuple[np.ndarray, np.ndarray]], num_aug: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every puzzle and its augmentations, one by one."""
    dice = np.random.default_rng(0)
    for question, answer in rows:
        yield question, answer
        for _ in range(num_aug):
            digits = np.r_[0, 1 + dice.permutation(9)]
            turned = dice.random() < 0.5
            lines = [
                np.concatenate([3 * band + dice.permutation(3) for band in dice.permutation(3)])
                for _ in range(2)
            ]
            changed = []
            for board in (question, answer):
                grid = board.T if turned else board
                changed.append(digits[grid[np.ix_(*lines)]])
            yield changed[0], changed[1]


def plain_build(drop: Path, out: Path, num_aug: int, most: int) -> int:
    """Build both splits of the first `most` puzzles; the number of examples."""
    total = 0
    for split, augmentations in (("train", num_aug), ("test", 0)):
        with (drop / f"{split}.csv").open(newline="") as file:
            reader = csv.reader(file)
            next(reader)
            rows = [
                tuple(np.array([*text.replace(".", "0")], np.uint8).reshape(9, 9) for text in row)
                for row in ((line[1], line[2]) for line in reader)
            ][:most]
        examples = [*plain_examples(rows, augmentations)]  # type: ignore[arg-type]
        inputs, labels = (
            np.stack([pair[k].reshape(81) + 1 for pair in examples]) for k in range(2)
        )
        groups = np.arange(0, len(examples) + 1, 1 + augmentations)
        total += write_plain(out / split, inputs, labels, groups)
    return total


def our_build(root: Path, source: Path, num_aug: int) -> Built:
    """Publish a dataset of a drop."""
    config, drop = SudokuConfig(num_aug=num_aug), root / "drops/puzzles/sudoku"
    shutil.copytree(source, drop, copy_function=os.link)
    return published(
        *(root, "puzzles/sudoku", config),
        lambda attempt: build_sudoku(
            drop, attempt.out, config, parts=attempt.parts, progress=attempt.progress
        ),
        raw_inputs(root, sorted(drop.iterdir()), "puzzles/raw", "sudoku", known={}),
    )


def dataset(given: kit.Given) -> None:
    """Compare builds in turns; the loop makes a twentieth of the rows."""
    drop = write_drop(given.scratch / "drop", given.sources)
    rate, ratio = beside_loop(
        lambda root: our_build(root, drop, given.aug),
        lambda out: plain_build(drop, out, given.aug, given.sources // 20),
        given,
    )
    kit.bounded(
        f"or {LEAST_EXAMPLES:,} a second: times the loop",
        ratio,
        least=None if rate >= LEAST_EXAMPLES else LEAST_RATIO,
    )
    if given.scale:
        scaled(given)


def child(drop: str, out: str, aug: str, workers: str) -> int:
    """A build in a process of its own; its peak memory."""
    build_sudoku(Path(drop), Path(out), SudokuConfig(num_aug=int(aug), workers=int(workers)))
    return kit.peak_bytes()


def scaled(given: kit.Given) -> None:
    """Compare two workers with two independent builds, and the memory at two sizes."""
    # Twice the rows of the other measurements: a worker takes a second to start.
    folder, sources = given.scratch / "scale", 2 * given.sources
    drops = {k: write_drop(folder / f"x{k}", k * sources, _TWINS) for k in (1, 2, 4)}
    out = [folder / f"out{k}" for k in range(2)]
    halves = [(drops[1], each, given.aug, 1) for each in out]
    kit.two_workers(halves, (drops[2], out[0], given.aug, 2), given.rounds, made=out)

    def peak(k: int) -> int:
        return int(kit.finish(kit.start(drops[k], folder / f"memory{k}", given.aug, 1)))

    kit.grows(peak, 1, 4, f"times {sources:,} rows", most=None)


if __name__ == "__main__":
    kit.main(__doc__, dataset, child=child, sources=500, aug=400, rounds=3, scale=False)
