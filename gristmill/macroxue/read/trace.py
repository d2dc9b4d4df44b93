"""From a run of a pack or pool back to the raw files that it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill import contract
from gristmill.contract import GristmillError
from gristmill.macroxue.format.jsonl import read_lines


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a run came from: the line of `trace.jsonl` with its run_id."""

    line: dict[str, Any]

    def facts(self) -> dict[str, object]:
        return dict(self.line)


def trace(folder: Path, run: int) -> Trace:
    """Trace a run of a pack or pool.

    Raises GristmillError where the folder has no trace or no such run.
    """
    table = folder / "trace.jsonl"
    if not table.is_file():
        raise GristmillError(f"{folder} has no trace.jsonl")
    for line in read_lines(table):
        if line.get("run_id") == run:
            return Trace(line)
    raise GristmillError(f"{folder} has no run {run}")
