"""A sample drop of Sudokus: rated CSV files of puzzles that are generated here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.domains.source_key import source_key
from gristmill.puzzles.domains.sudoku.board import CELLS, text_of
from gristmill.puzzles.domains.sudoku.solver import solutions_of

_SPLITS: Final = (("train", 0, 48), ("test", 48, 16))
_SOURCE: Final = "gristmill-sample"


def generated_sudoku(number: int) -> tuple[str, str, int]:
    """Returns (question, answer, rating) of a Sudoku with one solution, 24 clues or more.

    number: which one; the same number gives the same Sudoku on any machine.

    The rating is the number of guesses that our solver takes.
    """

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
        if _count(question) > 1:
            question[cell] = answer[cell]
    guesses = int(solutions_of(question.reshape(1, CELLS))[2][0])
    return text_of(question), text_of(answer), guesses


def _count(board: npt.NDArray[np.uint8]) -> int:
    return int(solutions_of(board.reshape(1, CELLS))[1][0])


def write_sudoku_sample(path: Path) -> None:
    """Write a drop of 48 training and 16 test Sudokus into the new folder `path`."""
    path.mkdir(parents=True)
    for split, first, count in _SPLITS:
        lines = ["source,question,answer,rating"]
        for number in range(first, first + count):
            question, answer, rating = generated_sudoku(number)
            lines.append(f"{_SOURCE},{question.replace('0', '.')},{answer},{rating}")
        (path / f"{split}.csv").write_text("\n".join(lines) + "\n")
