"""A sample drop of mazes: small, always the same, with shortest paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

SIDE: Final = 10
MAZES: Final = {"train": 24, "test": 8}
"""How many mazes each file has."""
_WALLS: Final = 0.32
_LEAST_STEPS: Final = 8
_SEED: Final = 20


def write_maze_sample(path: Path) -> None:
    """Write `train.csv` and `test.csv` of mazes into the new folder `path`."""
    # Random.random() gives the same numbers on every version of Python; its other methods may not.
    random = Random(_SEED)
    path.mkdir()
    for split, count in MAZES.items():
        lines = ["source,question,answer,rating"]
        while len(lines) <= count:
            question = _question(random)
            way = _shortest_way(question)
            if way is None or len(way) + 1 < _LEAST_STEPS:
                continue
            answer = "".join("o" if k in way else cell for k, cell in enumerate(question))
            lines.append(f"sample,{question},{answer},{len(way) + 1}")
        (path / f"{split}.csv").write_text("\n".join(lines) + "\n")


def _question(random: Random) -> str:
    cells = ["#" if random.random() < _WALLS else " " for _ in range(SIDE * SIDE)]
    start = goal = int(random.random() * SIDE * SIDE)
    while goal == start:
        goal = int(random.random() * SIDE * SIDE)
    cells[start], cells[goal] = "S", "G"
    return "".join(cells)


def _shortest_way(question: str) -> set[int] | None:
    """The cells between start and goal on a shortest way; None where no way leads there."""
    start, goal = question.index("S"), question.index("G")
    before: dict[int, int] = {start: start}
    reached = [start]
    for cell in reached:  # it grows meanwhile
        for after in _neighbours(cell):
            if question[after] != "#" and after not in before:
                before[after] = cell
                reached.append(after)
    if goal not in before:
        return None
    way: set[int] = set()
    cell = before[goal]
    while cell != start:
        way.add(cell)
        cell = before[cell]
    return way


def _neighbours(cell: int) -> Iterator[int]:
    row, column = divmod(cell, SIDE)
    if row:
        yield cell - SIDE
    if column:
        yield cell - 1
    if column < SIDE - 1:
        yield cell + 1
    if row < SIDE - 1:
        yield cell + SIDE
