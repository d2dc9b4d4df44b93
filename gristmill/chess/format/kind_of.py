"""Telling the folders of the chess family apart, without importing what reads them."""

from __future__ import annotations

import json
from pathlib import Path


def kind_of(path: Path) -> str | None:
    """What a chess folder is: validated, dataset, splices or cache; None for any other folder."""
    if (path / "valid_games.jsonl").is_file():
        return "validated"
    if (path / "train" / "splice_indices.u32.bin").is_file():
        return "cache"
    if (path / "train.jsonl").is_file() and (path / "stats.json").is_file():
        stats = json.loads((path / "stats.json").read_bytes())
        return "dataset" if "dataset_format" in stats else "splices"
    return None
