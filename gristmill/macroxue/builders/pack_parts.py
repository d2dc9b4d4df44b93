"""Parts of `macroxue/pack`: some consecutive runs, and one file with all their rows.

The rows of a part have preliminary run ids and valuation types, because these depend on the
parts before it; `pack.py` makes them final.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.contract import BadInput
from gristmill.hashing import NamedFile
from gristmill.macroxue.config import Layout
from gristmill.macroxue.format.rows import STEP_FORMATS, Rows, to_layout
from gristmill.macroxue.raw.drops import AnyRun
from gristmill.macroxue.raw.read_run import Scanner, notes_of, read_run
from gristmill.macroxue.raw.read_steps import read_steps
from gristmill.macroxue.raw.step_files import StepRun
from gristmill.macroxue.raw.strict_parser import Names, RunFacts

PART_BYTES = 4_000_000
"""Zipped bytes of a part: about 130,000 rows of real logs, 6 MB in its file."""

_BATCH_ROWS = 1 << 15
_CURE = '; mend the game, take it out, or set on_error = "quarantine" to set it aside'
# What is likely where a rule is broken in every game of a drop, by what the rule begins with.
_LIKELY = {
    "board holds rank": "a board holds exponents, 1 for the tile 2, not tiles",
    "gzip: Error -4": "a log that is not zipped needs `gzip`, whatever its name",
    "not UTF-8 at byte": "write UTF-8, and zip it once",
    "not JSON: Expecting value at character 0": "write objects, without a byte order mark",
}


@dataclass(frozen=True)
class Part:
    """The task of a worker: the runs to read.

    first_id: place of the first run among all runs of the drop; run_id in the rows of the part
        counts from it.
    scanner: whether the drops of the process are large enough to load the compiled scanner.
    """

    name: str
    runs: tuple[AnyRun, ...]
    first_id: int
    layout: Layout
    on_error: str
    scanner: bool

    @property
    def size(self) -> int:
        """Zipped bytes of the steps files."""
        return sum(run.steps_size for run in self.runs)


def cut_parts(runs: Sequence[AnyRun], layout: Layout, on_error: str, scanner: bool) -> list[Part]:
    """Cut runs into parts of about PART_BYTES, the same for any number of workers."""
    parts: list[Part] = []
    first = size = 0
    for at, run in enumerate(runs):
        size += run.steps_size
        if size >= PART_BYTES or at == len(runs) - 1:
            own = tuple(runs[first : at + 1])
            name = f"rows-{len(parts):06d}-{_digest(own)}"
            parts.append(Part(name, own, first, layout, on_error, scanner))
            first, size = at + 1, 0
    return parts


def _write(file: FileIO, rows: Rows) -> None:
    octets = rows.view(np.uint8).data
    while octets:
        octets = octets[file.write(octets) :]


def _entry(facts: RunFacts) -> dict[str, Any]:
    """The facts of a run as JSON, for the summary of its part."""
    meta = facts.meta
    return {
        "rows": facts.rows,
        "seed": meta.seed,
        "score": meta.score,
        "max_tile": meta.max_tile,
        "depth": meta.depth,
        "seconds": meta.seconds,
        "meta_bytes": facts.meta_file.size,
        "meta_sha256": facts.meta_file.hex,
        "steps_bytes": facts.steps_file.size,
        "steps_sha256": facts.steps_file.hex,
        "kinds": sorted(facts.kinds.items()),
        "ranks": sorted(facts.ranks.items()),
        "notes": notes_of(facts),
    }


def _digest(runs: Sequence[AnyRun]) -> str:
    """A digest of drop, name and size of each run, so that no part of other runs is used."""
    listed = json.dumps([run.key for run in runs])
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


def _cured(rule: str) -> str:
    """A broken rule with what to do."""
    likely = next((text for begin, text in _LIKELY.items() if rule.startswith(begin)), None)
    return rule + (f" ({likely})" if likely else "") + _CURE


def make_part(part: Part, path: Path) -> dict[str, Any]:
    """Read the runs of a part and write their rows to a file.

    Returns the summary as JSON: `names` has the valuation names by the ids in the rows, `runs` has
    for each run its facts, or `file`, `row` and `rule` if it was set aside.
    """
    scanner: Scanner | None = None
    # A scanner that is already loaded costs nothing.
    if part.scanner or "gristmill.macroxue.raw.fast_scanner" in sys.modules:
        from gristmill.macroxue.raw.fast_scanner import scan

        scanner = scan
    names = Names()
    entries: list[dict[str, Any]] = []
    with NamedFile(path, "wb") as file:

        def sink(rows: Rows) -> None:
            _write(file, to_layout(rows, part.layout))

        for at, files in enumerate(part.runs):
            start, known, run_id = file.tell(), len(names.known), part.first_id + at
            try:
                if isinstance(files, StepRun):
                    facts = read_steps(files, run_id, names, sink)
                else:
                    facts = read_run(files, run_id, names, sink, scanner)
                entries.append(_entry(facts))
            except BadInput as error:
                if part.on_error != "quarantine":
                    raise BadInput(error.file, _cured(error.rule), error.row) from error
                file.seek(start)
                file.truncate()
                del names.known[known:]
                name = files.name_of(error.file)
                entries.append({"file": name, "row": error.row, "rule": error.rule})
    return {"names": list(names.known), "runs": entries}


def read_rows(path: Path, layout: Layout) -> Iterator[Rows]:
    """Yield the rows of a finished part in batches.

    All batches are views of one array: the caller may change a batch, and must be done with it
    before the next.
    """
    rows = np.empty(_BATCH_ROWS, STEP_FORMATS[layout].dtype)
    octets = rows.view(np.uint8).data
    with path.open("rb", buffering=0) as file:
        while True:
            filled = 0
            while filled < len(octets) and (got := file.readinto(octets[filled:])):
                filled += got
            if not filled:
                return
            yield rows[: filled // rows.itemsize]
