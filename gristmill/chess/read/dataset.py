"""The dataset that training imports: samples of one or many game datasets.

The caches are memory-mapped. A sample is a row that is read at its offset and cut at its splice
index. Only `tensors` imports torch. Source: docs/formats/chess.md#reading-contract
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format import rows
from gristmill.chess.format.names import CACHE_FOLDER, CACHE_MANIFEST, STATS, split_file
from gristmill.chess.read.collate import Sample, collate, columns_of
from gristmill.chess.read.months import (
    MonthFolders,
    OpenMonth,
    StaleCache,
    made_samples,
    open_month,
    read_manifest,
    reason_against_cache,
    stale,
)
from gristmill.chess.read.move_vocabulary import moves_in, packed_words
from gristmill.chess.read.packed import ids_of, packed_columns
from gristmill.chess.read.samples import SampleArrays
from gristmill.contract import BadInput
from gristmill.loading.source import Source
from gristmill.reading import StaleDataset
from gristmill.reading.folder import Opening
from gristmill.reading.generation import Verify
from gristmill.reading.reader import Reader, located
from gristmill.reading.sample_numbers import number_of, numbers_of
from gristmill.reading.torch_batch import SampleBatch

if TYPE_CHECKING:
    from gristmill.chess.read.torch_samples import TorchSamples

__all__ = ["GameSpliceDataset", "Sample", "StaleCache", "StaleDataset"]


class GameSpliceDataset(Reader[list[OpenMonth]]):
    """Samples of one split of one or many game datasets, in order; a map-style dataset.

    dataset_dirs: folders of `build_game_dataset`, one a month.
    split: `train` (the default), `val` or `test`.
    horizon: plies of a sample's target at most; 1 (the default) gives the label alone.
    config: which samples there are; None (the default) for the config that the months
        were built for, which must be the same in all.
    require_cache: raise BadInput where there is no cache of that config. False (the
        default) makes the same samples from the rows.
    verify: how much is compared with the records: "none", "sizes" (the default) or
        "hash". True is "hash", False is "sizes".

    It belongs to the generations that it was opened on. A worker that loads its pickle
    raises StaleDataset at its first read where a month or its cache was rebuilt.

    `DataLoader(samples, batch_size=64, shuffle=True, num_workers=2)` yields what
    `collate` makes of the samples.

    Raises StaleCache where the rows of a cache or a sidecar have changed, BadInput for
    a damaged file, a missing split, a wrong argument, months that differ, or a missing
    cache.
    """

    def __init__(
        self,
        dataset_dirs: Path | str | Sequence[Path | str],
        split: str = "train",
        *,
        horizon: int = 1,
        config: CacheConfig | None = None,
        require_cache: bool = False,
        verify: Verify | bool = "sizes",
    ) -> None:
        if split not in SPLITS or horizon < 1:
            raise BadInput(split, f"split must be one of {SPLITS} and horizon at least 1")
        folders = [dataset_dirs] if isinstance(dataset_dirs, (str, Path)) else dataset_dirs
        self.dataset_dirs = [located(folder) for folder in folders]
        self.split, self.horizon, self._wanted = split, horizon, config
        self.config = config or CacheConfig()
        self.cached: list[bool] = []
        self._made: list[SampleArrays | None] = []
        self._vocabulary: dict[str, int] | None = None
        self._ids: tuple[Mapping[str, int], NDArray[np.int64]] | None = None
        self._last: tuple[int, int, dict[str, Any]] = (-1, -1, {})
        self._require_cache = require_cache
        self.start(verify)
        self._ends = np.cumsum([len(month.arrays.indices) for month in self.held])

    def open_files(self, opening: Opening) -> list[OpenMonth]:
        """Map the rows and the samples of each month; the first opening finds the samples."""
        folders = [MonthFolders.open(opening, dataset) for dataset in self.dataset_dirs]
        if not opening.first:
            return [
                open_month(month, self.split, made)
                for month, made in zip(folders, self._made, strict=True)
            ]
        if self._wanted is None:
            self.config = config_of([month.admit_config() for month in folders])
        self.cached, self._made = [], []
        for month in folders:
            opening.folder(month.dataset.path)
            why = reason_against_cache(month, self.split, self.config)
            if why and self._require_cache:
                rule = f"Runtime splice cache required but unavailable: {why}"
                raise BadInput(month.dataset.path, rule)
            self.cached.append(not why)
            self._made.append(made_samples(month, self.split, self.config) if why else None)
        return [
            open_month(month, self.split, made)
            for month, made in zip(folders, self._made, strict=True)
        ]

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> Sample:
        """One sample.

        index: number of the sample, from 0; negative numbers count from the end.

        Raises IndexError beyond the ends, TypeError for anything but an integer, BadInput for a
        row without that move.
        """
        index = number_of(index, len(self), "sample")
        number = int(np.searchsorted(self._ends, index, side="right"))
        month = self.held[number]
        at = index - (int(self._ends[number - 1]) if number else 0)
        offset, splice = int(month.arrays.offsets[at]), int(month.arrays.indices[at])
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
            phase=int(month.arrays.phases[at]),
            winner=rows.WINNER_IDS.get(str(row.get("winner_side")), 3),
            side_to_move=(splice + 1) % 2,
        )

    def __getitems__(self, indices: Sequence[int]) -> SampleBatch[Sample]:
        """Samples by number as one batch; a data loader of torch calls it.

        indices: numbers of samples; negative ones count from the end.

        Raises as `self[index]`.
        """
        numbers = numbers_of(indices, len(self), "sample").tolist()
        return SampleBatch(self, numbers, Sample, self._tensors)

    def batch(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        vocabulary: Mapping[str, int] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Samples by number as arrays: the columns of `gristmill.chess.collate`.

        No row is read where all months have packed moves, as those have that were validated by
        code version 7 of `chess/valid_games` or later. Else the samples are made one by one.

        indices: numbers of samples; negative ones count from the end.
        vocabulary: number of each word; None (the default) for `vocabulary()`.

        Raises as `self[index]`.
        """
        numbers = numbers_of(indices, len(self), "sample")
        vocabulary = self._words() if vocabulary is None else vocabulary
        packed = [(month.arrays, month.packed) for month in self.held if month.packed is not None]
        if len(packed) < len(self.held):
            return columns_of([self[n] for n in numbers.tolist()], vocabulary, self.horizon)
        if self._ids is None or self._ids[0] is not vocabulary:
            self._ids = (vocabulary, ids_of(vocabulary))
        return packed_columns(packed, self._ends, numbers, self._ids[1], self.horizon)

    def _tensors(self, indices: Sequence[int]) -> dict[str, Any]:
        import torch

        return {name: torch.from_numpy(found) for name, found in self.batch(indices).items()}

    def vocabulary(self) -> dict[str, int]:
        """The number of each word: `<PAD>` 0, `<UNK>` 1, then the moves of all train games, sorted.

        The first call reads the train games. A pickle made after it has the result, so call it
        before a data loader starts its workers. Raises BadInput where a month has no train games or
        a row cannot be read.
        """
        return dict(self._words())

    def _words(self) -> dict[str, int]:
        if self._vocabulary is None:
            moves: set[str] = set()
            for folder, month in zip(self.dataset_dirs, self.held, strict=True):
                if month.train is None:
                    raise BadInput(
                        split_file(folder, "train"), "is missing; build the dataset again"
                    )
                words = None
                if month.train_moves is not None:
                    with month.train_moves.reading() as path:
                        words = packed_words(path)
                if words is None:
                    with month.train.reading() as path:
                        words = set(moves_in(path))
                moves |= words
            listed = ["<PAD>", "<UNK>", *sorted(moves)]
            self._vocabulary = {word: i for i, word in enumerate(listed)}
        return self._vocabulary

    def collate(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """Samples as padded torch tensors, in the words of `vocabulary()`.

        samples: one or more; a batch of `__getitems__` is not read sample by sample.

        Returns as `gristmill.chess.collate`, with targets of length `horizon`.
        """
        if isinstance(samples, SampleBatch):
            return samples.collated()
        return collate(samples, self._words(), self.horizon)

    def source(self) -> Source:
        """The samples by number, for `gristmill.loading`; columns as `collate`, as arrays.

        Raises GristmillError for months without a record.
        """
        from gristmill.chess.read.source import SpliceSource

        return SpliceSource(self)

    def as_torch(self, vocabulary: Mapping[str, int] | None = None) -> TorchSamples:
        """The samples as a torch Dataset of tensors; needs torch.

        vocabulary: number of each word; None (the default) for `vocabulary()`.

        Raises ValueError for one without `<UNK>`, or in which 0 is not `<PAD>` alone.
        """
        from gristmill.chess.read.torch_samples import TorchSamples

        words = self.vocabulary() if vocabulary is None else vocabulary
        zeros = [word for word, number in words.items() if number == 0]
        if zeros != ["<PAD>"] or "<UNK>" not in words:
            raise ValueError(
                f"a vocabulary has <PAD> as 0, for padding, and <UNK>: in this one 0 is"
                f" {zeros[:3]}, <UNK> is {words.get('<UNK>')}: number it as `vocabulary()` does"
            )
        return TorchSamples(self, words)

    def tensors(self, index: int, vocabulary: Mapping[str, int]) -> dict[str, Any]:
        """One sample as torch tensors, int64 unless another dtype is named.

        index: number of the sample, as for `self[index]`.
        vocabulary: number of each word, as `vocabulary()` returns it.

        Returns context [plies], target [horizon] padded with 0, target_mask [horizon]
        bool, and the scalars phase, winner, side_to_move.
        Raises as `self[index]`.
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
        return {**super().__getstate__(), "_last": (-1, -1, {}), "_ids": None}


def _of_cache(cache: Path) -> CacheConfig:
    try:
        recorded: Mapping[str, Any] = read_manifest(cache)["config"]
        return CacheConfig(
            min_context=int(recorded["min_context"]),
            min_target=int(recorded["min_target"]),
            max_samples_per_game=int(recorded["max_samples_per_game"]),
            seed=int(recorded["seed"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error


def _of_stats(stats: Path) -> CacheConfig:
    try:
        recorded = json.loads(stats.read_bytes())
        defaults = recorded["runtime_splice_defaults"]
        return CacheConfig(
            min_context=int(defaults["min_context"]),
            min_target=int(defaults["min_target"]),
            seed=int(recorded["split_seed"]),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BadInput(
            stats, f"does not say which samples the dataset is for ({error!r}); pass a config"
        ) from error


def _config_of(dataset: Path) -> CacheConfig:
    """The config of the dataset's cache, else the defaults of its `stats.json`."""
    cache = dataset / CACHE_FOLDER
    if (cache / CACHE_MANIFEST).exists():
        return _of_cache(cache)
    return _of_stats(dataset / STATS)


def config_of(datasets: Sequence[Path]) -> CacheConfig:
    """The config that these months have in common; the default config for no month."""
    first: tuple[Path, CacheConfig] | None = None
    for dataset in datasets:
        config = _config_of(dataset)
        if first is None:
            first = (dataset, config)
            continue
        expected, recorded = first[1].contract(), config.contract()
        if not config.max_samples_per_game:
            # Without a cap nothing is drawn, so the seed has no effect.
            expected["seed"] = recorded["seed"]
        if expected != recorded:
            raise BadInput(
                dataset,
                f"is for samples of {config.contract()}, {first[0]} of {first[1].contract()}; "
                "pass the config that is wanted for all",
            )
    return first[1] if first else CacheConfig()


def opened(
    folders: Sequence[Path], *, split: Literal["train", "val", "test"] = "train", horizon: int = 1
) -> Source:
    """Months of game datasets as one source; arguments as `GameSpliceDataset`."""
    return GameSpliceDataset(folders, split, horizon=horizon).source()
