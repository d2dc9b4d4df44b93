"""Move keys over whole sets of games, in bounded memory: duplicates, and leakage between splits.

A move key is the first 8 bytes of SHA-256 over a game's UCI moves. Keys are
read from sidecar files in passes by range, so that a pass holds a bounded
number of them however many games there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.sidecar import GAME

_PASS = 1 << 20  # keys held at a time, about
_BLOCK = 1 << 15


def _keys(path: Path) -> Iterator[NDArray[np.uint64]]:
    with path.open("rb") as file:
        while data := file.read(_BLOCK * GAME.itemsize):
            yield np.frombuffer(data, GAME)["move_key"]


def _passes(files: Sequence[Path]) -> int:
    """How many ranges of keys to work through, a power of two."""
    total = sum(path.stat().st_size for path in files) // GAME.itemsize
    passes = 1
    while total > passes * _PASS:
        passes *= 2
    return passes


def _within(path: Path, number: int, passes: int) -> NDArray[np.uint64]:
    """The keys of a file that lie in range `number` of `passes`."""
    shift = np.uint64(64 - (passes.bit_length() - 1)) if passes > 1 else None
    picked = [
        keys if shift is None else keys[(keys >> shift) == np.uint64(number)]
        for keys in _keys(path)
    ]
    return np.concatenate(picked) if picked else np.zeros(0, np.uint64)


def duplicates(files: Sequence[Path]) -> int:
    """How many games in these `*.games.bin` have the moves of another one before them."""
    passes, twins = _passes(files), 0
    for number in range(passes):
        keys = np.concatenate([_within(path, number, passes) for path in files])
        twins += len(keys) - len(np.unique(keys))
    return twins


def shared(files: Sequence[Path]) -> int:
    """How many move keys stand in more than one of these `*.games.bin`: leakage."""
    passes, both = _passes(files), 0
    for number in range(passes):
        each = [np.unique(_within(path, number, passes)) for path in files]
        if each:
            _, times = np.unique(np.concatenate(each), return_counts=True)
            both += int((times > 1).sum())
    return both


def split_of(
    keys: NDArray[np.uint64], seed: int, train_ratio: float, val_ratio: float
) -> NDArray[np.uint8]:
    """The split (0 train, 1 val, 2 test) of games by their move keys.

    The key plus the seed goes through splitmix64; its top 53 bits, as a number
    in [0, 1), are compared with the ratios. So a game's split depends on its
    moves, the seed and the ratios alone.
    """
    with np.errstate(over="ignore"):
        z = keys.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    place = (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return np.where(place < train_ratio, 0, np.where(place < train_ratio + val_ratio, 1, 2)).astype(
        np.uint8
    )
