"""The tables of examples in puzzle datasets, for the sample browser, and the lines on a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.browse.columns import Columns
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token, Type
from gristmill.markdown import INLINE, image
from gristmill.puzzles.format.names import FIELDS, IDENTIFIERS, SPLITS, array, metadata
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.show.drawings import Drawn, drawing
from gristmill.reading.reader import array_fact, counted

if TYPE_CHECKING:
    from rich.console import RenderableType

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
_LOOKED_AT: Final = 20
"""Rows of which one is drawn on the page of an asset."""
_LONG_TITLE: Final = "x" * 60


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield a table for each set of each split.

    asset: the key of the kind. folder: of the dataset. files: what the record says of them.
    """
    data = Dataset(folder)
    for split, set_name in data.sets():
        yield _table(data, files, split, set_name)


def sample(folder: Path) -> int:
    """The first row whose picture fits the page of the asset; 0 where none of the first ones does.

    folder: of the dataset. One that is damaged raises, as any reader does.
    """
    data = Dataset(folder)
    for place in islice(data.sets(), 1):
        arrays = data.arrays(*place)
        for row in range(min(_LOOKED_AT, len(arrays.inputs))):
            drawn = drawing(data.kind or "", arrays.inputs[row], arrays.labels[row], data.config)
            if drawn is None or len(image(_LONG_TITLE, drawn.svg(_LONG_TITLE))) <= INLINE:
                return row
    return 0


def _table(data: Dataset, files: Files, split: str, set_name: str) -> Stored:
    def drawing_of(row: Record) -> Drawn | None:
        return drawing(data.kind or "", row.values["inputs"], row.values["labels"], data.config)

    def pictures(row: Record) -> Sequence[Picture]:
        title = f"{split} {row.number:,} · {row.values['identifier']}"
        drawn = drawing_of(row)
        return [] if drawn is None else [Picture(title, drawn.svg(title))]

    def in_terminal(row: Record, _: Mapping[str, Any]) -> Sequence[RenderableType]:
        drawn = drawing_of(row)
        return [] if drawn is None else [drawn.in_terminal()]

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
        chosen={"split": split, "set": set_name},
        ids=("identifier",),
        drawn=in_terminal,
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


def facts_of(_: str, folder: Path) -> Iterator[str]:
    """Yield what is in a dataset of any kind, a line each: its sets, arrays, metadata and names.

    Raises BadInput where a file cannot be read.
    """
    data = Dataset(folder)
    for place in data.sets():
        arrays = data.arrays(*place)
        groups = counted(max(0, len(arrays.group_indices) - 1), "group")
        puzzles = counted(len(arrays.puzzle_identifiers), "puzzle")
        yield f"{'/'.join(place)}: {groups}, {puzzles}, {counted(len(arrays.inputs), 'example')}"
        for field in FIELDS:
            yield array_fact(array(*place, field), getattr(arrays, field))
    for split in SPLITS:
        described = vars(data.metadata(split)).items()
        yield f"{metadata(split)}: {', '.join(f'{key} {value}' for key, value in described)}"
    yield f"{IDENTIFIERS}: {counted(len(data.identifiers), 'name')}"
