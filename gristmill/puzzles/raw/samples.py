"""Sample drops: small puzzles of every kind, always the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from gristmill.puzzles.domains.grid import CELLS, text_of
from gristmill.puzzles.domains.randomness import source_key

_Grid = list[list[int]]
_Rule = Callable[[_Grid], _Grid]


def write_arc_sample(path: Path) -> None:
    """Write the sample drop into a new folder: a source with `training` and `evaluation`."""
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


_SPLITS: Final = (("train", 0, 48), ("test", 48, 16))
_SOURCE: Final = "gristmill-sample"


def generated_sudoku(number: int) -> tuple[str, str, int]:
    """Returns question, answer and guesses of a Sudoku with one solution, drawn by its number."""
    from gristmill.puzzles.domains.sudoku_checks import solutions_of

    def drawn(count: int, what: str) -> list[int]:
        keys = [source_key(number, f"{_SOURCE}:{what}", str(k)) for k in range(count)]
        return sorted(range(count), key=keys.__getitem__)

    grid = np.zeros((9, 9), np.uint8)
    for box in range(3):
        digits = np.array(drawn(9, f"box {box}"), np.uint8).reshape(3, 3) + 1
        grid[3 * box : 3 * box + 3, 3 * box : 3 * box + 3] = digits
    answer = solutions_of(grid.reshape(1, CELLS), 1)[0][0]
    question = answer.copy()
    most_removed = CELLS - 24 - number % 8
    for cell in drawn(CELLS, "cells"):
        if np.count_nonzero(question == 0) == most_removed:
            break
        question[cell] = 0
        if int(solutions_of(question.reshape(1, CELLS))[1][0]) > 1:
            question[cell] = answer[cell]
    guesses = int(solutions_of(question.reshape(1, CELLS))[2][0])
    return text_of(question), text_of(answer), guesses


def write_sudoku_sample(path: Path) -> None:
    """Write a drop of 48 training and 16 test Sudokus into the new folder `path`."""
    path.mkdir(parents=True)
    for split, first, count in _SPLITS:
        lines = ["source,question,answer,rating"]
        for number in range(first, first + count):
            question, answer, rating = generated_sudoku(number)
            lines.append(f"{_SOURCE},{question.replace('0', '.')},{answer},{rating}")
        (path / f"{split}.csv").write_text("\n".join(lines) + "\n")


SIDE: Final = 10
MAZES: Final = {"train": 24, "test": 8}
"""How many mazes each file has."""
_MAZE_WALLS: Final = 0.32
_LEAST_STEPS: Final = 8
_MAZE_SEED: Final = 20


def write_maze_sample(path: Path) -> None:
    """Write `train.csv` and `test.csv` of mazes into the new folder `path`."""
    # Random.random() gives the same numbers on every version of Python; its other methods may not.
    random = Random(_MAZE_SEED)
    path.mkdir()
    for split, count in MAZES.items():
        lines = ["source,question,answer,rating"]
        while len(lines) <= count:
            question = _maze_question(random)
            way = _shortest_way(question)
            if way is None or len(way) + 1 < _LEAST_STEPS:
                continue
            answer = "".join("o" if k in way else cell for k, cell in enumerate(question))
            lines.append(f"sample,{question},{answer},{len(way) + 1}")
        (path / f"{split}.csv").write_text("\n".join(lines) + "\n")


def _maze_question(random: Random) -> str:
    cells = ["#" if random.random() < _MAZE_WALLS else " " for _ in range(SIDE * SIDE)]
    start = goal = int(random.random() * SIDE * SIDE)
    while goal == start:
        goal = int(random.random() * SIDE * SIDE)
    cells[start], cells[goal] = "S", "G"
    return "".join(cells)


def _shortest_way(question: str) -> set[int] | None:
    """The cells between start and goal on a shortest way; None where no way leads there."""
    start, goal = question.index("S"), question.index("G")
    before = _reached(question, start, SIDE)
    if goal not in before:
        return None
    way: set[int] = set()
    cell = before[goal]
    while cell != start:
        way.add(cell)
        cell = before[cell]
    return way


def _reached(cells: str, start: int, width: int) -> dict[int, int]:
    """Each cell that is reached around walls, and the one before it on a shortest way."""
    before = {start: start}
    reached = [start]
    for cell in reached:  # it grows meanwhile
        column = cell % width
        beside = [cell - 1] * (column > 0) + [cell + 1] * (column < width - 1)
        for after in (cell - width, *beside, cell + width):
            if 0 <= after < len(cells) and cells[after] != "#" and after not in before:
                before[after] = cell
                reached.append(after)
    return before


ALPHABET: Final = ".#So"
"""Open, wall, start, filled."""
GRIDS: Final = {"train": 24, "test": 8}
"""How many rows each file has."""
_LEAST_SIDE, _SIDES = 4, 5
_GRID_WALLS: Final = 0.35
_GRID_SEED: Final = 21


def write_grid_sample(path: Path) -> None:
    """Write `train.jsonl` and `test.jsonl` of grids into the new folder `path`."""
    # Random.random() gives the same numbers on every version of Python; its other methods may not.
    random = Random(_GRID_SEED)
    path.mkdir()
    for split, count in GRIDS.items():
        rows: list[str] = []
        while len(rows) < count:
            height, width = (_LEAST_SIDE + int(random.random() * _SIDES) for _ in range(2))
            cells = ["#" if random.random() < _GRID_WALLS else "." for _ in range(height * width)]
            cells[int(random.random() * len(cells))] = "S"
            given = ["".join(cells[row * width : (row + 1) * width]) for row in range(height)]
            filled = _filled(given)
            if sum(line.count("o") for line in filled) >= _LEAST_SIDE:
                rows.append(json.dumps({"input": given, "output": filled}))
        (path / f"{split}.jsonl").write_text("\n".join(rows) + "\n")


def _filled(given: list[str]) -> list[str]:
    width, cells = len(given[0]), "".join(given)
    reached = _reached(cells, cells.index("S"), width)
    filled = ["o" if k in reached and cell == "." else cell for k, cell in enumerate(cells)]
    return ["".join(filled[k : k + width]) for k in range(0, len(cells), width)]


def write_domino_sample(path: Path) -> None:
    """Write the recipe of the sample; path: of the file, which must not exist."""
    path.write_text('kind = "domino"\n\n[settings]\nnum_games = 200\nnum_aug = 2\n')
