"""Which asset's laws and views a dataset without a record takes, by its files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.puzzles.format.names import IDENTIFIERS, SPLITS, metadata
from gristmill.puzzles.raw.recipes import CONFIGS
from gristmill.puzzles.read.rows import Dataset

_KIND_OF_SHAPE: Final = {(12, 900): "arc", (11, 81): "sudoku", (6, 900): "maze", (8, 72): "domino"}
"""The kind of a dataset without a trace, by vocab_size and seq_len."""


def asset_of(folder: Path) -> str | None:
    """The key of the kind of a folder, `puzzles/other` for another puzzle; None for no dataset.

    folder: any path; it need not exist.
    """
    if not all((folder / name).is_file() for name in (IDENTIFIERS, *map(metadata, SPLITS))):
        return None
    try:
        data = Dataset(folder)
        shape = data.metadata("train").vocab_size, data.metadata("train").seq_len
        kind = data.kind or _KIND_OF_SHAPE.get(shape)
    except GristmillError:
        return None
    return f"puzzles/{kind if kind in CONFIGS else 'other'}"
