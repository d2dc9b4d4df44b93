"""Rows of grids for tests."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.json_lines import jsonl


def row(seed: int, rows: int = 2, columns: int = 3, most: int = 4, **keys: Any) -> dict[str, Any]:
    """An example of random cells, whose output has each value one higher, modulo `most`."""
    cells = np.random.default_rng(seed).integers(0, most, (rows, columns))
    return {"input": cells.tolist(), "output": ((cells + 1) % most).tolist(), **keys}


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSONL; returns the folder of the file."""
    return jsonl(path, rows).parent
