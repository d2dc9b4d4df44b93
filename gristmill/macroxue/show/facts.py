"""What is in a folder of this family, for `gristmill verify` of a folder without a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.macroxue.format.metadata_db import read_runs
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.format.view_files import read_description
from gristmill.reading.reader import Ranges, counted, file_facts, number


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the rows, the ranges of their columns, and the runs, a line each."""
    if asset == "macroxue/training_view":
        for side in read_description(folder).sides:
            for part in ("macroxue/pack", "macroxue/values"):
                lines = _facts(part, folder / side)
                yield from (f"{side}/{line}" if side else line for line in lines)
        return
    yield from _facts(asset, folder)


def _facts(asset: str, folder: Path) -> Iterator[str]:
    has_values = asset == "macroxue/values"
    ranges = Ranges()
    for file in value_files(folder) if has_values else step_files(folder):
        rows = open_values(file) if has_values else open_steps(file)
        yield f"{file.name}: {counted(len(rows), 'row')} of {rows.dtype.itemsize} bytes"
        ranges.add(rows)
    yield from ranges.lines()
    if has_values:
        return
    if (database := folder / "metadata.db").is_file():
        runs = read_runs(database)
        yield f"metadata.db: {counted(len(runs), 'run')}"
        for name in ("steps", "max_score", "highest_tile") if runs else ():
            of_runs = np.array([getattr(run, name) for run in runs], np.int64)
            yield f"{name} of a run: {number(of_runs.min())} to {number(of_runs.max())}"
    if (types := folder / "valuation_types.json").is_file():
        yield f"valuation_types.json: {', '.join(read_valuation_types(types))}"
    yield from file_facts(folder, ("trace.jsonl", "quarantine.jsonl", "warnings.jsonl"))
