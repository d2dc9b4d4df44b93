"""The dataset that training imports: samples of one or many game datasets.

The caches are memory-mapped. A sample is a row that is read at its offset and
cut at its splice index (docs/formats/chess.md#reading-contract). Only `tensors`
imports torch.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format import rows
from gristmill.chess.format.cache_arrays import LAYOUT
from gristmill.chess.format.names import CACHE_FOLDER, CACHE_MANIFEST, split_file
from gristmill.chess.read.month_config import config_of
from gristmill.chess.read.move_vocabulary import moves_in
from gristmill.chess.read.samples import sample_arrays
from gristmill.chess.read.staleness import StaleCache, check_cache, check_sidecar
from gristmill.contract import BadInput

__all__ = ["GameSpliceDataset", "Sample", "StaleCache"]


@dataclass(frozen=True)
class Sample:
    """One splice of a game.

    game_id: id of the game.
    context: moves up to the splice, in UCI.
    next_move: the label.
    target: the label and the moves after it, at most `horizon` plies.
    phase: phase id of the position after the context.
    winner: 0 white, 1 black, 2 draw, 3 other.
    side_to_move: 0 white, 1 black.
    """

    game_id: str
    context: list[str]
    next_move: str
    target: list[str]
    phase: int
    winner: int
    side_to_move: int


@dataclass
class _Month:
    """One split of a dataset: its rows and its sample arrays, each [samples]."""

    jsonl: Path
    offsets: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    phases: NDArray[np.uint8]
    text: mmap.mmap | None = None

    def row(self, offset: int) -> dict[str, Any]:
        """The row that starts at a byte offset."""
        if self.text is None:
            with self.jsonl.open("rb") as file:
                self.text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = self.text.find(b"\n", offset)
        row: dict[str, Any] = json.loads(self.text[offset : end if end >= 0 else None])
        return row

    def __getstate__(self) -> dict[str, Any]:
        # A map cannot be pickled; each worker of a data loader opens its own.
        return {**self.__dict__, "text": None}


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r")


class GameSpliceDataset:
    """Samples of one split of one or many game datasets, in order; a map-style dataset.

    dataset_dirs: folders of `build_game_dataset`, one a month.
    split: `train` (the default), `val` or `test`.
    horizon: plies of a sample's target at most; 1 (the default) gives the label alone.
    config: which samples there are; None (the default) for the config that the months
        were built for, which must be the same in all.
    require_cache: raise BadInput where there is no cache of that config. False (the
        default) makes the same samples from the rows.
    verify: compare the sha256 of the rows with the cache or the sidecar; True by
        default. Their size is always compared.

    Raises StaleCache where the rows of a cache or a sidecar have changed, BadInput for
    a missing split, a wrong argument, months that differ, or a missing cache.
    Source: docs/formats/chess.md#reading-contract, docs/formats/chess.md#staleness-checks
    """

    def __init__(
        self,
        dataset_dirs: Path | str | Sequence[Path | str],
        split: str = "train",
        *,
        horizon: int = 1,
        config: CacheConfig | None = None,
        require_cache: bool = False,
        verify: bool = True,
    ) -> None:
        if split not in SPLITS or horizon < 1:
            raise BadInput(split, f"split must be one of {SPLITS} and horizon at least 1")
        folders = [dataset_dirs] if isinstance(dataset_dirs, (str, Path)) else dataset_dirs
        self.dataset_dirs = [Path(folder) for folder in folders]
        self.split, self.horizon = split, horizon
        self.config = config_of(self.dataset_dirs) if config is None else config
        self.cached: list[bool] = []
        self._months: list[_Month] = []
        for folder in self.dataset_dirs:
            self._add(folder, require_cache, verify)
        self._ends = np.cumsum([len(month.indices) for month in self._months])
        self._last: tuple[int, int, dict[str, Any]] = (-1, -1, {})

    def _add(self, dataset: Path, require_cache: bool, verify: bool) -> None:
        jsonl, cache = split_file(dataset, self.split), dataset / CACHE_FOLDER
        if not jsonl.is_file():
            raise BadInput(jsonl, "is missing; build the game dataset first")
        why = f"there is no {CACHE_FOLDER}/"
        if (cache / CACHE_MANIFEST).exists():
            why = check_cache(cache, dataset, self.split, self.config, verify)
        if not why:
            _, offsets, indices, phases = (
                _mapped(cache / self.split / name, dtype) for name, dtype in LAYOUT.items()
            )
        elif require_cache:
            raise BadInput(dataset, f"Runtime splice cache required but unavailable: {why}")
        else:
            check_sidecar(dataset, self.split, verify)
            offsets, indices, phases = sample_arrays(dataset, self.split, self.config)
        self.cached.append(not why)
        self._months.append(_Month(jsonl, offsets, indices, phases))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> Sample:
        """One sample.

        index: number of the sample, from 0; negative numbers count from the end.

        Raises IndexError beyond the ends, BadInput for a row without that move.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        number = int(np.searchsorted(self._ends, index, side="right"))
        month = self._months[number]
        at = index - (int(self._ends[number - 1]) if number else 0)
        offset, splice = int(month.offsets[at]), int(month.indices[at])
        if self._last[:2] != (number, offset):
            self._last = (number, offset, month.row(offset))
        row = self._last[2]
        moves = rows.moves_of(row)
        if splice + 1 >= len(moves):
            raise BadInput(month.jsonl, f"the game at byte {offset} has no move {splice + 1}")
        return Sample(
            game_id=str(row.get("game_id", "")),
            context=moves[: splice + 1],
            next_move=moves[splice + 1],
            target=moves[splice + 1 : splice + 1 + self.horizon],
            phase=int(month.phases[at]),
            winner=rows.WINNER_IDS.get(str(row.get("winner_side")), 3),
            side_to_move=(splice + 1) % 2,
        )

    def vocabulary(self) -> dict[str, int]:
        """The number of each word: `<PAD>` 0, `<UNK>` 1, then the moves of all train games, sorted.

        Source: docs/formats/chess.md#vocabulary
        """
        moves: set[str] = set()
        for folder in self.dataset_dirs:
            moves.update(moves_in(split_file(folder, "train")))
        return {word: i for i, word in enumerate(["<PAD>", "<UNK>", *sorted(moves)])}

    def tensors(self, index: int, vocabulary: Mapping[str, int]) -> dict[str, Any]:
        """One sample as torch tensors, int64 unless another dtype is named.

        index: number of the sample, from 0.
        vocabulary: number of each word, as `vocabulary()` returns it.

        Returns context [plies], target [horizon] padded with 0, target_mask [horizon]
        bool, and the scalars phase, winner, side_to_move.
        Raises IndexError beyond the ends, BadInput for a row without that move.
        """
        import torch

        sample = self[index]
        unknown = vocabulary["<UNK>"]
        target = [vocabulary.get(move, unknown) for move in sample.target]
        missing = self.horizon - len(target)
        return {
            "context": torch.tensor([vocabulary.get(move, unknown) for move in sample.context]),
            "target": torch.tensor(target + [0] * missing),
            "target_mask": torch.tensor([True] * len(target) + [False] * missing),
            "phase": torch.tensor(sample.phase),
            "winner": torch.tensor(sample.winner),
            "side_to_move": torch.tensor(sample.side_to_move),
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": (-1, -1, {})}
