"""Sudoku: our published build beside a NumPy loop that makes one example after another.

Ours reads, looks for duplicates and twins, solves, augments, writes, checks all laws, hashes and
publishes. The loop reads, augments and writes; it checks nothing. CPU seconds of one process;
medians of interleaved rounds. With --scale, two workers are compared with two independent builds,
by the clock, and the peak memory at one and at four times the rows is printed. Ends with status 1
where a floor is missed.

    python -m bench.puzzles_sudoku [--sources 500] [--aug 400] [--rounds 3] [--scale]
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from gristmill import families
from gristmill.contract import Summary, Violation
from gristmill.families import Subject
from gristmill.provenance import config_fields, raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains.sudoku.board import board_of, text_of
from gristmill.puzzles.domains.sudoku.symmetry import groups
from gristmill.puzzles.raw.samples import generated_sudoku

LEAST_EXAMPLES = 500_000
"""Examples a second, or:"""
LEAST_RATIO = 20.0
"""times as fast as the loop."""
MOST_LAWS = 0.5
"""What laws may take of the time of the build."""
LEAST_SCALING = 0.85
"""What two workers must reach of two independent builds."""
_TWINS = 50
_BUILD = (
    "import sys, resource; from pathlib import Path\n"
    "from gristmill.puzzles.builders.sudoku import build_sudoku\n"
    "from gristmill.puzzles.config import SudokuConfig\n"
    "if __name__ == '__main__':\n"
    "    config = SudokuConfig(num_aug=int(sys.argv[3]), workers=int(sys.argv[4]))\n"
    "    build_sudoku(Path(sys.argv[1]), Path(sys.argv[2]), config)\n"
    "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
)


def write_drop(folder: Path, sources: int, twins: int = 1) -> Path:
    """A drop of `sources` training puzzles, so many twins of each, and 20 test puzzles."""
    folder.mkdir(parents=True)
    made = [generated_sudoku(k)[:2] for k in range(-(-sources // twins))]
    questions, answers = (np.array([board_of(pair[k]) for pair in made]) for k in (0, 1))
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
        (out / split).mkdir(parents=True)
        with (drop / f"{split}.csv").open(newline="") as file:
            reader = csv.reader(file)
            next(reader)
            rows = [
                tuple(np.array([*text.replace(".", "0")], np.uint8).reshape(9, 9) for text in row)
                for row in ((line[1], line[2]) for line in reader)
            ][:most]
        examples = [*plain_examples(rows, augmentations)]  # type: ignore[arg-type]
        count = len(examples)
        arrays = {
            "inputs": np.stack([pair[0].reshape(81) + 1 for pair in examples]).astype(np.int32),
            "labels": np.stack([pair[1].reshape(81) + 1 for pair in examples]).astype(np.int32),
            "puzzle_identifiers": np.zeros(count, np.int32),
            "puzzle_indices": np.arange(count + 1, dtype=np.int32),
            "group_indices": np.arange(0, count + 1, 1 + augmentations, dtype=np.int32),
        }
        for name, array in arrays.items():
            np.save(out / split / f"all__{name}.npy", array)
        (out / split / "dataset.json").write_text(json.dumps({"seq_len": 81, "sets": ["all"]}))
        total += count
    return total


def our_build(root: Path, drop: Path, num_aug: int, spent: list[tuple[float, float]]) -> int:
    """Publish a dataset, append the seconds of its build and laws; the number of examples."""
    config = SudokuConfig(num_aug=num_aug)
    times = []

    def make(attempt: Attempt) -> Summary:
        begin = time.process_time()
        summary = build_sudoku(
            drop, attempt.out, config, parts=attempt.parts, progress=attempt.progress
        )
        times.append(time.process_time() - begin)
        return summary

    def laws(folder: Path) -> list[Violation]:
        begin = time.process_time()
        subject = Subject(folder, config=config_fields(config))
        found = [*families.check("puzzles/sudoku", subject)]
        times.append(time.process_time() - begin)
        return found

    files = sorted(drop.iterdir())
    done = publish(
        Build(
            root=root,
            artifact="puzzles/sudoku",
            asset="puzzles/sudoku",
            partition="sudoku",
            code_version=SudokuConfig.CODE_VERSION,
            config=config,
            inputs=raw_inputs.raw_inputs(root, files, "puzzles/raw", "sudoku", known={}),
            make=make,
            laws=laws,
        )
    )
    spent.append((times[0], times[1]))
    counts = done.record.counts
    return int(counts["examples/train"] + counts["examples/test"])


def start(drop: Path, out: Path, num_aug: int, workers: int) -> subprocess.Popen[str]:
    """Start a build in a process of its own, which prints its peak memory in KiB."""
    command = [sys.executable, "-c", _BUILD, *map(str, (drop, out, num_aug, workers))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def scaling(drop: Path, half: Path, folder: Path, num_aug: int) -> float:
    """Seconds of two independent builds of half the rows by those of one with two workers."""
    begin = time.perf_counter()
    both = [start(half, folder / f"half{k}", num_aug, 1) for k in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    independent = time.perf_counter() - begin
    begin = time.perf_counter()
    assert start(drop, folder / "two", num_aug, 2).wait() == 0
    together = time.perf_counter() - begin
    for path in folder.iterdir():
        shutil.rmtree(path)
    return independent / together


def scaled(folder: Path, sources: int, num_aug: int, rounds: int) -> bool:
    """Print scaling and memory; whether the floor is reached."""
    # Twice the rows of the other measurements: a worker takes a second to start.
    drops = {k: write_drop(folder / f"x{k}", 2 * k * sources, _TWINS) for k in (1, 2, 4)}
    out = folder / "out"
    out.mkdir()
    ratios = [scaling(drops[2], drops[1], out, num_aug) for _ in range(rounds)]
    peaks = []
    for k in (1, 4):
        child = start(drops[k], out / f"memory{k}", num_aug, 1)
        text, _ = child.communicate()
        peaks.append(int(text) / 1024)
        shutil.rmtree(out / f"memory{k}")
    print(f"two workers: {median(ratios):.2f} of two independent builds")
    print(f"peak memory: {peaks[0]:.0f} MiB, {peaks[1]:.0f} MiB at four times the rows")
    return median(ratios) >= LEAST_SCALING


def main() -> None:
    """Measure, print, compare with the floors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=int, default=500)
    parser.add_argument("--aug", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", action="store_true")
    given = parser.parse_args()
    speeds, ratios, spent = [], [], []
    reached = True
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-") as name:
        folder = Path(name)
        drop = write_drop(folder / "root/drops/puzzles/sudoku", given.sources)
        for number in range(given.rounds + 1):
            shutil.rmtree(folder / "root/puzzles", ignore_errors=True)
            begin = time.process_time()
            count = our_build(folder / "root", drop, given.aug, spent)
            ours = count / (time.process_time() - begin)
            if number == 0:
                spent.clear()  # kernels were compiled, modules imported
                continue
            begin = time.process_time()
            count = plain_build(drop, folder / f"plain{number}", given.aug, given.sources // 20)
            plain = count / (time.process_time() - begin)
            speeds.append(ours)
            ratios.append(ours / plain)
            print(f"{ours:,.0f} examples a second, the loop {plain:,.0f}")
        if given.scale:
            reached = scaled(folder / "scale", given.sources, given.aug, given.rounds)
    share = median(laws / build for build, laws in spent)
    print(f"{median(speeds):,.0f} a second, {median(ratios):.1f} times the loop; laws {share:.2f}")
    fast = median(speeds) >= LEAST_EXAMPLES or median(ratios) >= LEAST_RATIO
    if not (fast and share <= MOST_LAWS and reached):
        sys.exit(
            f"floors: {LEAST_EXAMPLES:,} a second or {LEAST_RATIO} times the loop, laws at most"
            f" {MOST_LAWS} of the build, two workers {LEAST_SCALING} of two builds"
        )


if __name__ == "__main__":
    main()
