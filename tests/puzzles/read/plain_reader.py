"""The reader of section 2 of the specification as a Python loop: the oracle, and the slow side.

It reads with `np.load`, draws one puzzle at a time, and chooses among the examples of a puzzle by
NumPy's global generator, as the original does.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = ("inputs", "labels", "puzzle_identifiers", "puzzle_indices", "group_indices")

Item = tuple[str, dict[str, Any], int]


class PlainReader:
    """Batches of a split; `iter` is the next pass."""

    def __init__(
        self,
        folder: Path,
        split: str,
        *,
        seed: int,
        size: int,
        test: bool,
        epochs: int = 1,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.metadata = json.loads((folder / split / "dataset.json").read_text())
        self.sets = {
            name: {
                field: np.load(
                    folder / split / f"{name}__{field}.npy",
                    mmap_mode="r" if field in ("inputs", "labels") else None,
                )
                for field in FIELDS
            }
            for name in self.metadata["sets"]
        }
        self.seed, self.size, self.test, self.epochs = seed, size, test, epochs
        self.rank, self.own = rank, size // ranks
        self.iterations = 0

    def __iter__(self) -> Iterator[Item]:
        for name, arrays in self.sets.items():
            yield from self._in_order(name, arrays) if self.test else self._train(name, arrays)

    def _train(self, name: str, arrays: dict[str, Any]) -> Iterator[Item]:
        self.iterations += 1
        random = np.random.Generator(np.random.Philox(seed=self.seed + self.iterations))
        groups = len(arrays["group_indices"]) - 1
        order = np.concatenate([random.permutation(groups) for _ in range(self.epochs)])
        place = 0
        while place < len(order):
            rows, owners, filled = [], [], 0
            while place < len(order) and filled < self.size:
                group = order[place]
                place += 1
                puzzle = random.integers(
                    arrays["group_indices"][group], arrays["group_indices"][group + 1]
                )
                first = arrays["puzzle_indices"][puzzle]
                count = int(arrays["puzzle_indices"][puzzle + 1] - first)
                taken = min(count, self.size - filled)
                rows.append(first + np.random.choice(count, taken, replace=False))
                owners.append(np.full(taken, puzzle, np.int32))
                filled += taken
            if filled < self.size:
                return
            own = slice(self.rank * self.own, (self.rank + 1) * self.own)
            yield (
                name,
                self._batch(arrays, np.concatenate(rows)[own], np.concatenate(owners)[own]),
                filled,
            )

    def _in_order(self, name: str, arrays: dict[str, Any]) -> Iterator[Item]:
        total = len(arrays["inputs"])
        for first in range(0, total, self.size):
            end = min(total, first + self.size)
            start = min(first + self.rank * self.own, end)
            stop = min(first + (self.rank + 1) * self.own, end)
            owners = []
            indices = arrays["puzzle_indices"]
            for example in range(start, stop):
                # A number of another type would have NumPy copy the whole array.
                wanted = indices.dtype.type(example)
                owners.append(int(np.searchsorted(indices, wanted, side="right")) - 1)
            yield (
                name,
                self._batch(arrays, slice(start, stop), np.array(owners, np.int64)),
                end - first,
            )

    def _batch(self, arrays: dict[str, Any], rows: Any, owners: Any) -> dict[str, Any]:
        batch = {
            "inputs": arrays["inputs"][rows].astype(np.int32),
            "labels": arrays["labels"][rows].astype(np.int32),
            "puzzle_identifiers": arrays["puzzle_identifiers"][owners].astype(np.int32),
        }
        if self.metadata["ignore_label_id"] is not None:
            batch["labels"][batch["labels"] == self.metadata["ignore_label_id"]] = -100
        missing = self.own - len(owners)
        if missing:
            fillers = (self.metadata["pad_id"], -100, self.metadata["blank_identifier_id"])
            for (field, array), filler in zip(list(batch.items()), fillers, strict=True):
                widths = [(0, missing)] + [(0, 0)] * (array.ndim - 1)
                batch[field] = np.pad(array, widths, constant_values=filler)
        return batch
