"""How many rows of tables, banks and files of grids are puzzles, and what is wrong with the others.

A person learns it before a build, which takes all rows or none. The first MiB of a file is read,
of 200 files at most.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, GristmillError
from gristmill.puzzles.domains.grid import CELLS, CHARSET, MAZE, SUDOKU, digits, side_of
from gristmill.puzzles.raw.file_forms import BYTE_ORDER_MARK, is_table
from gristmill.puzzles.raw.grid_rows import each_grid, is_grid_file
from gristmill.puzzles.raw.tables import COLUMN_NAMES, Held, columns_of, each_row, is_sudoku_file
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.walk import list_files

GRID: Final = "grid"
_ENOUGH: Final = 0.95
_HEAD: Final = 1 << 20
_MOST_FILES: Final = 200
"""Files that are looked at, evenly spaced."""
_ROWS: Final = 1000
"""Rows by which columns and the sign of a blank are guessed."""
_DIGITS: Final = frozenset("123456789")
_BLANKS: Final = frozenset("0.")


@dataclass(frozen=True)
class Fitness:
    """How rows fit a kind of puzzle.

    kind: `sudoku`, `maze` or `grid`. rows: that were looked at. fit: that are such puzzles.
    first: what is wrong with the first other one, with file, row and rule; None where all fit.
    settings: what a recipe must say so that they are read: names of columns, the sign of a blank.
    """

    kind: str
    rows: int = 0
    fit: int = 0
    first: BadInput | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wins(self) -> bool:
        """Whether the rows are puzzles of this kind, though some may be bad: 95 % fit."""
        return 0 < self.fit >= _ENOUGH * self.rows

    @property
    def line(self) -> str:
        """What is wrong with the others, in one line; empty where all fit."""
        if self.first is None:
            return ""
        bad = self.rows - self.fit
        return (
            f"{bad:,} of {self.rows:,} rows looked at {'is' if bad == 1 else 'are'} not as a "
            f"{self.kind} must be, and a build refuses {'it' if bad == 1 else 'them'}: "
            f"{Path(self.first.file).name}:{self.first.row}: {self.first.rule}"
        )

    def __add__(self, other: Fitness) -> Fitness:
        """The same of the rows of both; what is wrong first, and settings, are of this one."""
        return Fitness(
            self.kind,
            self.rows + other.rows,
            self.fit + other.fit,
            self.first or other.first,
            {**other.settings, **self.settings},
        )


def fitness(
    drop: Path,
    links: LinkRule = REFUSE_LINKS,
    *,
    files: Collection[Path] | None = None,
    kind: str = "",
    settings: Mapping[str, Any] | None = None,
) -> Fitness | None:
    """How the rows of a drop fit the kind of puzzle that most of them are.

    drop: a folder, whose own files are looked at, or a file.
    settings: of that recipe; default None: they are guessed by the values of the columns.

    Returns None for other rows, where no kind is given. Raises OSError and BadInput where a file
    cannot be opened.
    """
    found: dict[str, Fitness] = {}
    every = [*(_files(drop, links) if files is None else files)]
    for file in every[:: -(-len(every) // _MOST_FILES) or 1]:
        for each in _of_file(file, links, kind, settings):
            found[each.kind] = found[each.kind] + each if each.kind in found else each
    best = max(found.values(), key=lambda each: each.fit, default=None)
    return best if best is not None and (best.fit or kind) else None


def _files(drop: Path, links: LinkRule) -> Iterator[Path]:
    if not drop.is_dir():
        yield drop
        return
    for entry in list_files(drop, root=drop, links=links, deep=False):
        if entry.refusal is None and entry.stat.st_mode:
            yield drop / entry.name


def _of_file(
    file: Path, links: LinkRule, kind: str, settings: Mapping[str, Any] | None
) -> Iterator[Fitness]:
    """How a file fits each kind that its name may be of."""
    is_grid = is_grid_file(file.name)
    if not is_grid and not is_sudoku_file(file.name):
        return
    with open_file(file, root=file.parent, links=links, buffering=0) as opened:
        head = opened.read(_HEAD)
        head = head[: head.rfind(b"\n") + 1] if opened.read(1) else head
    head = head.removeprefix(BYTE_ORDER_MARK)
    if is_grid:
        if kind in ("", GRID):
            yield _counted(GRID, each_grid(file, head))
        return
    given = _guessed(file, head) if settings is None else settings
    columns = columns_of(given.get("question_column"), given.get("answer_column"))
    for each in (SUDOKU, *([MAZE] if is_table(file.name) else [])):
        if kind not in ("", each):
            continue
        try:
            rows = list(each_row(file, head, columns, CELLS if each == SUDOKU else None))
        except BadInput as error:  # of the header
            yield Fitness(each, first=error)
            continue
        judged = _sudokus(rows, file, given) if each == SUDOKU else _mazes(rows, file)
        made = _counted(each, judged)
        yield made if settings is not None or each == MAZE else replace(made, settings=given)


def _counted(kind: str, rows: Iterable[object]) -> Fitness:
    every = list(rows)
    wrong = [row for row in every if isinstance(row, BadInput)]
    return Fitness(kind, len(every), len(every) - len(wrong), wrong[0] if wrong else None)


def _sudokus(
    rows: Sequence[Held | BadInput], file: Path, given: Mapping[str, Any]
) -> Iterator[Held | BadInput]:
    """Yield rows, or what is wrong with them, by the rules of a build."""
    if not rows or given.get("min_difficulty") is not None:  # a build looks at some rows alone
        yield from rows
        return
    held = [row for row in rows if not isinstance(row, BadInput)]
    texts = (b"".join(row[1] for row in held), b"".join(row[2] for row in held))
    question, answer = (
        digits(np.frombuffer(text, np.uint8), given.get("blank")).reshape(-1, CELLS)
        for text in texts
    )
    no_digit = (question > 9).any(axis=1) | (answer > 9).any(axis=1)
    boards = answer.reshape(-1, 9, 9)
    boxes = answer.reshape(-1, 3, 3, 3, 3).swapaxes(2, 3).reshape(-1, 9, 9)
    units = np.concatenate([boards, boards.swapaxes(1, 2), boxes], axis=1)
    unsolved = (np.sort(units, axis=2) != np.arange(1, 10)).any(axis=(1, 2))
    unsolved |= ((question > 0) & (question != answer)).any(axis=1)
    if not is_table(file.name):  # a bank may have no solutions
        unsolved &= answer.any(axis=1)
    rules = np.where(no_digit, 1, np.where(unsolved, 2, 0)).tolist()
    for row in rows:
        if isinstance(row, BadInput) or not (rule := rules.pop(0)):
            yield row
        else:
            yield BadInput(file, _RULES[rule], row[0])


_RULES: Final = (
    "",
    "has a cell that is no digit: correct the row, or name the sign of blank cells by `blank` below"
    " [settings]",
    "the answer is no solution of the question: correct the row, or take it out",
)


def _mazes(rows: Iterable[Held | BadInput], file: Path) -> Iterator[Held | BadInput]:
    """Yield rows, or what is wrong with them; whether paths are shortest is not looked at."""
    known = frozenset(CHARSET.encode())
    for row in rows:
        if isinstance(row, BadInput):
            yield row
        elif side_of(len(row[1])) is None:
            yield BadInput(file, f"a maze of {len(row[1])} cells is not square", row[0])
        elif not known.issuperset(row[1] + row[2]):
            yield BadInput(file, f"a cell is one of {CHARSET!r} alone", row[0])
        else:
            yield row


def _guessed(file: Path, head: bytes) -> dict[str, str]:
    """The settings of a recipe of Sudokus that columns and signs of a table ask for."""
    lines = head.decode("latin-1").splitlines()
    if not is_table(file.name):
        return _signs(word for line in lines[:_ROWS] for word in line.split())
    try:
        rows = list(islice(csv.DictReader(lines), _ROWS))
    except csv.Error:
        return {}
    found: dict[str, str] = {}
    solved: dict[str, bool] = {}
    for name in (name for name in rows[0] if name) if rows else ():
        cells = [cell for row in rows if isinstance(cell := row[name], str)]
        boards = [cell for cell in cells if len(cell) == CELLS]
        if len(boards) >= _ENOUGH * len(rows):
            whole = sum(_DIGITS.issuperset(board) for board in boards)
            solved.setdefault(name, whole >= _ENOUGH * len(boards))
    for role, is_solved in (("question", False), ("answer", True)):
        names = [name for name, is_whole in solved.items() if is_whole is is_solved]
        if len(names) == 1 and names[0].strip().lower() not in COLUMN_NAMES[role]:
            found[f"{role}_column"] = names[0].strip()
    asked = [name for name, is_whole in solved.items() if not is_whole]
    return found | _signs(str(row[name]) for row in rows for name in asked)


def _signs(boards: Iterable[str]) -> dict[str, str]:
    """The sign of a blank cell, where it is neither 0 nor a point."""
    signs = {sign for board in boards if len(board) == CELLS for sign in board} - _DIGITS
    return {"blank": min(signs)} if len(signs) == 1 and signs.isdisjoint(_BLANKS) else {}


FLAT: Final = (
    "tasks of ARC in the folder itself: `puzzles` reads them in a folder of it: move them, as to "
    "training/TASK.json"
)
"""What to do with tasks of ARC that are in no folder of their own."""
_BANK: Final = (
    "Sudokus of 81 cells: `puzzles` reads CSV files, not packed and with commas, whose first "
    "line names one column of questions (question, quizzes, puzzle) and one of answers "
    "(answer, solution, solutions)"
)
_MOST: Final = 0.95
Rows = Sequence[Mapping[str, Any]]


def puzzle_hints(file: Path, rows: Rows, links: LinkRule) -> Iterator[str]:
    """Yield what rows are that hold puzzles. file: the first that they are of."""
    if is_bank(rows):
        yield _BANK + _no_bank(file, rows, links)
    grids = [row.get(name) for row in rows for name in ("input", "output")]
    if grids and all(map(_is_grid, grids)):
        yield (
            "grids as lists: `puzzles` reads *.jsonl, whose rows have input, output, group, puzzle "
            "and set alone"
        )


def _is_grid(value: Any) -> bool:
    """Whether a value may be a grid: an object, or a list that has no objects, as messages are."""
    if isinstance(value, list):
        return bool(value) and not any(isinstance(each, dict | str) for each in value)
    return isinstance(value, dict)


def _boards(rows: Rows) -> list[str]:
    """The columns that are boards of 81 cells in nearly all rows."""
    found = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else ())}
    most = _MOST * len(rows)
    return [
        name
        for name, values in found.items()
        if sum(isinstance(v, str) and len(v) == CELLS and " " not in v for v in values) >= most
    ]


def is_bank(rows: Rows) -> bool:
    """Whether rows are Sudokus with their solutions, which no recipe of texts is to read."""
    return len(_boards(rows)) == 2


def _no_bank(file: Path, rows: Rows, links: LinkRule) -> str:
    """What is wrong with a table of Sudokus, or what makes one of JSON lines; else empty."""
    with suppress(GristmillError, OSError):
        judged = fitness(file, links, kind="sudoku")
        if judged is not None and judged.first is not None:
            return f": {judged.line if judged.rows else judged.first.rule}"
    boards = sorted(_boards(rows), key=lambda name: {*rows[0][name]} <= _DIGITS)
    keys = ", ".join(f".{json.dumps(name)}" for name in boards)
    lines = f"(echo question,answer; jq -r '[{keys}] | @csv' {quote(file.name)}) > sudoku.csv"
    return f": `{lines}` makes one" if file.name.endswith((".jsonl", ".ndjson")) else ""
