"""Domino: our published build beside a plain Python loop that makes as many rows.

Ours samples, removes duplicates, augments, writes, looks by all laws, hashes, publishes. The loop
samples, augments and writes, with Python's random, lists and tuples; it checks nothing. CPU seconds
of one process; medians of interleaved rounds. With --scale, two workers are compared with two
independent builds of half the games, by the clock. Ends with status 1 where a floor is missed.

    python -m bench.puzzles_domino [--games 20000] [--aug 2] [--rounds 3] [--scale]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from statistics import median

import numpy as np

from gristmill import families
from gristmill.contract import Summary, Violation
from gristmill.families import Subject
from gristmill.provenance import config_fields
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.config import DominoConfig

FLOOR = 10.0
"""How many times faster than the loop we must be."""
MOST_LAWS = 0.5
"""What laws may take of the time of the build."""
LEAST_SCALING = 0.85
"""What two workers must reach of two independent builds."""
_TIMES = 50
"""Times the games of the other measurements: a process takes a second to start."""
_BUILD = (
    "import sys; from pathlib import Path\n"
    "from gristmill.puzzles.builders.domino import build_domino\n"
    "from gristmill.puzzles.config import DominoConfig\n"
    "if __name__ == '__main__':\n"
    "    games, aug, workers = map(int, sys.argv[2:])\n"
    "    config = DominoConfig(num_games=games, num_aug=aug, workers=workers)\n"
    "    build_domino(Path(sys.argv[1]), config)\n"
)

Tile = tuple[int, int]
Row = tuple[list[int], list[int]]


def played() -> tuple[list[Tile], list[Tile], Tile | None]:
    """Table, hand and ends after some random moves."""
    tiles = list(combinations_with_replacement(range(7), 2))
    random.shuffle(tiles)
    hand, hidden = tiles[:7], tiles[7:]
    table: list[Tile] = []
    ends: Tile | None = None
    for _ in range(random.randint(0, 10)):
        playable = [tile for tile in hand if ends is None or ends[0] in tile or ends[1] in tile]
        if not playable:
            break
        tile = random.choice(playable)
        hand.remove(tile)
        if ends is None:
            table, ends = [tile], tile
        else:
            side = random.choice([side for side in (0, 1) if ends[side] in tile])
            other = tile[1] if tile[0] == ends[side] else tile[0]
            if side == 0:
                table.insert(0, tile)
                ends = (other, ends[1])
            else:
                table.append(tile)
                ends = (ends[0], other)
        hidden.pop(random.randrange(len(hidden)))
    return table, hand, ends


def labelled(hand: list[Tile], ends: Tile | None) -> list[int] | None:
    """The heaviest playable tile and its position, None where no tile can be played."""
    best, most = None, -1.0
    for tile in hand:
        if ends is None or ends[0] in tile or ends[1] in tile:
            pips = tile[0] + tile[1] + random.random() * 0.1
            if pips > most:
                best, most = tile, pips
    if best is None:
        return None
    position = 3 if ends is None else 1 if ends[0] in best else 2
    return [best[0] + 1, best[1] + 1, position, *[0] * 69]


def encoded(table: list[Tile], hand: list[Tile], ends: Tile | None) -> list[int]:
    """The 72 tokens of an input."""
    row = [0] * 72
    for place, tiles in ((0, table), (56, hand)):
        for number, (low, high) in enumerate(tiles):
            row[place + 2 * number] = low + 1
            row[place + 2 * number + 1] = high + 1
    if ends is not None:
        row[70], row[71] = ends[0] + 1, ends[1] + 1
    return row


def plain_rows(games: int, num_aug: int) -> Iterator[Row]:
    """The rows of one split."""
    made = 0
    while made < games:
        table, hand, ends = played()
        label = labelled(hand, ends)
        if label is None:
            continue
        made += 1
        yield encoded(table, hand, ends), label
        for _ in range(num_aug):
            order = random.sample(hand, len(hand))
            if random.random() < 0.5:
                yield encoded(table, order, ends), label
            else:
                turned = None if ends is None else (ends[1], ends[0])
                position = {1: 2, 2: 1, 3: 3}[label[2]]
                yield encoded(table[::-1], order, turned), [*label[:2], position, *label[3:]]


def plain_build(out: Path, games: int, num_aug: int) -> int:
    """Build both splits; the number of rows."""
    total = 0
    for split, augmentations in (("train", num_aug), ("test", 0)):
        (out / split).mkdir(parents=True)
        inputs, labels, groups = [], [], [0]
        for number, (row, label) in enumerate(plain_rows(games, augmentations), 1):
            inputs.append(row)
            labels.append(label)
            if number % (1 + augmentations) == 0:
                groups.append(number)
        count = len(inputs)
        arrays = {
            "inputs": np.array(inputs, np.int32),
            "labels": np.array(labels, np.int32),
            "puzzle_identifiers": np.zeros(count, np.int32),
            "puzzle_indices": np.arange(count + 1, dtype=np.int32),
            "group_indices": np.array(groups, np.int32),
        }
        for name, array in arrays.items():
            np.save(out / split / f"all__{name}.npy", array)
        (out / split / "dataset.json").write_text(json.dumps({"seq_len": 72, "sets": ["all"]}))
        total += count
    return total


def our_build(root: Path, games: int, num_aug: int, spent: list[tuple[float, float]]) -> int:
    """Publish a dataset, append the seconds of its build and laws; the number of rows."""
    config = DominoConfig(num_games=games, num_aug=num_aug)
    times = []

    def make(attempt: Attempt) -> Summary:
        begin = time.process_time()
        summary = build_domino(attempt.out, config, parts=attempt.parts, progress=attempt.progress)
        times.append(time.process_time() - begin)
        return summary

    def laws(folder: Path) -> list[Violation]:
        begin = time.process_time()
        subject = Subject(folder, config=config_fields(config))
        found = [*families.check("puzzles/domino", subject)]
        times.append(time.process_time() - begin)
        return found

    done = publish(
        Build(
            root=root,
            artifact="puzzles/domino",
            asset="puzzles/domino",
            partition="domino",
            code_version=DominoConfig.CODE_VERSION,
            config=config,
            inputs=[],
            make=make,
            laws=laws,
        )
    )
    spent.append((times[0], times[1]))
    counts = done.record.counts
    return int(counts["examples/train"] + counts["examples/test"])


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    """CPU seconds for each row, and the rows."""
    begin = time.process_time()
    rows = work()
    return (time.process_time() - begin) / rows, rows


def start(out: Path, games: int, num_aug: int, workers: int) -> subprocess.Popen[bytes]:
    """Start a build in a process of its own."""
    command = [sys.executable, "-c", _BUILD, *map(str, (out, games, num_aug, workers))]
    return subprocess.Popen(command)


def scaling(folder: Path, games: int, num_aug: int) -> float:
    """Seconds of two independent builds of half the games by those of one with two workers."""
    begin = time.perf_counter()
    both = [start(folder / f"half{k}", games // 2, num_aug, 1) for k in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    independent = time.perf_counter() - begin
    begin = time.perf_counter()
    assert start(folder / "two", games, num_aug, 2).wait() == 0
    together = time.perf_counter() - begin
    for path in folder.iterdir():
        shutil.rmtree(path)
    return independent / together


def scaled(games: int, num_aug: int, rounds: int) -> float:
    """The median of some rounds of `scaling`, printed."""
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-") as folder:
        found = median(scaling(Path(folder), games, num_aug) for _ in range(rounds))
    print(f"two workers: {found:.2f} of two independent builds")
    return found


def main() -> None:
    """Measure, print, compare with the floors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=20_000)
    parser.add_argument("--aug", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", action="store_true")
    given = parser.parse_args()
    ratios, spent = [], []
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-") as folder:
        for number in range(given.rounds + 1):
            scratch = Path(folder, str(number))
            (scratch / "root").mkdir(parents=True)
            ours, rows = seconds(
                lambda place=scratch: our_build(place / "root", given.games, given.aug, spent)
            )
            if number == 0:
                spent.clear()  # kernels were compiled, modules imported
                continue
            plain, _ = seconds(
                lambda place=scratch: plain_build(place / "plain", given.games, given.aug)
            )
            ratios.append(plain / ours)
            print(f"{rows:,} rows: {1 / ours:,.0f} a second, the loop {1 / plain:,.0f}")
            shutil.rmtree(scratch)
    ratio = median(ratios)
    share = median(laws / build for build, laws in spent)
    print(f"{ratio:.1f} times the loop; laws {share:.2f} of the build")
    reached = True
    if given.scale:
        reached = scaled(_TIMES * given.games, given.aug, given.rounds) >= LEAST_SCALING
    if ratio < FLOOR or share > MOST_LAWS or not reached:
        sys.exit(
            f"floors: {FLOOR} times the loop, laws at most {MOST_LAWS} of the build, two workers"
            f" {LEAST_SCALING} of two builds"
        )


if __name__ == "__main__":
    main()
