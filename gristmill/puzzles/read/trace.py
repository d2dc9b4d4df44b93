"""From an example of a dataset to the file, the row in it and the augmentation that it came from.

Source: `docs/formats/puzzles.md#trace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gristmill import contract
from gristmill.contract import BadInput
from gristmill.puzzles.format import names
from gristmill.puzzles.read.example import Example, example
from gristmill.puzzles.read.parameters import parameters
from gristmill.puzzles.read.rows import Dataset

_PLACES: Final = {"arc": "pair", "domino": "game"}
"""What the row of a source is called; it is a line of other files."""


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where an example came from.

    example: split, set and row.
    group, puzzle: numbers in the set, from 0.
    identifier: its number and name.
    source: path of the file, that begins with the source's name; None for a generated example.
    sha256: of that file, hex; None for a generated example.
    place: row of the file (from 1), pair of the task (from 0), or game (from 0).
    augmentation: number of the draw, 0 for the source itself.
    parameters: what the augmentation did, by name.
    """

    example: str
    group: int
    puzzle: int
    identifier: str
    source: str | None
    sha256: str | None
    place: str
    augmentation: int
    parameters: Mapping[str, object] = field(default_factory=dict)

    def facts(self) -> dict[str, object]:
        """What a person reads: the fields, and the parameters as further lines."""
        lines = super().facts()
        del lines["parameters"]
        if self.source is None:
            lines["source"] = "generated"
            del lines["sha256"]
        return {**lines, **self.parameters}


def trace(folder: Path, row: int, split: str = "train", set_name: str = names.SET) -> Trace:
    """Trace an example.

    folder: of the dataset. row: of the example in its set, from 0.
    split: `train` (default) or `test`. set_name: default `all`.

    Raises BadInput where there is no such example, or the dataset has no trace.
    """
    data = Dataset(folder)
    return trace_of(data, example(data, split, set_name, row))


def trace_of(data: Dataset, found: Example) -> Trace:
    """Trace an example that was read. Arguments and errors as for `trace`."""
    if found.draw is None or found.source_row is None:
        path = data.folder / names.origins(found.split, found.set_name)
        raise BadInput(path, "is missing: the dataset was not built here, and has no trace")
    sources = data.sources
    unit = _PLACES.get(sources.kind, "line" if found.file else "number")
    first = data.arrays(found.split, found.set_name).inputs[found.first] if found.draw else None
    return Trace(
        example=f"{found.split} {found.set_name} {found.row}",
        group=found.group,
        puzzle=found.puzzle,
        identifier=f"{found.identifier_id} {found.identifier}",
        source=found.file.path if found.file else None,
        sha256=found.file.sha256 if found.file else None,
        place=f"{unit} {found.source_row}",
        augmentation=found.draw,
        parameters=parameters(sources, found, first),
    )
