"""The sample drop of ARC: tasks of our own, each with a rule that its pairs show.

Source: `docs/formats/puzzles.md#arc`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

_Grid = list[list[int]]
_Rule = Callable[[_Grid], _Grid]


def write_arc_sample(path: Path) -> None:
    """Write the sample drop into a new folder: a source with `training` and `evaluation`.

    path: the folder, which must not exist. The same bytes are written every time.
    """
    path.mkdir(parents=True)
    for number, (name, (rule, most, pairs, tests)) in enumerate(_TASKS.items()):
        file = path / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(_task(file.stem, rule, most, pairs, tests, Random(number))))
    (path / "training" / "fill.json").write_text(json.dumps(_FILL))


def _task(
    name: str, rule: _Rule, most: int, pairs: int, tests: int, random: Random
) -> dict[str, Any]:
    made = [_pair(rule, most, random) for _ in range(pairs + tests)]
    lists: dict[str, Any] = {"train": made[:pairs], "test": made[pairs:]}
    if name == "gravity":
        return {"test": lists["test"], "train": lists["train"]}
    return {**lists, "name": name} if name == "mirror" else lists


def _pair(rule: _Rule, most: int, random: Random) -> dict[str, _Grid]:
    height, width = random.randint(2, most), random.randint(2, most)
    colours = random.sample(range(1, 10), 3)
    grid = [
        [random.choice(colours) if random.random() < 0.4 else 0 for _ in range(width)]
        for _ in range(height)
    ]
    # So that no grid is empty, and no two pairs are equal up to their colours by chance.
    grid[random.randrange(height)][random.randrange(width)] = colours[0]
    return {"input": grid, "output": rule(grid)}


def _mirrored(grid: _Grid) -> _Grid:
    return [row[::-1] for row in grid]


def _transposed(grid: _Grid) -> _Grid:
    return [list(column) for column in zip(*grid, strict=True)]


def _fallen(grid: _Grid) -> _Grid:
    """Every cell with a colour falls to the bottom of its column."""
    columns = [
        [0] * column.count(0) + [cell for cell in column if cell]
        for column in map(list, zip(*grid, strict=True))
    ]
    return _transposed(columns)


def _doubled(grid: _Grid) -> _Grid:
    return [[cell for cell in row for _ in range(2)] for row in grid for _ in range(2)]


def _framed(grid: _Grid) -> _Grid:
    line = [5] * (len(grid[0]) + 2)
    return [line, *[[5, *row, 5] for row in grid], line]


def _counted(grid: _Grid) -> _Grid:
    """One row, with a cell for each cell of the input that has a colour."""
    return [[1] * min(30, sum(cell > 0 for row in grid for cell in row))]


def _kept(grid: _Grid) -> _Grid:
    """The colour that occurs most is kept; of several the smallest one."""
    cells = [cell for row in grid for cell in row if cell]
    most = min(set(cells), key=lambda cell: (-cells.count(cell), cell))
    return [[cell if cell == most else 0 for cell in row] for row in grid]


_FILL: Final = {
    "train": [
        {"input": [[4, 0], [4, 4]], "output": [[4, 4], [4, 4]]},
        {"input": [[4, 4, 4], [4, 0, 0]], "output": [[4, 4, 4], [4, 4, 4]]},
    ],
    "test": [{"input": [[0], [4]], "output": [[4], [4]]}],
}
"""A task of one colour: few of its augmentations differ."""
_TASKS: Final[dict[str, tuple[_Rule, int, int, int]]] = {
    "training/mirror": (_mirrored, 8, 3, 1),
    "training/gravity": (_fallen, 9, 3, 2),
    "training/double": (_doubled, 15, 4, 1),
    "training/count": (_counted, 7, 3, 1),
    "evaluation/frame": (_framed, 28, 3, 1),
    "evaluation/transpose": (_transposed, 12, 2, 2),
    "evaluation/keep": (_kept, 10, 4, 1),
}
"""By path: the rule, the longest side of an input, pairs of `train`, pairs of `test`."""
