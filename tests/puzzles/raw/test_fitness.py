"""How many rows are puzzles, what is wrong with the others, and what a recipe must say."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builds import drop_account
from gristmill.puzzles.raw.drops import account, proposal
from gristmill.puzzles.raw.fitness import Fitness, fitness
from gristmill.puzzles.raw.recipes import Recipe

SOLVED = "".join(str((3 * (y % 3) + y // 3 + x) % 9 + 1) for y in range(9) for x in range(9))
ROWS = [f"{'0' * i + SOLVED[i:]},{SOLVED}" for i in range(1, 41)]
MAZE = "#SoG## ##"
GRID = '{"input": [[1, 2], [3, 4]], "output": [[1]]}'


def put(folder: Path, rows: Sequence[str], name: str = "own.csv", head: str = "puzzle,solution"):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*([head] if name.endswith(".csv") else []), *rows]
    (folder / name).write_text("".join(line + "\n" for line in lines))
    return folder


BANK = [row.partition(",")[0] for row in ROWS]


@pytest.mark.parametrize(
    ("name", "rows", "kind", "wrong"),
    [
        ("own.csv", ROWS, "sudoku", ""),
        ("own.csv", [ROWS[0][1:], *ROWS], "sudoku", "own.csv:2: the question has 80 characters"),
        ("own.csv", [*ROWS, ROWS[0][:-1] + "1"], "sudoku", "own.csv:42: the answer is no solution"),
        ("own.csv", [*ROWS, f"x{ROWS[0][1:]}"], "sudoku", "own.csv:42: has a cell that is no"),
        ("own.csv", [*ROWS, f"2{ROWS[0][1:]}"], "sudoku", "own.csv:42: the answer is no solution"),
        ("own.csv", [*ROWS, f"{ROWS[0]},3"], "sudoku", "own.csv:42: has 3 columns, must have 2"),
        ("bank.txt", [*BANK, "2" * 80], "sudoku", "bank.txt:41: has words of 80 characters"),
        ("bank.txt", ["# of mine", *BANK], "sudoku", ""),
        ("own.csv", [f"{MAZE},{MAZE}"] * 30, "maze", ""),
        ("own.csv", [*[f"{MAZE},{MAZE}"] * 30, f"{MAZE},{'?' * 9}"], "maze", "own.csv:32: a cell"),
        ("own.jsonl", [GRID] * 30, "grid", ""),
        ("own.jsonl", [*[GRID] * 30, GRID.replace("3, 4", "3")], "grid", "jsonl:31: input, row"),
        ("own.jsonl", [*[GRID] * 30, GRID[:-1]], "grid", "own.jsonl:31: "),
    ],
)  # fmt: skip
def test_a_bank_with_a_bad_row_is_a_bank_and_says_which(tmp_path, name, rows, kind, wrong):
    drop = put(tmp_path / "own", rows, name)
    if kind == "maze":
        put(drop, rows, "train.csv"), put(drop, rows, "test.csv"), (drop / name).unlink()
        wrong = wrong.replace("own.csv", "test.csv")
    found = fitness(drop)
    assert found is not None and found.kind == kind and found.wins
    assert (found.rows - found.fit > 0) == bool(wrong)
    assert wrong in found.line
    named = [note for note in account(drop, recipes=()).notes if note == found.line]
    assert named == ([found.line] if wrong else [])
    assert proposal(drop).startswith(f'kind = "{kind}"\n')


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("own.csv", ["a,b"] * 40),
        ("notes.txt", ["words of a text"] * 40),
        ("own.jsonl", ['{"question": "2 + 2", "answer": "4"}'] * 40),
        ("own.parquet", ROWS),
        ("own.csv", []),
    ],
)
def test_other_rows_are_no_puzzles(tmp_path, name, rows):
    assert fitness(put(tmp_path, rows, name)) is None
    assert fitness(tmp_path / name) is None


def test_below_95_percent_the_rows_are_not_of_the_kind(tmp_path):
    put(tmp_path, [*ROWS[:19], "1,2"])
    assert fitness(tmp_path).wins
    put(tmp_path, [*ROWS[:18], "1,2"])
    assert not fitness(tmp_path).wins
    assert not Fitness("sudoku").wins
    bank = put(tmp_path / "bank", [*BANK[:18], "1"], "bank.txt")
    with pytest.raises(BadInput, match=r"bank\.txt:19: has words of 1 characters"):
        account(bank, recipes=())


@pytest.mark.parametrize(
    ("head", "sign", "settings"),
    [
        ("quizzes,solutions", ".", ""),
        ("clues,solution", "0", 'question_column = "clues"\n'),
        ("clues,filled", "_", 'question_column = "clues"\nanswer_column = "filled"\nblank = "_"\n'),
        ("puzzle,solution", "*", 'blank = "*"\n'),
    ],
)
def test_a_recipe_names_the_columns_and_the_blank_of_a_table(tmp_path, head, sign, settings):
    drop = put(
        tmp_path / "own", [row.replace("0", sign) for row in [ROWS[0][1:], *ROWS]], head=head
    )
    made = 'kind = "sudoku"\nsources = ["own"]\n'
    assert proposal(drop) == made + (f"[settings]\n{settings}" if settings else "")
    assert account(drop, recipes=()).taken == {"": ["own.csv"]}


def test_a_recipe_says_how_its_rows_are_read(tmp_path):
    drop = put(tmp_path / "drops/puzzles/own", [row.replace("0", "_") for row in ROWS])
    for settings, wrong in (
        ({"blank": "_"}, 0),
        ({}, 40),
        ({"min_difficulty": 3}, 0),  # a build looks at none of these
    ):
        found = fitness(drop, kind="sudoku", settings=settings)
        assert found.rows - found.fit == wrong
        recipe = Recipe("mine", "sudoku", ("own",), settings)
        assert len(account(drop, recipes=[recipe]).notes) == bool(wrong)
    assert drop_account(drop).notes == []


def test_the_first_mebibyte_of_a_file_is_looked_at(tmp_path):
    rows = [*ROWS * 170, "1,2"]
    found = fitness(put(tmp_path, rows))
    assert found.rows == found.fit == ((1 << 20) - 16) // len(ROWS[0] + "\n")
