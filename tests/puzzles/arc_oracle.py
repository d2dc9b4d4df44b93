"""ARC by its rules, in numpy and Python, without the code of the builder.

Only the words of a draw come from `plain_draws.py`.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.puzzles.plain_draws import Stream, key_of

Pair = tuple[np.ndarray, np.ndarray]


def turned(grid: np.ndarray, symmetry: int) -> np.ndarray:
    return [
        grid,
        np.rot90(grid),
        np.rot90(grid, 2),
        np.rot90(grid, 3),
        np.fliplr(grid),
        np.flipud(grid),
        grid.T,
        np.fliplr(np.rot90(grid)),
    ][symmetry]


def drawn(seed: int, base: str, number: int) -> tuple[int, list[int]]:
    words = Stream(key_of(seed, "arc", base), number)
    symmetry = words.below(8)
    colours = list(range(1, 10))
    words.shuffle(colours)
    return symmetry, [0, *colours]


def changed(pairs: Sequence[Pair], symmetry: int, colours: Sequence[int]) -> list[Pair]:
    table = np.array(colours, np.uint8)
    return [(turned(table[a], symmetry), turned(table[b], symmetry)) for a, b in pairs]


def hashed(pairs: Sequence[Pair]) -> str:
    def of(grid: np.ndarray) -> str:
        head = b"".join(size.to_bytes(1, "big") for size in grid.shape)
        return hashlib.sha256(head + np.ascontiguousarray(grid).tobytes()).hexdigest()

    return hashlib.sha256(
        "|".join(sorted(f"{of(a)}|{of(b)}" for a, b in pairs)).encode()
    ).hexdigest()


def tokens(grid: np.ndarray, row: int, column: int) -> list[int]:
    height, width = grid.shape
    cells = [[0] * 30 for _ in range(30)]
    for r in range(30):
        for c in range(30):
            inside_rows, inside_columns = row <= r < row + height, column <= c < column + width
            if inside_rows and inside_columns:
                cells[r][c] = int(grid[r - row, c - column]) + 2
            elif (r == row + height and inside_columns) or (c == column + width and inside_rows):
                cells[r][c] = 1
    return [token for line in cells for token in line]


def group(
    seed: int, base: str, pairs: Sequence[Pair], most: int
) -> list[tuple[int, str, list[Pair]]]:
    """Number of the draw, id and pairs of the task and of its augmentations."""
    found = [(0, base, list(pairs))]
    hashes = {hashed(pairs)}
    for number in range(1, 5 * most + 1):
        if len(found) > most:
            break
        symmetry, colours = drawn(seed, base, number)
        made = changed(pairs, symmetry, colours)
        if (text := hashed(made)) not in hashes:
            hashes.add(text)
            found.append((number, f"{base}_t{symmetry}_{''.join(map(str, colours))}", made))
    return found


def built(folders: Sequence[Path], seed: int, most: int) -> dict[str, list]:
    """What a dataset holds: by split the groups, each a list of (id, examples)."""
    files = {}
    for folder in folders:
        for path in folder.glob("*/*.json"):
            task = json.loads(path.read_text())
            files[task.get("name", path.stem)] = path, task
    groups: dict[str, list] = {"train": [], "test": []}
    for base, (path, task) in sorted(files.items()):
        keys = [key for key in task if key != "name"]
        pairs = [
            (np.array(pair["input"], np.uint8), np.array(pair["output"], np.uint8))
            for key in keys
            for pair in task[key]
        ]
        is_test = [
            key == "test" and path.parent.name == "evaluation" for key in keys for _ in task[key]
        ]
        made: dict[str, list] = {"train": [], "test": []}
        for number, name, changed_pairs in group(seed, base, pairs, most):
            for split in ("train", "test"):
                mine = [k for k, test in enumerate(is_test) if test == (split == "test")]
                if mine:
                    chosen = [changed_pairs[k] for k in mine]
                    at = [(0, 0)] * len(mine)
                    if split == "train":
                        words = Stream(key_of(seed, "arc:translation", base), number)
                        fixed = words.below(len(chosen))
                        places = []
                        for at, (a, b) in enumerate(chosen):
                            if at == fixed:
                                places.append((0, 0))
                                continue
                            row = words.below(31 - max(a.shape[0], b.shape[0]))
                            places.append((row, words.below(31 - max(a.shape[1], b.shape[1]))))
                        at = places
                    examples = [
                        (tokens(a, *place), tokens(b, *place), number, k)
                        for (a, b), place, k in zip(chosen, at, mine, strict=True)
                    ]
                    made[split].append((name, examples))
        for split in ("train", "test"):
            if made[split]:
                groups[split].append(made[split])
    return groups
