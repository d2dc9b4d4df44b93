"""What is in a folder of this family, for `gristmill verify` of a folder without a record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.chess.config import SPLITS
from gristmill.chess.format.names import (
    CACHE_MANIFEST,
    DROPPED,
    FLAGGED,
    INVALID,
    LAYOUT,
    STATS,
    SUBSET,
    SUMMARY,
    VALID,
    split_file,
)
from gristmill.reading.reader import array_fact, file_facts

_ROWS = (VALID, INVALID, FLAGGED, *(split_file(Path(), split).name for split in SPLITS), DROPPED)


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the files with their rows, the arrays of a cache, and the numbers of its reports."""
    yield from file_facts(folder, sorted(path.name for path in folder.glob("*.pgn")))
    yield from file_facts(folder, _ROWS)
    for split in SPLITS if asset == "chess/splice_cache" else ():
        for name, dtype in LAYOUT.items():
            yield array_fact(f"{split}/{name}", np.fromfile(folder / split / name, dtype))
    for name in (SUMMARY, STATS, CACHE_MANIFEST, SUBSET):
        if (folder / name).is_file():
            yield from _numbers(name, json.loads((folder / name).read_bytes()))


def _numbers(name: str, report: object) -> Iterator[str]:
    """The numbers of a report and of the objects in it, those of each object in one line."""
    if not isinstance(report, dict):
        return
    own = [f"{key} {value:,}" for key, value in report.items() if type(value) in (int, float)]
    if own:
        yield f"{name}: {', '.join(own)}"
    for key, value in report.items():
        if key != "files":
            yield from _numbers(f"{name} {key}", value)
