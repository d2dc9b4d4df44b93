"""The logs of a pack or pool as a history names them, and the rows that a loader had of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.history.rows import Kept
from gristmill.layout import DROPS
from gristmill.loading.past import Past
from gristmill.loading.source import Picked, Source
from gristmill.macroxue.format.files import iter_lines, json_text, read_runs
from gristmill.macroxue.read.stream import held_by_hash, held_by_permutation
from gristmill.provenance import Record

_NOT_OF_A_LOG: Final = ("run_id", "first_row", "from")


def rows(folder: Path, _: Record) -> Iterator[Kept]:
    """A row for each log, by its name: a merge numbers runs again. Its samples are its steps."""
    for _number, line in iter_lines(folder / "trace.jsonl"):
        content = {name: value for name, value in line.items() if name not in _NOT_OF_A_LOG}
        name, file, end = "", "", -1
        if "steps" in line:
            run = line.get("raw_run")
            name = f"{line['drop']}/{line['meta']}" + (f" run {run}" if run is not None else "")
            file, end = f"{DROPS}/macroxue/{line['drop']}/{line['steps']}", line["steps_bytes"]
        place = 0 if end >= 0 else -1
        first, count = line["first_row"], line["rows"]
        text = json_text(content).encode()
        yield Kept("", name, text, file, place, end, first, count)


def past(kept: Past, **options: Any) -> Source:
    """The rows of a pack or pool as `dataset.opened` gives them."""
    own = kept.of()
    if not (held_out := options.get("held_out", 0.0)):
        return own
    runs = read_runs(kept.versions[0].folder / "metadata.db")
    by_hash = options.get("by", "hash") == "hash"
    held = (held_by_hash if by_hash else held_by_permutation)(
        runs, held_out, options.get("seed", 42)
    )
    is_held = np.isin([run.id for run in runs], held)
    steps = np.array([run.steps for run in runs], np.int64)
    chosen = is_held == (options.get("side", "train") == "held_out")
    return Picked(own, (np.cumsum(steps) - steps)[chosen], steps[chosen])
