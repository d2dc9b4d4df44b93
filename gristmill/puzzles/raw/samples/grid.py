"""A sample drop of grids: small, always the same; the answer fills what is reached from a start."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Final

ALPHABET: Final = ".#So"
"""Open, wall, start, filled."""
GRIDS: Final = {"train": 24, "test": 8}
"""How many rows each file has."""
_LEAST, _SIDES = 4, 5
_WALLS: Final = 0.35
_SEED: Final = 21


def write_grid_sample(path: Path) -> None:
    """Write `train.jsonl` and `test.jsonl` of grids into the new folder `path`."""
    # Random.random() gives the same numbers on every version of Python; its other methods may not.
    random = Random(_SEED)
    path.mkdir()
    for split, count in GRIDS.items():
        rows: list[str] = []
        while len(rows) < count:
            given = _question(random)
            filled = _filled(given)
            if sum(line.count("o") for line in filled) >= _LEAST:
                rows.append(json.dumps({"input": given, "output": filled}))
        (path / f"{split}.jsonl").write_text("\n".join(rows) + "\n")


def _question(random: Random) -> list[str]:
    height, width = (_LEAST + int(random.random() * _SIDES) for _ in range(2))
    cells = ["#" if random.random() < _WALLS else "." for _ in range(height * width)]
    cells[int(random.random() * len(cells))] = "S"
    return ["".join(cells[row * width : (row + 1) * width]) for row in range(height)]


def _filled(given: list[str]) -> list[str]:
    cells = [list(line) for line in given]
    reached = [(row, line.index("S")) for row, line in enumerate(given) if "S" in line]
    for row, column in reached:  # it grows meanwhile
        for near, at in (
            (row - 1, column),
            (row + 1, column),
            (row, column - 1),
            (row, column + 1),
        ):
            if 0 <= near < len(cells) and 0 <= at < len(cells[0]) and cells[near][at] == ".":
                cells[near][at] = "o"
                reached.append((near, at))
    return ["".join(line) for line in cells]
