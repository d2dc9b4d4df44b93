"""The sample drop: Sudokus with one solution, the same ones on every machine."""

from __future__ import annotations

import csv
from pathlib import Path

from gristmill.hashing import sha256_file
from gristmill.puzzles.raw.samples.sudoku import generated_sudoku, write_sudoku_sample
from tests.puzzles import sudoku


def test_every_puzzle_has_one_solution(tmp_path: Path) -> None:
    write_sudoku_sample(tmp_path / "drop")
    rows = []
    for split in ("train", "test"):
        with (tmp_path / "drop" / f"{split}.csv").open(newline="") as file:
            rows += [*csv.DictReader(file)]
    assert len({row["question"] for row in rows}) == len(rows) == 64
    assert len({row["answer"] for row in rows}) == 64
    assert len({int(row["rating"]) for row in rows}) > 3
    for row in rows[::9]:
        assert sudoku.solutions(row["question"].replace(".", "0")) == [row["answer"]]
    hashes = [sha256_file(tmp_path / "drop" / f"{split}.csv")[:16] for split in ("train", "test")]
    assert hashes == ["0149c00c1803ed39", "939a777dfb264be7"]


def test_a_number_names_a_puzzle() -> None:
    assert generated_sudoku(3) == generated_sudoku(3)
    assert generated_sudoku(3)[0] != generated_sudoku(4)[0]
