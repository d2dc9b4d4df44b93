"""The parsers of rated CSV files and of Sudoku banks."""

from __future__ import annotations

import csv
import io
import json

from tests.fuzz.parser import TEN_THOUSAND, Parser, file, folder

_HEADER = b"source,question,answer,rating\n"
_QUESTION = b"080020090020050000000001600030000000700000005000000040006900000000070020010040060"
_ANSWER = b"185726394629354817374891652438569271792413568561287943246938175953172486817645239"


def rated_csv(data: bytes) -> None:
    """A rated CSV file: its rows are those of the standard library."""
    from gristmill.puzzles.raw.rated_csv import COLUMN_NAMES, read_rows

    path = file("train.csv", data)
    found, seen = [], []
    for rows in read_rows(path):
        for row in range(len(rows)):
            question, answer = rows.questions[row].tobytes(), rows.answers[row].tobytes()
            rating = "" if rows.rating_text is None else rows.rating_text(row)
            found.append((question, answer, rating))
        assert (rows.lines[1:] > rows.lines[:-1]).all()
        assert rows.questions.shape == rows.answers.shape
        seen.append(rows)
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip().lower() for name in next(lines)]
    question, answer = (
        next(at for at, name in enumerate(header) if name in COLUMN_NAMES[role])
        for role in ("question", "answer")
    )
    expected = [row for row in lines if len(row) == len(header) and "".join(row).strip()]
    assert [row[:2] for row in found] == [
        (row[question].encode("latin-1"), row[answer].encode("latin-1")) for row in expected
    ]
    for rows in seen:
        rows.whole_ratings()


def sudoku_bank(data: bytes) -> None:
    """A bank: what is built of it breaks no law."""
    from gristmill.puzzles.builders.sudoku import build_sudoku
    from gristmill.puzzles.config import SudokuConfig
    from gristmill.puzzles.laws.contract import contract_laws
    from gristmill.puzzles.laws.sudoku import sudoku_laws

    with folder("sudoku") as place:
        file("sudoku/drop/bank.txt", data)
        config = SudokuConfig(num_aug=2, test_share=0.5, unique="drop")
        build_sudoku(place / "drop", place / "out", config)
        assert [*contract_laws(place / "out"), *sudoku_laws(place / "out")] == []


def grids(data: bytes) -> None:
    """Rows of grids: their cells are those that the standard library reads."""
    from gristmill.puzzles.domains.grid import Symbols
    from gristmill.puzzles.raw.grid_rows import cells_of, read_grids

    path = file("grids/train.jsonl", data)
    cells_of(path)
    numbers = Symbols.of(None, 300, None)
    lines = data.decode("utf-8-sig").split("\n")
    for row in read_grids(path, numbers):
        value = json.loads(lines[row.line - 1])
        for name, cells in (("input", row.input), ("output", row.output)):
            assert (cells.astype(int) - 1).tolist() == value[name]


PARSERS = (
    Parser(
        "puzzles_rated_csv",
        rated_csv,
        ("gristmill.puzzles.raw.rated_csv",),
        covers=("gristmill.puzzles.raw.csv_kernel",),
        words=(
            _HEADER,
            b"s,12,34,5\n",
            b"s,#o,# ,0\r\n",
            b'"',
            b'""',
            b",",
            b"\n",
            b"7.2",
            b"\xff",
        ),
    ),
    Parser(
        "puzzles_sudoku_bank",
        sudoku_bank,
        ("gristmill.puzzles.raw.sudoku_bank",),
        inputs=TEN_THOUSAND,
        words=(_QUESTION + b"\n", _QUESTION + b" " + _ANSWER, b"\n", b" 1.2\n", b"id ", b"."),
    ),
    Parser(
        "puzzles_grids",
        grids,
        ("gristmill.puzzles.raw.grid_rows",),
        words=(b'{"input":[[', b'"output":[[', b"]]}\n", b'"group":"a"', b'"set":"x"', b"[1,2]"),
    ),
)
