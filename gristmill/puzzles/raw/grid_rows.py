"""Grids of any puzzle: rows of JSONL, read and checked. Source: docs/formats/puzzles.md#grids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput
from gristmill.inbox.marks import is_mark, not_samples
from gristmill.puzzles.config import MOST_SIDE
from gristmill.puzzles.domains.grid import Cells, Symbols, trimmed
from gristmill.puzzles.format import SET, SPLITS, Split, is_set_name
from gristmill.puzzles.raw.file_forms import CARRIAGE_RETURN, check_names, text_lines, unpack_hint
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.json_text import load_json
from gristmill.untrusted.limits import Limits
from gristmill.untrusted.lines import lines, reads
from gristmill.untrusted.walk import list_files

GRID_LIMITS: Final = Limits(
    bytes=1 << 36, rows=(1 << 31) - 1, line_bytes=1 << 22, depth=4, values=1 << 19, digits=20
)
"""Limits of a file: 64 GiB, 2,147,483,647 lines, 4 MiB for a line, 524,288 cells in a line."""
_KEYS: Final = ("input", "output", "group", "puzzle", "set")
_MOST_NAME: Final = 100
_SHOWN: Final = 40
_LOOKED_AT: Final = 1000
"""Rows whose cells are looked at where no recipe names them."""
_SPLITS: Final[dict[str, Split]] = {f"{split}.jsonl": split for split in SPLITS}


@dataclass(frozen=True)
class GridFile:
    """A file of grids. split: the one that its name says, None for another name."""

    path: Path
    split: Split | None


@dataclass(frozen=True)
class GridRow:
    """One example: tokens, uint16 [height, width], without padding, and names, or empty."""

    line: int
    input: Cells
    output: Cells
    group: str
    puzzle: str
    set_name: str


def is_grid_file(name: str) -> bool:
    """Whether a file of a source holds grids, by its name."""
    return name.lower().endswith(".jsonl") and not (name.startswith(".") or is_mark(name))


def grid_files(folder: Path, links: LinkRule = REFUSE_LINKS) -> list[GridFile]:
    """A source's files, sorted: `train.jsonl`, `test.jsonl`, or all `*.jsonl`. Raises BadInput."""
    listed = list_files(folder, root=folder, links=links, deep=False)
    entries = {entry.name: entry for entry in listed}
    check_names(folder, entries, is_grid_file)
    names = sorted(filter(is_grid_file, entries))
    left = not_samples(folder, names)
    names = [name for name in names if name not in left]
    named = [name for name in names if name.lower() in _SPLITS]
    if len({name.lower() for name in named}) == 1:
        raise BadInput(folder, f"has {named[0]} without its other split: add it, or rename it")
    if not names:
        rule = "holds no grids, which are rows of `*.jsonl` with input and output"
        raise BadInput(folder, rule + unpack_hint(entries))
    for name in named or names:
        if (refusal := entries[name].refusal) is not None:
            raise BadInput(folder / name, refusal)
    return [GridFile(folder / name, _SPLITS.get(name.lower())) for name in named or names]


def read_grids(
    path: Path,
    symbols: Symbols | None,
    links: LinkRule = REFUSE_LINKS,
    see: Callable[[bytes], None] | None = None,
) -> Iterator[GridRow]:
    """Yield the rows of a file, with token 1 for all cells where symbols are not known."""
    has_row = False
    for number, line in text_lines(path, GRID_LIMITS, links, see):
        has_row = True
        try:
            value = load_json(line, path, GRID_LIMITS, number)
        except BadInput as error:
            if b"\r" not in line.rstrip(b"\r\n"):
                raise
            raise BadInput(path, CARRIAGE_RETURN, number) from error
        yield _row(value, symbols, path, number)
    if not has_row:
        raise BadInput(path, "holds no row: get the file again, or remove it")


def each_grid(path: Path, head: bytes) -> Iterator[GridRow | BadInput]:
    """Yield the rows at the beginning of a file; one that breaks a rule is its error."""
    for number, line in enumerate(head.split(b"\n"), 1):
        if line.strip():
            try:
                value = load_json(line, path, GRID_LIMITS, number)
                row = _row(value, None, path, number)
                grids = (value[key] for key in _KEYS[:2])
                wrong = [c for grid in grids for of in grid for c in of if not _is_cell(c)]
                rule = f"the cell {wrong[:1]!r:.40} is no number from 0 and no single character"
                yield BadInput(path, rule, number) if wrong else row
            except BadInput as error:
                yield error


def cells_of(path: Path, links: LinkRule = REFUSE_LINKS) -> str:
    """The setting that names the cells of a file, as its first rows have them: a line of TOML."""
    cells: set[Any] = set()
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        for number, line in enumerate(islice(lines(reads(file), path, GRID_LIMITS), _LOOKED_AT), 1):
            row = None
            with suppress(BadInput):  # another row says what cells are
                row = load_json(line, path, GRID_LIMITS, number)
            grids = [row.get(key) for key in _KEYS[:2]] if isinstance(row, dict) else []
            listed = (of for grid in grids if isinstance(grid, list) for of in grid)
            cells.update(
                c for of in listed if isinstance(of, str | list) for c in of if _is_cell(c)
            )
    if all(type(cell) is int for cell in cells):
        return f"values = {max(cells, default=0) + 1}"
    return _alphabet(map(str, cells))


def _alphabet(cells: Iterable[str]) -> str:
    """The setting of these characters. TOML has no escape of JSON for those above 16 bits."""
    return f"alphabet = {json.dumps(''.join(sorted(set(cells))), ensure_ascii=False)}"


def _is_cell(cell: Any) -> bool:
    return (type(cell) is int and cell >= 0) or (isinstance(cell, str) and len(cell) == 1)


def _row(value: Any, symbols: Symbols | None, path: Path, number: int) -> GridRow:
    if not isinstance(value, dict) or not {"input", "output"} <= set(value):
        raise BadInput(path, "must be an object with input and output", number)
    if unknown := sorted(set(value) - set(_KEYS)):
        rule = f"has the key {unknown[0]!r:.40}: a row has {', '.join(_KEYS)} only"
        raise BadInput(path, rule, number)
    before, after = (_grid(value[key], key, symbols, path, number) for key in _KEYS[:2])
    group, puzzle = (_name(value.get(key), key, path, number) for key in ("group", "puzzle"))
    set_name = SET if value.get("set") is None else value["set"]
    if not is_set_name(set_name):
        raise BadInput(path, f"set {set_name!r:.40} cannot be a part of file names", number)
    return GridRow(number, before, after, group, puzzle, str(set_name))


def _name(value: Any, key: str, path: Path, number: int) -> str:
    if value is None:
        return ""
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not 0 < len(text) <= _MOST_NAME or not text.isprintable():
        rule = f"{key} {value!r:.40} is no number and no text of 1 to {_MOST_NAME} letters"
        raise BadInput(path, rule, number)
    if text.startswith("<"):
        raise BadInput(path, f"{key} {text!r:.40} begins with '<', as the blank identifier", number)
    return text


def _grid(rows: Any, key: str, symbols: Symbols | None, path: Path, number: int) -> Cells:
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_SIDE:
        raise BadInput(path, f"{key}: a grid is a list of 1 to {MOST_SIDE} rows", number)
    cells: list[Any] = []
    for at, row in enumerate(rows):
        if not isinstance(row, str | list) or not 0 < len(row) <= MOST_SIDE:
            rule = f"{key}, row {at}: a row is a text or a list of 1 to {MOST_SIDE} cells"
            raise BadInput(path, rule, number)
        if len(row) != len(rows[0]):
            rule = f"{key}, row {at}: has {len(row)} cells, row 0 has {len(rows[0])}"
            raise BadInput(path, rule, number)
        cells += row
    if symbols is None:
        return np.ones((len(rows), len(rows[0])), np.uint16)
    # The type too: True equals 1, and 1.0 does.
    wrong = next((c for c in cells if type(c) not in (int, str) or c not in symbols.token_of), None)
    if wrong is not None or None in cells:
        rule = f"{key}: the cell {wrong!r:.{_SHOWN}} is not in the alphabet: {_advice(cells)}"
        raise BadInput(path, rule, number)
    tokens = np.array([symbols.token_of[cell] for cell in cells], np.uint16)
    found = trimmed(tokens.reshape(len(rows), -1))
    if not found.size:
        raise BadInput(path, f"{key}: every cell is padding", number)
    return found


def _advice(cells: list[Any]) -> str:
    """What to write into the recipe so that these cells are known."""
    if all(type(cell) is int and cell >= 0 for cell in cells):
        return f"write values = {max(cells) + 1} or more below [settings]"
    if all(isinstance(cell, str) and len(cell) == 1 for cell in cells):
        return f"write {_alphabet(cells)} or more below [settings]"
    return "cells are numbers from 0, or single characters"
