"""Domino: our published build beside a plain Python loop that makes as many rows.

Ours samples, removes duplicates, augments, writes, looks by all laws, hashes, publishes. The loop
samples, augments and writes, with Python's random, lists and tuples; it checks nothing. CPU seconds
of one process; medians of interleaved rounds. With --scale, two workers are compared with two
independent builds of half the games, by the clock. Ends with status 1 where a floor is missed.

    python -m bench.puzzles_domino [--games 20000] [--aug 2] [--rounds 3] [--scale]
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from bench import kit
from bench.puzzles_build import Built, beside_loop, published, write_plain
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.config import DominoConfig

FLOOR = 10.0
"""How many times faster than the loop we must be."""
_TIMES = 50
"""Times the games of the other measurements: a process takes a second to start."""

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
        inputs, labels, groups = [], [], [0]
        for number, (row, label) in enumerate(plain_rows(games, augmentations), 1):
            inputs.append(row)
            labels.append(label)
            if number % (1 + augmentations) == 0:
                groups.append(number)
        arrays = map(np.array, (inputs, labels, groups))
        total += write_plain(out / split, *arrays)
    return total


def our_build(root: Path, games: int, num_aug: int) -> Built:
    """Publish a dataset."""
    config = DominoConfig(num_games=games, num_aug=num_aug)
    return published(
        *(root, "puzzles/domino", config),
        lambda attempt: build_domino(
            attempt.out, config, parts=attempt.parts, progress=attempt.progress
        ),
    )


def dataset(given: kit.Given) -> None:
    """Compare builds in turns."""
    _, ratio = beside_loop(
        lambda root: our_build(root, given.games, given.aug),
        lambda out: plain_build(out, given.games, given.aug),
        given,
    )
    kit.bounded("times the loop", ratio, least=FLOOR)
    if given.scale:
        scaled(given)


def child(out: str, games: str, aug: str, workers: str) -> None:
    """A build in a process of its own."""
    build_domino(
        Path(out), DominoConfig(num_games=int(games), num_aug=int(aug), workers=int(workers))
    )


def scaled(given: kit.Given) -> None:
    """Compare two workers with two independent builds of half the games."""
    games, out = _TIMES * given.games, [given.scratch / f"out{k}" for k in range(2)]
    halves = [(each, games // 2, given.aug, 1) for each in out]
    kit.two_workers(halves, (out[0], games, given.aug, 2), given.rounds, made=out)


if __name__ == "__main__":
    kit.main(__doc__, dataset, child=child, games=20_000, aug=2, rounds=3, scale=False)
