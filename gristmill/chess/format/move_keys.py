"""Move keys of whole files of games in bounded memory: duplicates, leakage, and the split.

The files are read once for each range of keys, so that memory is bounded however many games there
are. Source: docs/formats/chess.md#move-keys
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.sidecar import GAME

_KEYS_IN_MEMORY = 1 << 20  # about
_RECORDS_PER_READ = 1 << 15


def _keys(path: Path) -> Iterator[NDArray[np.uint64]]:
    with path.open("rb") as file:
        while data := file.read(_RECORDS_PER_READ * GAME.itemsize):
            yield np.frombuffer(data, GAME)["move_key"]


def _passes(files: Sequence[Path]) -> int:
    """The number of key ranges to work through, a power of two."""
    total = sum(path.stat().st_size for path in files) // GAME.itemsize
    passes = 1
    while total > passes * _KEYS_IN_MEMORY:
        passes *= 2
    return passes


def _within(path: Path, number: int, passes: int) -> NDArray[np.uint64]:
    """The keys of a file that lie in key range `number` of `passes`."""
    shift = np.uint64(64 - (passes.bit_length() - 1)) if passes > 1 else None
    picked = [
        keys if shift is None else keys[(keys >> shift) == np.uint64(number)]
        for keys in _keys(path)
    ]
    return np.concatenate(picked) if picked else np.zeros(0, np.uint64)


def count_duplicates(files: Sequence[Path]) -> int:
    """The number of games whose moves an earlier game of these files has too."""
    passes, duplicates = _passes(files), 0
    for number in range(passes):
        keys = np.concatenate([_within(path, number, passes) for path in files])
        duplicates += len(keys) - len(np.unique(keys))
    return duplicates


def repeated_keys(path: Path) -> NDArray[np.uint64]:
    """The move keys that more than one game of a file has, uint64 [keys]."""
    passes, repeated = _passes([path]), []
    for number in range(passes):
        keys, times = np.unique(_within(path, number, passes), return_counts=True)
        repeated.append(keys[times > 1])
    return np.concatenate(repeated)


def count_shared(files: Sequence[Path]) -> int:
    """The number of move keys that are in more than one of these files: leakage.

    files: `*.games.bin` files, one a split (docs/formats/chess.md#game-records).
    """
    passes, shared = _passes(files), 0
    for number in range(passes):
        by_file = [np.unique(_within(path, number, passes)) for path in files]
        if by_file:
            _, times = np.unique(np.concatenate(by_file), return_counts=True)
            shared += int((times > 1).sum())
    return shared


def split_of(
    keys: NDArray[np.uint64], seed: int, train_ratio: float, val_ratio: float
) -> NDArray[np.uint8]:
    """The split of each game by its move key (docs/formats/chess.md#split-by-moves).

    keys: move keys, uint64 [games].
    Returns uint8 [games]: 0 train, 1 val, 2 test.
    """
    # splitmix64 of the key plus the seed; its top 53 bits are a number in [0, 1).
    with np.errstate(over="ignore"):
        z = keys.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    place = (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return np.where(place < train_ratio, 0, np.where(place < train_ratio + val_ratio, 1, 2)).astype(
        np.uint8
    )
