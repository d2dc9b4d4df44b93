"""How many rows of tables, banks and files of grids are puzzles, and what is wrong with the others.

A person learns it before a build, which takes all rows or none. The first MiB of a file is read,
of 200 files at most.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations
from pathlib import Path
from shlex import quote
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.trial import said_by
from gristmill.puzzles.domains.grid import CELLS, CHARSET, MAZE, SUDOKU, digits, side_of
from gristmill.puzzles.raw.arc_tasks import task_form
from gristmill.puzzles.raw.file_forms import BYTE_ORDER_MARK, is_table
from gristmill.puzzles.raw.grid_rows import each_grid, is_grid_file
from gristmill.puzzles.raw.tables import (
    COLUMN_NAMES,
    Held,
    columns_of,
    each_row,
    is_sudoku_file,
    rows_in,
)
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.npy_header import read_header
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
    """How many rows fit a kind, what is wrong with the first other one, and the settings."""

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
    """How the rows of a drop or a file fit the kind that most are, by settings or a guess."""
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
    if not is_table(file.name):
        lines = head.decode("latin-1").splitlines()
        return _signs(word for line in lines[:_ROWS] for word in line.split())
    rows = rows_in(head)
    found: dict[str, str] = {}
    solved: dict[str, bool] = {}
    for name in (name for name in rows[0] if name and len(name) != CELLS) if rows else ():
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
Rows = Sequence[Mapping[str, Any]]
_MOSTLY: Final = 0.8
"""Share of the lines of a text that are rows of grids."""
_LEAST, _SIGNS, _LONGEST = 16, 24, 1 << 16
"""Cells of a puzzle in one line at least; most signs of a grid in lines of text, and characters."""
_CELLS: Final = {
    "lists": "{}",
    "floats": "[[int(c) for c in row] for row in {}]",
    "json": "json.loads({})",
    "numbers": "[[int(c) for c in line.split()] for line in {}.splitlines()]",
    "lines": "{}.splitlines()",
    "line": "[{0}[at:at + {1}] for at in range(0, {2}, {1})]",
}
"""What makes rows of cells of a value in Python, by the form of the value."""
_OPENED: Final = {
    ".csv": "csv.DictReader(open({}), {}, delimiter={})",
    ".tsv": "csv.DictReader(open({}), {}, delimiter={})",
    ".jsonl": "map(json.loads, open({}))",
    ".ndjson": "map(json.loads, open({}))",
    ".json": "json.load(open({}))",
    ".parquet": "pyarrow.parquet.read_table({}).to_pylist()",
}
"""What reads the rows of a file in Python, by its ending."""


@dataclass(frozen=True)
class Boards:
    """The two columns that are puzzles, none where each cell has one, and their form."""

    columns: tuple[str, ...]
    form: str
    cells: int = 0
    is_sudoku: bool = False

    def line(self, file: Path, head: str) -> str:
        """The command that writes rows for `puzzles`, by the first line; empty if packed."""
        opened = _OPENED.get(file.suffix.lower())
        if opened is None:
            return ""
        marks = [mark for mark in ",;\t|" if mark in head] if "DictReader" in opened else []
        fields = {mark: {*next(csv.reader([head], delimiter=mark))} for mark in marks}
        is_named = [mark for mark in marks if {*self.columns} <= fields[mark]]
        names = None if is_named else list(self.columns)
        pair = [f"r[{json.dumps(name)}]" for name in self.columns]
        joined = '"".join(map(str, [*r.values()][{}:{}]))'
        pair = pair or [joined.format(at, at + self.cells) for at in (0, self.cells)]
        side = side_of(self.cells)
        one, other = (_CELLS[self.form].format(each, side, self.cells) for each in pair)
        said = f'json.dumps({{"input": {one}, "output": {other}}})'
        if self.is_sudoku:
            said = f'{pair[0]} + "," + {pair[1]}'
        mark = json.dumps((is_named or marks or [","])[0])
        rows = opened.format(json.dumps(file.name), json.dumps(names).replace("null", "None"), mark)
        rows = rows.replace(', None, delimiter=","', "")
        needed = [name for name in ("csv", "json", "pyarrow.parquet") if f"{name}." in said + rows]
        program = f"import {', '.join(needed)}; [print({said}) for r in {rows}]"
        made = f"python -c {quote(program)}"
        if self.is_sudoku:
            return f"(echo question,answer; {made}) > own.csv"
        return f"{made} > own.jsonl"


def boards_of(rows: Rows) -> Boards | None:
    """The columns that are a puzzle and its answer in 95 % of the rows; None for other rows.

    Both are grids: rows of cells of one length, as lists, JSON or lines of text. Or the answer is
    the question in one line, in which one sign, that of blank cells, is filled in.
    """
    enough = _ENOUGH * len(rows)
    names = list(rows[0]) if rows else []
    forms = {
        name: Counter(_form(row.get(name)) for row in rows).most_common(1)[0] for name in names
    }
    grids = [name for name, (form, count) in forms.items() if form and count >= enough]
    # Places of cells, two numbers each, are no grid.
    sizes = {name: {_size(row.get(name)) for row in rows} for name in grids}
    grids = [n for n in grids if len(sizes[n]) == 1 or {wide for _, wide in sizes[n]} != {2}]
    if len(grids) == 2:
        grids.sort(key=lambda name: name in {"output", *COLUMN_NAMES["answer"]})
        return Boards(tuple(grids), forms[grids[0]][0])
    texts: dict[str, int] = {}
    for name in names:
        for cells, count in Counter(map(len, _texts(rows, name))).most_common(1):
            if count >= enough and cells >= _LEAST and side_of(cells):
                texts[name] = cells
    for one, other in permutations(texts, 2):
        if texts[one] == texts[other] and _are_filled(rows, one, other):
            return _in_lines((one, other), texts[one], [*_texts(rows, other)])
    cells = len(names) // 2
    joined = ["".join(map(str, row.values())) for row in rows]
    if cells < _LEAST or not side_of(cells) or {*map(len, joined)} != {2 * cells}:
        return None
    return _in_lines((), cells, [text[cells:] for text in joined])


def _in_lines(columns: tuple[str, ...], cells: int, answers: Sequence[str]) -> Boards:
    solved = sum(map(_DIGITS.issuperset, answers)) >= _ENOUGH * len(answers)
    return Boards(columns, "line", cells, cells == CELLS and solved)


def _texts(rows: Rows, name: str) -> Iterator[str]:
    return (value for row in rows if isinstance(value := row.get(name), str))


def _are_filled(rows: Rows, one: str, other: str) -> bool:
    """Whether the second column is the first one, with one sign filled in."""
    signs = Counter[str]()
    for asked, answer in zip(_texts(rows, one), _texts(rows, other), strict=False):
        same = [a == b for a, b in zip(asked, answer, strict=False)]
        changed = {sign for sign, is_same in zip(asked, same, strict=False) if not is_same}
        signs.update(changed if len(changed) == 1 and any(same) else ())
    return bool(signs) and max(signs.values()) >= _ENOUGH * len(rows)


def _form(value: Any) -> str:
    """The form of a grid, a key of `_CELLS`; empty for another value."""
    form, grid = "lists", value
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return ""
        form, grid = "lines", value.strip("\n").splitlines()
        if value[:1] == "[":
            with suppress(ValueError):
                form, grid = "json", json.loads(value)
        elif all(cell.isdecimal() for line in grid for cell in line.split()) and " " in value:
            form, grid = "numbers", [line.split() for line in grid]
        if form in ("lines", "numbers") and (len(grid) < 2 or len({*value}) > _SIGNS):
            return ""
    if not isinstance(grid, list) or not grid or not isinstance(grid[0], list | str):
        return ""
    is_grid = all(isinstance(row, type(grid[0])) and len(row) == len(grid[0]) > 1 for row in grid)
    cells = [cell for row in grid for cell in row] if is_grid else [None]
    if not all(isinstance(cell, int | float | str) for cell in cells):
        return ""
    return "floats" if any(isinstance(cell, float) for cell in cells) else form


def _size(value: Any) -> tuple[int, int]:
    """Height and width of a list of lists; zeros for others."""
    is_grid = isinstance(value, list) and value and isinstance(value[0], list)
    return (len(value), len(value[0])) if is_grid else (0, 0)


def puzzle_hints(file: Path, rows: Rows, links: LinkRule) -> Iterator[str]:
    """Yield what rows are that hold puzzles. file: the first that they are of."""
    if any({"pad_id", "seq_len"} <= {*row} for row in rows):
        yield f"{file.name} {task_form({'pad_id': 0})}"
    if (found := boards_of(rows)) is None:
        return
    kind, named = GRID, " and ".join(found.columns)
    what = f"grids in {named}"
    if found.form == "line":
        what = f"puzzles of {found.cells} cells in {named or 'as many columns each'}"
        kind = SUDOKU if found.is_sudoku else ""
    with suppress(GristmillError, OSError, csv.Error):
        judged = fitness(file, links, kind=kind) if kind else None
        if judged is not None and judged.fit:  # the name of the file, or a row, is wrong
            yield f"{what}: {judged.line or 'as `puzzles` reads them, but for names of files'}"
            return
        with open_file(file, root=file.parent, links=links) as opened:
            head = opened.readline(_HEAD).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
        line = found.line(file, head.rstrip("\r\n"))
        cure = f"`{line}` writes the rows, for a folder of their own" if line else "unpack it"
        for name in [n for n in rows[0] if n not in found.columns and _are_splits(rows, n)][:1]:
            cure += f"; {name} says the split of a row, as train.jsonl and test.jsonl do"
        yield f"{what}, which `puzzles` does not read in this form: {cure}"


def blocks_in(file: Path, links: LinkRule) -> str:
    """What a text file is whose lines are the rows of grids, by its first MiB; empty for others."""
    with open_file(file, root=file.parent, links=links) as opened:
        lines = opened.read(_HEAD).decode("utf-8", "replace").splitlines()
    blocks = [[*own] for wide, own in groupby(lines, len) if 3 < wide < CELLS]
    grids = [own for own in blocks if len(own) > 3 and len({*"".join(own)}) <= _SIGNS]
    if not grids or sum(map(len, grids)) < _MOSTLY * sum(map(bool, lines)):
        return ""
    high, wide = len(grids[0]), len(grids[0][0])
    cure = 'write each as a row of JSONL, {"input": [its lines], "output": [those of its answer]}'
    if (high * wide) % CELLS == 0 and wide == 9:
        joined = '{s = s $0; if (length(s) == 81) {print s; s = ""}}'
        cure = f"`awk 'length == 9 {joined}' {quote(file.name)} > own.txt` writes a puzzle a line"
    return f"has grids of {high} lines of {wide} cells: {cure}"


def arrays_in(drop: Path, names: Collection[str], links: LinkRule) -> str:
    """What two files of NumPy are that hold as many grids, by their headers; empty for others."""
    found: dict[str, tuple[int, ...]] = {}
    for name in sorted(name for name in names if name.endswith(".npy")):
        with suppress(GristmillError, OSError, ValueError):
            with open_file(drop / name, root=drop, links=links) as file:
                shape, _, dtype = read_header(file)
            if dtype.kind in "iu" and len(shape) == 3:
                found[name] = shape
    if len(found) != 2 or len({shape[0] for shape in found.values()}) > 1:
        return ""
    one, other = (f"numpy.load({json.dumps(name)}).tolist()" for name in found)
    said = 'json.dumps({"input": a, "output": b})'
    program = f"import json, numpy; [print({said}) for a, b in zip({one}, {other})]"
    of = " and ".join(found)
    return f"has grids in {of}: `python -c {quote(program)} > own.jsonl` writes rows of both"


def _are_splits(rows: Rows, name: str) -> bool:
    """Whether the values of a column are words of splits, two at least."""
    values = {str(row.get(name)) for row in rows}
    return len(values) > 1 and all(map(said_by, values))


def is_bank(rows: Rows) -> bool:
    """Whether rows are puzzles with their answers, which no recipe of texts is to read."""
    return boards_of(rows) is not None
