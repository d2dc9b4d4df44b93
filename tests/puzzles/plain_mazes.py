"""Mazes in plain Python: shortest ways, findings, symmetries, without arrays or kernels."""

from collections import deque
from collections.abc import Iterator
from math import isqrt
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.paths import REAL_DATA

Cell = tuple[int, int]


def grid(text: str) -> list[str]:
    """The lines of a maze."""
    side = isqrt(len(text))
    return [text[begin : begin + side] for begin in range(0, len(text), side)]


def neighbours(cell: Cell, side: int) -> Iterator[Cell]:
    """The cells that share a side with a cell."""
    row, column = cell
    for place in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
        if min(place) >= 0 and max(place) < side:
            yield place


def distances(open_cells: set[Cell], start: Cell, side: int) -> dict[Cell, int]:
    """Steps from the start to every cell that can be reached."""
    found, queue = {start: 0}, deque([start])
    while queue:
        cell = queue.popleft()
        for after in neighbours(cell, side):
            if after in open_cells and after not in found:
                found[after] = found[cell] + 1
                queue.append(after)
    return found


def broken(question: str, answer: str) -> set[str]:
    """Names of the rules that a maze of characters breaks; `?` is no cell."""
    if set(question + answer) - set("# SGo"):
        return {"token_of_no_cell"}
    found = set()
    if "o" in question:
        found.add("path_in_input")
    if question.count("S") != 1:
        found.add("one_start")
    if question.count("G") != 1:
        found.add("one_goal")
    if any(a != b and (a, b) != (" ", "o") for a, b in zip(question, answer, strict=True)):
        found.add("label_changes_cell")
    if found:
        return found
    side = isqrt(len(question))
    cells = {
        (row, column): (question[row * side + column], answer[row * side + column])
        for row in range(side)
        for column in range(side)
    }
    (start,) = [cell for cell, (character, _) in cells.items() if character == "S"]
    (goal,) = [cell for cell, (character, _) in cells.items() if character == "G"]
    ways = distances({cell for cell, (one, _) in cells.items() if one != "#"}, start, side)
    if goal not in ways:
        return {"goal_not_reachable"}
    path = {cell for cell, (_, one) in cells.items() if one in "SGo"}
    if set(distances(path, start, side)) != path:
        return {"path_not_connected"}
    return {"path_not_shortest"} if len(path) - 1 != ways[goal] else set()


def symmetries(text: str) -> list[str]:
    """A maze after the symmetries 0 to 7, by turning and mirroring its lines."""

    def turned(lines: list[str]) -> list[str]:
        return ["".join(column) for column in zip(*lines, strict=True)][::-1]

    lines = grid(text)
    turns = [lines]
    for _ in range(3):
        turns.append(turned(turns[-1]))
    transposed = ["".join(column) for column in zip(*lines, strict=True)]
    turns += [[line[::-1] for line in lines], lines[::-1], transposed]
    turns.append([line[::-1] for line in turned(lines)])
    return ["".join(each) for each in turns]


def maze(random: Random, side: int) -> tuple[str, str]:
    """A maze with random walls, and its shortest path."""
    while True:
        places = [(row, column) for row in range(side) for column in range(side)]
        cells = {place: "#" if random.random() < 0.3 else " " for place in places}
        start, goal = random.sample(places, 2)
        cells[start], cells[goal] = "S", "G"
        ways = distances({cell for cell in cells if cells[cell] != "#"}, start, side)
        if goal not in ways:
            continue
        question = "".join(cells[place] for place in places)
        cell = goal
        while ways[cell] > 1:
            cell = next(each for each in neighbours(cell, side) if ways.get(each) == ways[cell] - 1)
            cells[cell] = "o"
        return question, "".join(cells[place] for place in places)


BUILT = REAL_DATA / "puzzles" / "maze_hrm_built"
CHARACTERS = "?# SGo"


def write_csv(path: Path, mazes: list[tuple[str, str]]) -> None:
    """Write mazes, question and answer, as a rated CSV file."""
    lines = [f"here,{question},{answer},{answer.count('o')}" for question, answer in mazes]
    path.write_text("\n".join(["source,question,answer,rating", *lines]) + "\n")


def write_drop(folder: Path) -> Path:
    """Write the real mazes into a new folder; skips the test where they are not there."""
    if not BUILT.is_dir():
        pytest.skip(f"no real data at {BUILT} (GRISTMILL_REAL_DATA)")
    folder.mkdir()
    for split in ("train", "test"):
        mazes = [
            ["".join(CHARACTERS[token] for token in row) for row in np.load(path).tolist()]
            for path in (BUILT / split / f"all__{name}.npy" for name in ("inputs", "labels"))
        ]
        write_csv(folder / f"{split}.csv", list(zip(*mazes, strict=True)))
    return folder
