"""Puzzles in forms that no drop has, and the form that one has. Source: docs/puzzles.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.puzzles.raw.fitness import fitness
from gristmill.untrusted.files import LinkRule

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
_CELLS, _PAIR, _MOST = 81, 2, 0.95
_DIGITS: Final = {*"123456789"}
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
        if sum(isinstance(v, str) and len(v) == _CELLS and " " not in v for v in values) >= most
    ]


def is_bank(rows: Rows) -> bool:
    """Whether rows are Sudokus with their solutions, which no recipe of texts is to read."""
    return len(_boards(rows)) == _PAIR


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
