"""What training imports: samples of one or many game datasets, spliced as they are read.

The caches are memory-mapped; a sample is a row read at its offset and cut at
its splice index (docs/formats/chess.md#reading-contract). torch is imported by `tensors` alone.
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
from gristmill.chess.format.names import CACHE_FOLDER, CACHE_MANIFEST
from gristmill.chess.read.move_vocabulary import moves_in
from gristmill.chess.read.samples import LAYOUT, sample_arrays
from gristmill.chess.read.staleness import StaleCache, check_cache, check_sidecar, config_of
from gristmill.contract import BadInput

__all__ = ["GameSpliceDataset", "Sample", "StaleCache"]


@dataclass(frozen=True)
class Sample:
    """One splice of a game.

    context: moves up to the splice. next_move: the label. target: the label and
    what follows, at most `horizon` plies. phase: id of the position after the
    context. winner: 0 white, 1 black, 2 draw, 3 other. side_to_move: 0 white, 1 black.
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
    """One dataset's split: its rows and its sample arrays."""

    jsonl: Path
    offsets: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    phases: NDArray[np.uint8]
    text: mmap.mmap | None = None

    def row(self, offset: int) -> dict[str, Any]:
        if self.text is None:
            with self.jsonl.open("rb") as file:
                self.text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = self.text.find(b"\n", offset)
        row: dict[str, Any] = json.loads(self.text[offset : end if end >= 0 else None])
        return row

    def __getstate__(self) -> dict[str, Any]:
        # A map does not pickle; a worker of a data loader opens its own.
        return {**self.__dict__, "text": None}


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r")


class GameSpliceDataset:
    """Samples of a split of one or many game datasets, in order; a map-style dataset.

    dataset_dirs: folders of `build_game_dataset`, one a month. horizon: plies of
    a sample's target at most (1: the label alone). config: which samples there
    are; None for what the months were built with (of the cache's manifest, else
    of stats.json), which must be the same for all. A cache of that config is used
    where there is one; else the samples are spliced at run time, and are the
    same. require_cache: refuse to do so. verify: hash the rows that a cache or
    the sidecar says it is of (their size is always compared).

    Raises StaleCache for a cache or sidecar whose rows changed, BadInput for a
    missing split, a bad argument, months that disagree, or (require_cache) no
    fitting cache.
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
        jsonl, cache = dataset / f"{self.split}.jsonl", dataset / CACHE_FOLDER
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
        """Sample number `index`. Raises IndexError beyond the end, BadInput for a bad row."""
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
        """`<PAD>` 0, `<UNK>` 1, then all moves of the datasets' train games, sorted."""
        moves: set[str] = set()
        for folder in self.dataset_dirs:
            moves.update(moves_in(folder / "train.jsonl"))
        return {word: i for i, word in enumerate(["<PAD>", "<UNK>", *sorted(moves)])}

    def tensors(self, index: int, vocabulary: Mapping[str, int]) -> dict[str, Any]:
        """Sample `index` as torch tensors: int64 ids, the target padded with 0 to `horizon`.

        context [plies], target [horizon], target_mask [horizon] bool, and the
        scalars phase, winner, side_to_move.
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
