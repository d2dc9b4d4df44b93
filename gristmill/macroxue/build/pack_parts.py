"""Parts of a pack: consecutive runs of bounded size, each part one file of rows.

A part knows neither which runs before it were set aside nor which valuation
names they met; `pack.py` corrects these numbers while it copies the rows.
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
from gristmill.macroxue.config import Layout
from gristmill.macroxue.format.rows import STEP_FORMATS, Rows, to_layout
from gristmill.macroxue.raw.drops import RunFiles
from gristmill.macroxue.raw.read_run import Names, RunFacts, Scanner, notes_of, read_run

PART_BYTES = 4_000_000
"""Compressed bytes at which a part is full: about 130,000 rows of real logs, 6 MB."""

_BATCH_ROWS = 1 << 15


@dataclass(frozen=True)
class Part:
    """A task for a worker: which runs to read.

    name: of the part; it holds a digest of which runs these are.
    first_id: place of the first run among all runs found; run_id in the part's
        rows counts from there.
    scanner: whether the compiled scanner is worth its loading.
    """

    name: str
    runs: tuple[RunFiles, ...]
    first_id: int
    layout: Layout
    on_error: str
    scanner: bool

    @property
    def size(self) -> int:
        """Compressed bytes of the runs' steps."""
        return sum(run.steps_size for run in self.runs)


def cut_parts(runs: Sequence[RunFiles], layout: Layout, on_error: str, scanner: bool) -> list[Part]:
    """Cut the runs into parts by compressed bytes, the same for any number of workers."""
    parts: list[Part] = []
    first = size = 0
    for at, run in enumerate(runs):
        size += run.steps_size
        if size >= PART_BYTES or at == len(runs) - 1:
            taken = tuple(runs[first : at + 1])
            name = f"rows-{len(parts):06d}-{_digest(taken)}"
            parts.append(Part(name, taken, first, layout, on_error, scanner))
            first, size = at + 1, 0
    return parts


def _write(file: FileIO, rows: Rows) -> None:
    octets = rows.view(np.uint8).data
    while octets:
        octets = octets[file.write(octets) :]


def _entry(facts: RunFacts) -> dict[str, Any]:
    meta = facts.meta
    return {
        "rows": facts.rows,
        "seed": meta.seed,
        "score": meta.score,
        "max_tile": meta.max_tile,
        "depth": meta.depth,
        "seconds": meta.seconds,
        "meta_bytes": facts.meta_file.size,
        "meta_sha256": facts.meta_file.sha256.hexdigest(),
        "steps_bytes": facts.steps_file.size,
        "steps_sha256": facts.steps_file.sha256.hexdigest(),
        "kinds": sorted(facts.kinds.items()),
        "ranks": sorted(facts.ranks.items()),
        "notes": notes_of(facts),
    }


def _digest(runs: Sequence[RunFiles]) -> str:
    """Tells apart parts of other runs, as where a game came to the drop since."""
    listed = json.dumps([[run.drop, run.meta_name, run.steps_size] for run in runs])
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


def make_part(part: Part, path: Path) -> dict[str, Any]:
    """Read a part's runs into the file `path`; return the part's summary.

    Summary: `names` (valuation names by the ids in the rows), `runs` (one entry
    each: facts, or `file`, `row`, `rule` of one set aside).
    """
    scanner: Scanner | None = None
    # A scanner that is loaded already costs nothing, whatever the size.
    if part.scanner or "gristmill.macroxue.raw.fast_scanner" in sys.modules:
        from gristmill.macroxue.raw.fast_scanner import scan

        scanner = scan
    names = Names()
    entries: list[dict[str, Any]] = []
    with path.open("wb", buffering=0) as file:
        for at, files in enumerate(part.runs):
            start, met = file.tell(), len(names.known)
            try:
                facts = read_run(
                    files,
                    part.first_id + at,
                    names,
                    lambda rows: _write(file, to_layout(rows, part.layout)),
                    scanner,
                )
                entries.append(_entry(facts))
            except BadInput as error:
                if part.on_error != "quarantine":
                    raise
                file.seek(start)
                file.truncate()
                del names.known[met:]
                name = files.meta_name if error.file == str(files.meta) else files.steps_name
                entries.append({"file": name, "row": error.row, "rule": error.rule})
    return {"names": list(names.known), "runs": entries}


def read_rows(path: Path, layout: Layout) -> Iterator[Rows]:
    """The rows of a finished part in batches, in one array that the caller may change."""
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
