"""An example of a dataset in a terminal: what it is, its grids or hand, what is wrong with it.

See also `drawings.py`: the drawings; `preview.py` and `report_page.py`: pictures for a browser.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.contract import BadInput
from gristmill.families import Request
from gristmill.printable import printable
from gristmill.puzzles.format.names import SET
from gristmill.puzzles.read.example import Example, example
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.read.trace import trace_of
from gristmill.puzzles.show.cells import WRONG
from gristmill.puzzles.show.drawings import drawing
from gristmill.puzzles.show.findings import breaks_contract, findings, not_checked
from gristmill.puzzles.show.tracing import place

if TYPE_CHECKING:
    from rich.console import RenderableType


def shown(
    folder: Path, row: int, split: str = "train", set_name: str = SET
) -> Iterator[RenderableType]:
    """Yield an example: its place, identifier and source, the drawing, the rules that it breaks.

    Rules that were not looked at are named.

    folder: of the dataset; it need not have been built here.
    row: of the example in its set, from 0.
    split: `train` (default) or `test`. set_name: default `all`.

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
    return shown(request.path, request.number, *place(request))
