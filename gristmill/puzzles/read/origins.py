"""From an example of a puzzle dataset to its raw row.

See also `trace.py`: an example to the file and place that its builder read.
Source: `docs/formats/puzzles.md#trace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gristmill import contract
from gristmill.provenance import RECORD
from gristmill.provenance.trace_inputs import Origin, source
from gristmill.puzzles.read.trace import Trace, trace
from gristmill.untrusted.lines import line_bytes, reads

_LINE: Final = "line "


def example_origins(folder: Path, row: int, split: str, set_name: str) -> list[contract.Trace]:
    """Trace an example: the facts of `Trace`, then the raw file below the data root.

    Arguments as for `trace`. Raises as it, and NotTraced where the record cannot be read.
    """
    found = trace(folder, row, split, set_name)
    return [Origin({**found.facts(), **_raw_file(folder, found)})]


def _raw_file(folder: Path, found: Trace) -> Mapping[str, object]:
    """The raw file of an example below the data root, and whether it is still as it was."""
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
    with path.open("rb") as file:
        place = line_bytes(reads(file), path, number)
    return {} if place is None else {"raw_row_bytes": f"{place[0]}-{place[1]}"}
