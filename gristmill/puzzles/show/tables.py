"""The tables of examples in puzzle datasets, for the sample browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.browse.columns import Columns
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token, Type
from gristmill.puzzles.format.names import FIELDS, IDENTIFIERS, array
from gristmill.puzzles.read.example import example
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.show.drawings import drawing

if TYPE_CHECKING:
    from gristmill.browse.opening import Files

_TYPES: Final[Mapping[str, Type]] = {
    "identifier": "text",
    "puzzle": "integer",
    "group": "integer",
    "draw": "integer",
    "source": "text",
    "source_row": "integer",
    "inputs": "list",
    "labels": "list",
}
_STEP: Final = 1 << 16


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield a table for each set of each split.

    asset: the key of the kind. folder: of the dataset. files: what the record says of them.
    """
    data = Dataset(folder)
    for split, set_name in data.sets():
        yield _table(data, files, split, set_name)


def _table(data: Dataset, files: Files, split: str, set_name: str) -> Stored:
    def pictures(row: Record) -> Sequence[Picture]:
        found = example(data, split, set_name, row.number, data.arrays(split, set_name))
        title = f"{split} {row.number:,} · {found.identifier}"
        drawn = drawing(data.kind or "", found.inputs, found.labels, data.config)
        return [Picture(title, drawn.large(title))]

    def tokens(row: Record) -> Sequence[Token]:
        return [
            Token(f"{token} ", token, counts=name == "labels", span=name)
            for name in ("inputs", "labels")
            for token in row.values[name]
        ]

    return Stored(
        f"{split}/{set_name}",
        lambda: _examples(data, files, split, set_name),
        ("identifier", "source"),
        sample=lambda row: (str(row.number), {"split": split, "set": set_name}),
        pictures=pictures,
        tokens=tokens,
    )


def _examples(data: Dataset, files: Files, split: str, set_name: str) -> Columns:
    for name in FIELDS:
        files.checked(array(split, set_name, name))
    files.checked(IDENTIFIERS)
    arrays = data.arrays(split, set_name)
    types = {
        name: kind
        for name, kind in _TYPES.items()
        if arrays.origins is not None or name not in ("draw", "source", "source_row")
    }

    @cache
    def sources() -> list[str]:
        return [file.path for file in data.sources.files]

    def named(numbers: Any, texts: Sequence[str]) -> list[str | None]:
        return [texts[at] if 0 <= at < len(texts) else None for at in numbers.tolist()]

    def get(names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        rows = np.arange(first, stop)
        puzzle = np.searchsorted(arrays.puzzle_indices, rows, side="right") - 1
        origins = None if arrays.origins is None else arrays.origins[first:stop]
        for name in names:
            if name in ("inputs", "labels"):
                found[name] = getattr(arrays, name)[first:stop]
            elif name == "puzzle":
                found[name] = puzzle
            elif name == "group":
                found[name] = np.searchsorted(arrays.group_indices, puzzle, side="right") - 1
            elif name == "identifier":
                inside = np.clip(puzzle, 0, len(arrays.puzzle_identifiers) - 1)
                found[name] = named(arrays.puzzle_identifiers[inside], data.identifiers)
            elif origins is not None and name == "source":
                found[name] = named(origins[:, 0], sources())
            elif origins is not None:
                found[name] = origins[:, 1 if name == "source_row" else 2]
        return found

    path = data.folder / array(split, set_name, "inputs")
    return Columns(path, types, len(arrays.inputs), get, step=_STEP)
