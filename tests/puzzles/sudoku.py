"""Sudokus for tests, and the rules of the family by plain Python: the oracle of the fast code."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gristmill.puzzles.domains.sudoku_symmetry import Symmetry
from gristmill.puzzles.raw.samples import generated_sudoku
from tests.puzzles.plain_draws import Stream, key_of

HEADER = "source,question,answer,rating\n"


def pairs(first: int, count: int) -> list[tuple[str, str]]:
    """Questions and answers of generated Sudokus, all different and no twins."""
    return [generated_sudoku(number)[:2] for number in range(first, first + count)]


def write_csv(path: Path, rows: Sequence[tuple[str, str]], ratings: Sequence[object] = ()) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [
        f"s,{question},{answer},{ratings[k] if ratings else 0}\n"
        for k, (question, answer) in enumerate(rows)
    ]
    path.write_text(HEADER + "".join(texts))


def write_drop(
    folder: Path, train: Sequence[tuple[str, str]], test: Sequence[tuple[str, str]]
) -> Path:
    write_csv(folder / "train.csv", train)
    write_csv(folder / "test.csv", test)
    return folder


def board_of(text: str) -> np.ndarray:
    """A board, uint8 [81], from its digits and dots."""
    return np.array([int(cell) if cell != "." else 0 for cell in text], np.uint8)


def applied(change: Symmetry, board: np.ndarray) -> np.ndarray:
    """A board after a symmetry, uint8 [81]."""
    grid = board.reshape(9, 9)
    grid = grid.T if change.transposes else grid
    moved = grid[np.ix_(change.rows, change.columns)]
    return np.array(change.digits, np.uint8)[moved].reshape(81)


class _Stream(Stream):
    def __init__(self, seed: int, question: str, number: int) -> None:
        super().__init__(key_of(seed, "sudoku", question), number)

    def shuffled(self, items: Sequence[int]) -> list[int]:
        order = list(items)
        self.shuffle(order)
        return order

    def lines(self) -> list[int]:
        order = []
        for band in self.shuffled([0, 1, 2]):
            order += [3 * band + line for line in self.shuffled([0, 1, 2])]
        return order


def augmented(seed: int, question: str, boards: Sequence[str], number: int) -> list[str]:
    """Boards of a source after a draw, as the format page has them."""
    stream = _Stream(seed, question, number)
    digits = [0, *stream.shuffled(range(1, 10))]
    transposes = stream.below(2) == 1
    rows, columns = stream.lines(), stream.lines()
    changed = []
    for board in boards:
        grid = [[int(board[9 * i + j]) for j in range(9)] for i in range(9)]
        if transposes:
            grid = [[grid[j][i] for j in range(9)] for i in range(9)]
        changed.append("".join(str(digits[grid[i][j]]) for i in rows for j in columns))
    return changed


def findings(given: Sequence[int], label: Sequence[int]) -> set[str]:
    """What is wrong with an example, as the format page has it, without numpy."""
    wrong = set()
    if any(not 1 <= token <= 10 for token in given):
        wrong.add("input_out_of_vocab")
    if any(not 1 <= token <= 10 for token in label):
        wrong.add("label_out_of_vocab")
    if any(a > 1 and a != b for a, b in zip(given, label, strict=True)):
        wrong.add("clue_mismatch")
    if any(not 2 <= token <= 10 for token in label):
        wrong.add("label_digit_out_of_range")
    for cell in range(81):
        for other in range(cell + 1, 81):
            if label[cell] != label[other] or label[cell] < 2:
                continue
            (i, j), (k, m) = divmod(cell, 9), divmod(other, 9)
            wrong |= {f"row_dup_{i}"} if i == k else set()
            wrong |= {f"col_dup_{j}"} if j == m else set()
            if (i // 3, j // 3) == (k // 3, m // 3):
                wrong.add(f"box_dup_{i // 3}_{j // 3}")
    return wrong


_SEEN = [
    [
        other
        for other in range(81)
        if other // 9 == cell // 9
        or other % 9 == cell % 9
        or (other // 27, other % 9 // 3) == (cell // 27, cell % 9 // 3)
    ]
    for cell in range(81)
]
"""The cells of the row, the column and the box of each cell."""


def solutions(board: str, most: int = 2) -> list[str]:
    """Solutions of a board by trying digits in the cell with the fewest candidates."""
    fewest: tuple[int, list[str]] | None = None
    for cell in (k for k in range(81) if board[k] == "0"):
        seen = {board[other] for other in _SEEN[cell]}
        free = [digit for digit in "123456789" if digit not in seen]
        if fewest is None or len(free) < len(fewest[1]):
            fewest = cell, free
    if fewest is None:
        return [board]
    found: list[str] = []
    cell, free = fewest
    for digit in free:
        found += solutions(board[:cell] + digit + board[cell + 1 :], most - len(found))
        if len(found) >= most:
            break
    return found


def tokens(boards: Sequence[str]) -> np.ndarray:
    """Boards as tokens, int32 [boards, 81]."""
    return np.array([[int(cell) + 1 for cell in board] for board in boards], np.int32)
