"""The vocabulary of a splice cache: the numbered moves of the train games.

Rules: docs/formats/chess.md#vocabulary
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import CacheConfig
from gristmill.chess.format.names import VOCABULARY, split_file
from gristmill.chess.format.rows import VOCAB_KIND
from gristmill.chess.read.phases import NO_MOVE, unpack_move
from gristmill.chess.read.row_batches import row_ranges, rows_in

_RANGE_BYTES = 4 << 20


def moves_in(path: Path) -> list[str]:
    """The distinct moves of a JSONL file of games, sorted.

    path: the JSONL file.

    Raises BadInput with the row number where a row cannot be read.
    """
    from gristmill.chess.kernels import rowshape

    seen = np.zeros(1 << 16, dtype=np.bool_)
    other: set[str] = set()
    for byte_range in row_ranges(path, _RANGE_BYTES, None):
        _, columns, moves, uci = rows_in(byte_range)
        seen[moves] = True
        if seen[NO_MOVE]:
            seen[NO_MOVE] = False
            for start, end in columns[:, [rowshape.UCI0, rowshape.UCI1]].tolist():
                other.update(uci[start:end].decode().split())
    return sorted({unpack_move(move) for move in np.flatnonzero(seen).tolist()} | other)


def write_vocabulary(
    dataset: Path,
    out: Path,
    config: CacheConfig,
    counted: Mapping[str, Mapping[str, Any]],
    now: datetime,
    home: Path,
) -> int:
    """Write the vocabulary file of a cache.

    Returns the number of words. Raises BadInput with the row number where a row cannot be read.
    """
    words = ["<PAD>", "<UNK>", *moves_in(split_file(dataset, "train"))]
    meta = {
        "kind": VOCAB_KIND,
        "generated_at_utc": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "dataset_dir": os.path.abspath(home),  # noqa: PTH100
        "config": config.contract(),
        "splits": {
            split: {
                "path": f"{split}.jsonl",
                "game_rows": counted[split]["games"],
                "sample_rows": counted[split]["samples"],
            }
            for split in ("train", "val")
        },
        "vocab": {word: number for number, word in enumerate(words)},
        "vocab_size": len(words),
    }
    (out / VOCABULARY).write_text(json.dumps(meta, indent=2) + "\n")
    return len(words)
