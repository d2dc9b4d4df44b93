"""The dataset of TRM: a list of folders, whose metadata must agree and whose numbers are added."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.puzzles.read.plain_reader import Item, PlainReader

_KEYS = {
    "pad_id": (int,),
    "ignore_label_id": (int, type(None)),
    "blank_identifier_id": (int,),
    "vocab_size": (int,),
    "seq_len": (int,),
    "num_puzzle_identifiers": (int,),
    "total_groups": (int,),
    "mean_puzzle_examples": (float, int),
    "total_puzzles": (int,),
    "sets": (list,),
}
_AGREE = (
    *("seq_len", "vocab_size", "pad_id", "ignore_label_id", "blank_identifier_id", "sets"),
    "num_puzzle_identifiers",
)


def metadata(folder: Path, split: str) -> dict[str, Any]:
    """The metadata of a split. Raises AssertionError for a missing key, and for a wrong type."""
    read: dict[str, Any] = json.loads((folder / split / "dataset.json").read_text())
    for key, types in _KEYS.items():
        assert key in read, f"{key}: Field required"
        assert type(read[key]) in types, key
    return read


class TrmReader:
    """Batches of a split of several folders; those behind the first one have sets `all1`, ..."""

    def __init__(self, folders: Sequence[Path], split: str, **options: Any) -> None:
        described = [metadata(folder, split) for folder in folders]
        for other in described[1:]:
            for key in _AGREE:
                assert other[key] == described[0][key], key
        puzzles = sum(each["total_puzzles"] for each in described)
        weighted = (each["mean_puzzle_examples"] * each["total_puzzles"] for each in described)
        self.metadata = {
            **described[0],
            "num_puzzle_identifiers": sum(each["num_puzzle_identifiers"] for each in described),
            "total_groups": sum(each["total_groups"] for each in described),
            "total_puzzles": puzzles,
            "mean_puzzle_examples": sum(weighted) / puzzles,
        }
        self._readers = [PlainReader(folder, split, **options) for folder in folders]

    def __iter__(self) -> Iterator[Item]:
        for number, reader in enumerate(self._readers):
            for name, batch, size in reader:
                yield f"{name}{number or ''}", batch, size
