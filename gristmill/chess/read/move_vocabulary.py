"""The vocabulary of a splice cache: the numbered moves of the train games.

Source: docs/formats/chess.md#vocabulary
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
from gristmill.chess.format import folders
from gristmill.chess.format.folders import VOCABULARY, split_file
from gristmill.chess.format.rows import VOCAB_KIND
from gristmill.chess.read.phases import NO_MOVE, unpack_move
from gristmill.chess.read.row_batches import row_ranges, rows_in

_RANGE_BYTES = 4 << 20
_MOVES_A_READ = 1 << 22


def moves_in(path: Path) -> list[str]:
    """The distinct moves of a JSONL file of games, sorted."""
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


def packed_words(path: Path) -> set[str] | None:
    """The distinct moves of a file of packed moves; None where one is no move of the rules."""
    seen = np.zeros(1 << 16, np.bool_)
    with path.open("rb") as file:
        while len(moves := np.fromfile(file, folders.MOVE, _MOVES_A_READ)):
            seen[moves] = True
    return None if seen[NO_MOVE] else {unpack_move(move) for move in np.flatnonzero(seen).tolist()}


def words_of_train(dataset: Path) -> list[str]:
    """The words of a dataset's vocabulary, in order: two marks, then the moves of its train games.

    dataset: folder of the game dataset. Its packed moves are read where they are, else its rows.
    """
    packed = folders.moves_file(dataset, "train")
    moves = packed_words(packed) if packed.exists() else None
    if moves is None:
        return ["<PAD>", "<UNK>", *moves_in(split_file(dataset, "train"))]
    return ["<PAD>", "<UNK>", *sorted(moves)]


def write_vocabulary(
    dataset: Path,
    out: Path,
    config: CacheConfig,
    counted: Mapping[str, Mapping[str, Any]],
    now: datetime,
    home: Path,
) -> int:
    """Write the vocabulary file of a cache."""
    words = words_of_train(dataset)
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
