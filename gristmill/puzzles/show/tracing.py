"""`gristmill trace` of a puzzle dataset: which example a person asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import Trace
from gristmill.families import Request
from gristmill.provenance.trace_inputs import Origin
from gristmill.puzzles.format.names import SET

if TYPE_CHECKING:
    from gristmill.puzzles.read.trace import Trace as FoundTrace

_LINE: Final = "line "


def traced_example(request: Request) -> Iterable[Trace]:
    """Where an example came from.

    request: path is the folder of the dataset; the sample is the number of an example, from 0.
        Options: `split` (default train) and `set` (default all).

    The facts of `read.trace.Trace`, then the raw file below the data root as its record has it.

    Raises Misuse for a sample that is no number, BadInput where there is no such example,
    NotTraced where the record cannot be read.
    """
    from gristmill.puzzles.read.trace import trace

    split, set_name = place(request)
    found = trace(request.path, request.number, split, set_name)
    return [Origin({**found.facts(), **_raw_file(request.path, found)})]


def _raw_file(folder: Path, found: FoundTrace) -> Mapping[str, object]:
    """The raw file of an example below the data root, and whether it is still as it was."""
    from gristmill.provenance import RECORD
    from gristmill.provenance.trace_inputs import source

    if found.source is None or not (folder / RECORD).is_file():
        return {}
    published = source(folder)
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
    from gristmill.untrusted.lines import line_bytes, reads

    with path.open("rb") as file:
        place = line_bytes(reads(file), path, number)
    return {} if place is None else {"raw_row_bytes": f"{place[0]}-{place[1]}"}


def place(request: Request) -> tuple[str, str]:
    """Split and set that a command names; train and all by default."""
    return request.options.get("split") or "train", request.options.get("set") or SET
