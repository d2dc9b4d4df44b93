"""From an example of a dataset to its raw file, the row in it, and the augmentation of that row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Request
from gristmill.provenance import RECORD, trace_inputs
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import SourceFile, Sources
from gristmill.puzzles.read.rows import Dataset, SetArrays
from gristmill.untrusted.lines import line_bytes, reads


@dataclass(frozen=True)
class Example:
    """One example.

    group, puzzle: their numbers in the set, from 0. number: in its puzzle, from 0.
    inputs, labels: int64 [seq_len].
    file: that it came from; None for a generated one, or a dataset without a trace.
    source_row: row in that file, pair of the task, or number of the game; None without a trace.
    draw: number of its augmentation, 0 for the source itself; None without a trace.
    """

    split: str
    set_name: str
    row: int
    group: int
    puzzle: int
    number: int
    first: int
    identifier: str
    identifier_id: int
    inputs: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    file: SourceFile | None = None
    source_row: int | None = None
    draw: int | None = None


def example(
    data: Dataset, split: str, set_name: str, row: int, arrays: SetArrays | None = None
) -> Example:
    """Read an example.

    data: the dataset. split, set_name: of the set. row: of the example in the set, from 0.
    arrays: of the set, where they are open already; default None.

    Raises BadInput where there is no such split, set or row, or a file is damaged.
    """
    check_set(data, split, set_name)
    held = arrays or data.arrays(split, set_name)
    path = data.folder / names.array(split, set_name, "inputs")
    count = len(held.inputs)
    if not 0 <= row < count:
        rule = f"has {count:,} examples, no example {row:,}; they count from 0"
        raise BadInput(path, rule)
    puzzle = _owner(held.puzzle_indices, row)
    group = _owner(held.group_indices, puzzle)
    in_range = 0 <= puzzle < len(held.puzzle_identifiers) and 0 <= group < len(held.group_indices)
    first_puzzle = int(held.group_indices[group]) if in_range else -1
    if not 0 <= first_puzzle <= puzzle:
        rule = f"example {row} belongs to no puzzle or to no group: the index arrays are damaged"
        raise BadInput(path, rule)
    identifier = int(held.puzzle_identifiers[puzzle])
    found = Example(
        split=split,
        set_name=set_name,
        row=row,
        group=group,
        puzzle=puzzle,
        number=row - int(held.puzzle_indices[puzzle]),
        first=min(max(int(held.puzzle_indices[first_puzzle]), 0), count - 1),
        identifier=_name(data, identifier),
        identifier_id=identifier,
        inputs=held.inputs[row].astype(np.int64),
        labels=held.labels[row].astype(np.int64),
    )
    return found if held.origins is None else _with_origin(data, found, held.origins[row].tolist())


def check_set(data: Dataset, split: str, set_name: str) -> None:
    """Raise BadInput where a dataset has no such split or set; the text names those it has."""
    if split not in names.SPLITS:
        raise BadInput(data.folder, f"has no split {split!r}: it is train or test")
    sets = data.metadata(split).sets
    if set_name not in sets:
        rule = f"has no set {set_name!r} in {split}: it has {', '.join(sets)}"
        raise BadInput(data.folder, rule)


def _with_origin(data: Dataset, found: Example, origin: list[int]) -> Example:
    file, source_row, draw = origin
    files = data.sources.files
    if not -1 <= file < len(files):
        path = data.folder / names.origins(found.split, found.set_name)
        raise BadInput(path, f"names file {file} of {len(files)} in {names.SOURCES}", found.row)
    values = {**vars(found), "source_row": source_row, "draw": draw}
    return Example(**{**values, "file": files[file] if file >= 0 else None})


def _owner(indices: npt.NDArray[np.integer], item: int) -> int:
    return int(np.searchsorted(indices, item, side="right")) - 1


def _name(data: Dataset, identifier: int) -> str:
    listed = data.identifiers
    if not 0 <= identifier < len(listed):
        path = data.folder / names.IDENTIFIERS
        raise BadInput(path, f"has {len(listed)} names, none for identifier {identifier}")
    return listed[identifier]


Parameters = dict[str, object]

SYMMETRIES: Final = (
    "as it is",
    "rotated by 90° counter-clockwise",
    "rotated by 180°",
    "rotated by 270° counter-clockwise",
    "mirrored left and right",
    "mirrored up and down",
    "transposed",
    "transposed along the other diagonal",
)
"""What the symmetries 0 to 7 do, in words."""


_PLACES: Final = {"arc": "pair {} in the order of the file", "domino": "game {}"}
"""How the row of a source is named; it is a line of other files."""


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
    place = _PLACES.get(sources.kind, f"{_LINE}{{}}" if found.file else "number {}")
    first = data.arrays(found.split, found.set_name).inputs[found.first] if found.draw else None
    return Trace(
        example=f"{found.split} {found.set_name} {found.row}",
        group=found.group,
        puzzle=found.puzzle,
        identifier=f"{found.identifier_id} {found.identifier}",
        source=found.file.path if found.file else None,
        sha256=found.file.sha256 if found.file else None,
        place=place.format(found.source_row),
        augmentation=found.draw,
        parameters=parameters(sources, found, first),
    )


def parameters(
    sources: Sources, found: Example, first: npt.NDArray[np.integer] | None = None
) -> Parameters:
    """The parameters of an example's augmentation, in words; empty where there are none.

    first: input tokens of the first example of its group, integer [seq_len]; a Sudoku's
        draws depend on it. Default None: the example's own input.

    Raises BadInput where the parameters cannot be read from the example or its config.
    """
    of_kind = _BY_KIND.get(sources.kind)
    if of_kind is None:
        return {}
    start = found.inputs if first is None else first
    try:
        return of_kind(sources.config, found, start)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, GristmillError) as error:
        where = f"{found.split} {found.set_name}"
        rule = f"the augmentation of example {found.row} cannot be read: {error}"
        raise BadInput(where, rule) from error


def _symmetry(number: int) -> str:
    return f"{number}: {SYMMETRIES[number]}"


def _arc(config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]) -> Parameters:
    from gristmill.puzzles.domains.arc_grid import decode, parse_id

    task, augmentation = parse_id(found.identifier)
    place = decode(found.inputs)
    first_cell = {"first cell": f"row {place.row}, column {place.column}"}
    # The id of the source may have `_`.
    task = str(found.file.facts.get("task", task)) if found.file else task
    if augmentation is None:
        return {"task": task, **first_cell}
    moved = [f"{old} to {new}" for old, new in enumerate(augmentation.colours) if str(old) != new]
    return {
        "task": task,
        "symmetry": _symmetry(augmentation.symmetry),
        "colours": ", ".join(moved) or "as they are",
        **first_cell,
    }


def _sudoku(
    config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]
) -> Parameters:
    from gristmill.puzzles.domains.sudoku_board import text_of
    from gristmill.puzzles.domains.sudoku_symmetry import augmentation

    if not found.draw:
        return {}
    question = text_of(np.clip(first, 1, 10) - 1)
    done = augmentation(int(config["seed"]), question, found.draw)
    return {
        "transposed": "yes, first" if done.transposes else "no",
        "rows from": " ".join(map(str, done.rows)),
        "columns from": " ".join(map(str, done.columns)),
        "digits 1 to 9 become": " ".join(map(str, done.digits[1:])),
    }


def _turned(
    config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]
) -> Parameters:
    return {"symmetry": _symmetry(found.draw or 0)} if found.draw else {}


def _domino(
    config: Mapping[str, Any], found: Example, first: npt.NDArray[np.integer]
) -> Parameters:
    from gristmill.puzzles.domains.domino_augment import MODULAR, augmentation

    if not found.draw:
        return {}
    source = f"{found.split}:{found.source_row}"
    how = str(config["augmentation"])
    done = augmentation(int(config["seed"]), source, found.draw, how)
    if how == MODULAR:
        return {"added to values": f"{done.offset} modulo 7"}
    return {
        "chain": "turned round" if done.is_reversed else "as it is",
        "hand": "tiles of the slots " + " ".join(map(str, done.order)),
    }


_BY_KIND: Final[dict[str, Callable[..., Parameters]]] = {
    "arc": _arc,
    "sudoku": _sudoku,
    "maze": _turned,
    "domino": _domino,
    "grid": _turned,
}


_LINE: Final = "line "


def traced_example(request: Request) -> list[contract.Trace]:
    """Where an example came from, see `example_origins`.

    request: path is the folder of the dataset; the sample is the number of an example, from 0.
        Options: `split` (default train) and `set` (default all).
    """
    split, set_name = (request.options.get(name) for name in ("split", "set"))
    return example_origins(request.path, request.number, split or "train", set_name or names.SET)


def example_origins(folder: Path, row: int, split: str, set_name: str) -> list[contract.Trace]:
    """Trace an example: the facts of `Trace`, then the raw file below the data root.

    Arguments as for `trace`. Raises as it, and NotTraced where the record cannot be read.
    """
    found = trace(folder, row, split, set_name)
    return [trace_inputs.Origin({**found.facts(), **_raw_file(folder, found)})]


def _raw_file(folder: Path, found: Trace) -> Mapping[str, object]:
    """The raw file of an example below the data root, and whether it is still as it was."""
    if found.source is None or not (folder / RECORD).is_file():
        return {}
    published = trace_inputs.source(folder)
    for item in published.raw_inputs():
        if item.sha256 == found.sha256 and f"/{item.path}".endswith(f"/{found.source}"):
            facts = published.raw_facts(item)
            if "raw_note" in facts or not found.place.startswith(_LINE):
                return facts
            line = int(found.place.removeprefix(_LINE))
            return {**facts, **_line_bytes(published.root / str(item.path), line)}
    return {}


def _line_bytes(path: Path, number: int) -> Mapping[str, object]:
    """The bytes `a-b` of a line of a raw file that is as recorded, without the line's end."""
    with path.open("rb") as file:
        place = line_bytes(reads(file), path, number)
    return {} if place is None else {"raw_row_bytes": f"{place[0]}-{place[1]}"}
