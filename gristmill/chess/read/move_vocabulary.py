"""The vocabulary of a splice cache: numbered train moves (docs/formats/chess.md#vocabulary)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import CacheConfig
from gristmill.chess.format.rows import VOCAB_KIND
from gristmill.chess.read.phases import NO_MOVE, unpack_move
from gristmill.chess.read.row_batches import find_block, shares

VOCABULARY = "vocab_rows_meta.json"
_SHARE_BYTES = 4 << 20


def moves_in(path: Path) -> list[str]:
    """The distinct moves of a game file, sorted."""
    from gristmill.chess.kernels import rowshape

    seen = np.zeros(1 << 16, dtype=np.bool_)
    other: set[str] = set()
    for share in shares(path, _SHARE_BYTES, None):
        _, found, moves, uci = find_block(share)
        seen[moves] = True
        if seen[NO_MOVE]:
            seen[NO_MOVE] = False
            for begin, end in found[:, [rowshape.UCI0, rowshape.UCI1]].tolist():
                other.update(uci[begin:end].decode().split())
    return sorted({unpack_move(move) for move in np.flatnonzero(seen).tolist()} | other)


def write_vocabulary(
    dataset: Path,
    out: Path,
    config: CacheConfig,
    counted: Mapping[str, Mapping[str, Any]],
    now: datetime,
    home: Path,
) -> int:
    """Write vocab_rows_meta.json into the cache folder; returns the size of the vocabulary."""
    words = ["<PAD>", "<UNK>", *moves_in(dataset / "train.jsonl")]
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
