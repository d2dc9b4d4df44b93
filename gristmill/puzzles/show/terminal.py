"""An example of a dataset in a terminal: its grids or hand, what is wrong, its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Trace
from gristmill.families import Request
from gristmill.printable import printable
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata
from gristmill.puzzles.format.names import SET
from gristmill.puzzles.read.example import Example, example
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.read.trace import trace_of
from gristmill.puzzles.show.cells import WRONG
from gristmill.puzzles.show.drawings import drawing

if TYPE_CHECKING:
    from rich.console import RenderableType


def shown(
    folder: Path, row: int, split: str = "train", set_name: str = SET
) -> Iterator[RenderableType]:
    """Yield an example: its place, identifier and source, the drawing, the rules that it breaks.

    split: `train` (default) or `test`. set_name: default `all`.

    Rules that were not looked at are named.

    Raises BadInput where there is no such split, set or example, or a file is damaged.
    """
    from rich.text import Text

    data = Dataset(folder)
    found = example(data, split, set_name, row)
    yield Text(heading(found), "bold")
    for line in where_from(data, found):
        yield Text(line, "dim")
    yield drawing(data.kind or "", found.inputs, found.labels, data.config).in_terminal()
    metadata = data.metadata(split)
    broken = findings(data.kind, metadata, found)
    left = not_checked(data.kind, breaks_contract(metadata, found))
    if left:
        yield Text(printable(left), "yellow")
    if broken:
        yield Text("\n".join(f"breaks: {printable(rule)}" for rule in broken), f"bold {WRONG}")
    else:
        yield Text("breaks no rule of the contract" if left else "breaks no rule", "green")


def heading(found: Example) -> str:
    """The place and the identifier of an example, on one line."""
    return printable(
        f"{found.split} {found.set_name} {found.row} · identifier {found.identifier_id} "
        f"{found.identifier} · puzzle {found.puzzle} · group {found.group}"
    )


def where_from(data: Dataset, found: Example) -> list[str]:
    """The source of an example and what its augmentation did, a line each.

    A trace that cannot be read is said in words: the picture of a broken row is wanted most.
    """
    if found.draw is None:
        return ["no trace: where it came from is not known"]
    try:
        traced = trace_of(data, found)
    except BadInput as error:
        return [printable(f"no trace: {error.rule}")]
    number = traced.augmentation
    done = [f"augmentation {number}" if number else "not augmented"]
    done += [f"{name}: {value}" for name, value in traced.parameters.items()]
    return [
        printable(f"{traced.source or 'generated'}, {traced.place}"),
        printable("; ".join(done)),
    ]


def show(request: Request) -> Iterator[RenderableType]:
    """Yield the example that a person asks for."""
    return shown(request.path, request.number, *place_of(request))


def traced_example(request: Request) -> Iterable[Trace]:
    """Where an example came from.

    request: path is the folder of the dataset; the sample is the number of an example, from 0.
        Options: `split` (default train) and `set` (default all).

    The facts of `read.trace.Trace`, then the raw file below the data root as its record has it.
    """
    from gristmill.puzzles.read.trace import example_origins

    split, set_name = place_of(request)
    return example_origins(request.path, request.number, split, set_name)


def place_of(request: Request) -> tuple[str, str]:
    """Split and set that a command names; train and all by default."""
    return request.options.get("split") or "train", request.options.get("set") or SET


_Row = npt.NDArray[np.int64]


def findings(kind: str | None, metadata: PuzzleDatasetMetadata, found: Example) -> list[str]:
    """What is wrong with an example: rules of the contract, then of its kind.

    kind: of the puzzle, None where it is not known.
    """
    broken = _contract(metadata, found)
    of_kind = _BY_KIND.get(kind or "")
    return broken if broken or of_kind is None else of_kind(found.inputs, found.labels)


def not_checked(kind: str | None, broken: bool = False) -> str | None:
    """What `findings` did not look at, in words; None where it looked at all rules of a row.

    broken: whether the row breaks the contract; default False.
    """
    if kind is None:
        return "not checked: the rules of its puzzle: without a trace its kind is not known"
    if kind not in _BY_KIND:
        return f"not checked: the rules of {kind}: Gristmill has none for this kind"
    return f"not checked: the rules of {kind}: the row breaks the contract" if broken else None


def breaks_contract(metadata: PuzzleDatasetMetadata, found: Example) -> bool:
    """Whether an example breaks the contract, so that `findings` looked no further."""
    return bool(_contract(metadata, found))


def _contract(metadata: PuzzleDatasetMetadata, found: Example) -> list[str]:
    broken = []
    for name, row in (("input", found.inputs), ("label", found.labels)):
        if len(row) != metadata.seq_len:
            broken.append(f"{name} has {len(row)} tokens, not {metadata.seq_len}")
        outside = np.flatnonzero((row < 0) | (row >= metadata.vocab_size))
        if name == "label" and metadata.ignore_label_id is not None:
            outside = outside[row[outside] != metadata.ignore_label_id]
        if len(outside):
            at = int(outside[0])
            broken.append(
                f"{name} token {int(row[at])} at position {at} is outside of 0 to"
                f" {metadata.vocab_size - 1}"
            )
    if not 0 <= found.identifier_id < metadata.num_puzzle_identifiers:
        broken.append(f"identifier {found.identifier_id} is outside of the metadata's number")
    return broken


def _arc(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.arc_grid import decode

    broken, places = [], []
    for name, row in (("input", inputs), ("label", labels)):
        try:
            places.append(decode(row))
        except ValueError as error:
            broken.append(f"{name}: {error}")
    if len({(place.row, place.column) for place in places}) > 1:
        broken.append("input and label begin at different cells")
    return broken


def _sudoku(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.sudoku.checks import described

    return list(described(inputs, labels))


def _maze(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.maze_paths import findings as broken_rules
    from gristmill.puzzles.domains.maze_paths import rule_names

    return rule_names(int(broken_rules(inputs[None], labels[None])[0]))


def _domino(inputs: _Row, labels: _Row) -> list[str]:
    from gristmill.puzzles.domains.domino_findings import findings as broken_rules
    from gristmill.puzzles.domains.domino_findings import rule_names

    return rule_names(int(broken_rules(inputs[None], labels[None])[0]))


def _grid(inputs: _Row, labels: _Row) -> list[str]:
    return [
        f"{name}: every cell is padding"
        for name, row in (("input", inputs), ("label", labels))
        if not row.any()
    ]


_BY_KIND: Final[dict[str, Callable[[_Row, _Row], list[str]]]] = {
    "arc": _arc,
    "sudoku": _sudoku,
    "maze": _maze,
    "domino": _domino,
    "grid": _grid,
}
