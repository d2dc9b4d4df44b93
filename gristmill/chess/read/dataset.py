"""The dataset that training imports: samples of one or many game datasets.

The caches are memory-mapped. A sample is a row that is read at its offset and cut at its splice
index. A cache or a sidecar that was not built from the rows next to it is refused; the laws check
whole folders. Only `tensors` imports torch.
Source: docs/formats/chess.md#reading-contract and docs/formats/chess.md#staleness-checks
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format import folders, rows
from gristmill.chess.read.row_batches import moves_in, packed_words
from gristmill.chess.read.samples import (
    PackedGames,
    Sample,
    SampleArrays,
    collate,
    columns_of,
    ids_of,
    mapped,
    open_packed,
    packed_columns,
    sample_arrays,
    tensors,
)
from gristmill.contract import BadInput, GristmillError, Trace
from gristmill.hashing import sha256_file
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, Source, identity_of
from gristmill.reading import StaleDataset
from gristmill.reading.folder import HeldFile, OpenFolder, Opening, Verify, made_from_another
from gristmill.reading.reader import Reader, located
from gristmill.reading.sample_numbers import number_of, numbers_of
from gristmill.reading.torch_batch import SampleBatch

if TYPE_CHECKING:
    from gristmill.chess.read.torch_samples import TorchSamples
    from gristmill.families import Request

__all__ = ["GameSpliceDataset", "Sample", "StaleCache", "StaleDataset"]


class StaleCache(GristmillError):
    """A splice cache or a sidecar was not built from the rows next to it."""


def stale(cache: Path, why: str) -> StaleCache:
    """The error for a cache that must be built again."""
    return StaleCache(f"{cache}: {why}; build the cache of this dataset again")


def _changed(jsonl: Path, size: int, sha256: str, current: str | None) -> bool:
    """Whether a file has another size or, where its sha256 is known, other bytes than recorded."""
    return jsonl.stat().st_size != size or current not in (None, sha256)


def read_manifest(cache: Path) -> dict[str, Any]:
    """The manifest of a splice cache (docs/formats/chess.md#manifest), or StaleCache."""
    try:
        manifest = json.loads((cache / folders.CACHE_MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != rows.CACHE_KIND:
        raise stale(cache, f"its manifest is not of kind {rows.CACHE_KIND!r}")
    return manifest


def check_cache(
    cache: Path, dataset: Path, split: str, config: CacheConfig, sha256: str | None
) -> str:
    """How the config of a cache differs, "" for not; StaleCache where it is not of these rows.

    sha256: of the rows; None to compare only their size.
    """
    manifest = read_manifest(cache)
    try:
        entry = manifest["splits"][split]
        recorded = dict(entry.get("config", manifest["config"]))
        samples = int(entry["sample_rows_total"])
        source = entry.get("source")
        expected = source and (int(source["size_bytes"]), str(source["sha256"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error
    for name, dtype in folders.LAYOUT.items():
        path = cache / split / name
        if not path.exists() or path.stat().st_size != samples * np.dtype(dtype).itemsize:
            raise stale(cache, f"{split}/{name} does not have the manifest's {samples} samples")
    if not expected:
        raise stale(cache, "its manifest does not name the rows that it was built from")
    if _changed(folders.split_file(dataset, split), *expected, sha256):
        raise stale(cache, f"{split}.jsonl has changed since the cache was built")
    wanted = config.contract()
    if not config.max_samples_per_game and not recorded.get("max_samples_per_game"):
        # Without a cap nothing is drawn, so the seed has no effect.
        wanted["seed"] = recorded.get("seed", 0)
    return "" if recorded == wanted else f"its config is {recorded}, wanted {wanted}"


def check_sidecar(dataset: Path, split: str, sha256: str | None) -> None:
    """Check that a sidecar was built from this split's rows; a dataset without one is right."""
    # The reader takes offsets and phases from the sidecar without parsing the rows,
    # so a changed row would give samples of no game.
    if folders.Sidecar.open(dataset, split) is None:
        return
    jsonl = folders.split_file(dataset, split)
    remedy = f"build the dataset again, or remove {folders.FOLDER}/ to have the games replayed"
    try:
        entry = folders.read_rows(dataset)[split]
        expected = (int(entry["bytes"]), str(entry["sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        where = folders.rows_file(dataset)
        raise StaleCache(
            f"{where}: does not name the rows of {split} ({error!r}); {remedy}"
        ) from error
    if _changed(jsonl, *expected, sha256):
        raise StaleCache(f"{jsonl}: has changed since its sidecar was written; {remedy}")


@dataclass(frozen=True)
class MonthFolders:
    """The open folders of a month: its game dataset, and its splice cache or None."""

    dataset: OpenFolder
    cache: OpenFolder | None

    @staticmethod
    def open(opening: Opening, path: Path) -> MonthFolders:
        """Open the folders of the game dataset at `path`; raises as `Opening.folder`."""
        dataset = opening.folder(path)
        if not dataset.has(f"{folders.CACHE_FOLDER}/{folders.CACHE_MANIFEST}"):
            return MonthFolders(dataset, None)
        return MonthFolders(dataset, opening.folder(path / folders.CACHE_FOLDER, within=dataset))

    def admit_config(self) -> Path:
        """Check the file that says which samples the month is for; returns the dataset's folder."""
        if self.cache is not None:
            self.cache.file(folders.CACHE_MANIFEST)
        elif self.dataset.has(folders.STATS):
            self.dataset.file(folders.STATS)
        return self.dataset.inside


@dataclass(frozen=True)
class OpenMonth:
    """One split of a month; packed: None where it has none, as train and its packed moves."""

    jsonl: Path
    text: mmap.mmap | bytes
    arrays: SampleArrays
    packed: PackedGames | None
    train: HeldFile | None
    train_moves: HeldFile | None

    def row(self, offset: int) -> dict[str, Any]:
        """The row that starts at a byte offset; BadInput where there is none."""
        if offset >= len(self.text):
            raise BadInput(self.jsonl, f"has no byte {offset}, where a sample has its game")
        end = self.text.find(b"\n", offset)
        try:
            row = json.loads(self.text[offset : end if end >= 0 else None])
            if not isinstance(row, dict):
                raise ValueError("it is no object")
        except (ValueError, RecursionError) as error:
            rule = f"has no row at byte {offset} ({error}): build the dataset and its cache again"
            raise BadInput(self.jsonl, rule) from error
        return row


def reason_against_cache(month: MonthFolders, split: str, config: CacheConfig) -> str:
    """Why the month's cache is not used for these samples; an empty text if it is used."""
    dataset, cache = month.dataset, month.cache
    if not dataset.has(f"{split}.jsonl"):
        raise BadInput(dataset.path / f"{split}.jsonl", "is missing; build the game dataset first")
    if cache is None:
        return f"there is no {folders.CACHE_FOLDER}/"
    cache.file(folders.CACHE_MANIFEST)
    sha256 = _sha256_of_rows(dataset, split)
    if why := check_cache(cache.inside, dataset.inside, split, config, sha256):
        return why
    if made_from_another(cache, dataset):
        raise stale(cache.path, f"it was built from another version of {dataset.path}")
    return ""


def made_samples(month: MonthFolders, split: str, config: CacheConfig) -> SampleArrays:
    """The samples of a split, made without a cache."""
    dataset = month.dataset
    dataset.file(f"{split}.jsonl")
    names = [f"{folders.FOLDER}/{split}.{kind}.bin" for kind in ("games", "phases")]
    if all(dataset.has(name) for name in names):
        for name in [*names, f"{folders.FOLDER}/rows.json"]:
            if dataset.has(name):
                dataset.file(name)
    check_sidecar(dataset.inside, split, _sha256_of_rows(dataset, split))
    return sample_arrays(dataset.inside, split, config)


def _sha256_of_rows(dataset: OpenFolder, split: str) -> str | None:
    """The sha256 of the rows by the record; without one it is computed if hashes are wanted."""
    rows = dataset.file(f"{split}.jsonl")
    if dataset.record is None and dataset.level == "hash":
        return sha256_file(rows)
    return dataset.sha256(f"{split}.jsonl")


def open_month(month: MonthFolders, split: str, made: SampleArrays | None) -> OpenMonth:
    """Map the rows and the cached samples of a split."""
    dataset = month.dataset
    if made is None:
        made = _cached_samples(month, split)
    train, train_moves = (
        dataset.keep(name) if dataset.has(name) else None
        for name in ("train.jsonl", f"{folders.FOLDER}/train.moves.u16.bin")
    )
    packed = None if made.games is None else open_packed(dataset, split, made.games)
    if packed is not None:
        dataset.file(f"{folders.FOLDER}/rows.json")
        check_sidecar(dataset.inside, split, _sha256_of_rows(dataset, split))
    with dataset.file(f"{split}.jsonl").open("rb") as file:
        empty = file.seek(0, 2) == 0
        text = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return OpenMonth(dataset.path / f"{split}.jsonl", text, made, packed, train, train_moves)


def _cached_samples(month: MonthFolders, split: str) -> SampleArrays:
    if month.cache is None:
        raise BadInput(
            month.dataset.path / folders.CACHE_FOLDER, "is missing: build the cache again"
        )
    offsets, indices, phases = (
        mapped(month.cache.file(f"{split}/{name}"), folders.LAYOUT[name])
        for name in (folders.OFFSETS, folders.SPLICE_INDICES, folders.SAMPLE_PHASES)
    )
    games, of_games = None, f"{split}/{folders.SAMPLE_GAMES}"
    if month.cache.has(of_games):
        games = mapped(month.cache.file(of_games), "<u4")
    lengths = {len(each) for each in (offsets, indices, phases, games) if each is not None}
    if len(lengths) != 1:
        raise stale(month.cache.path, f"its arrays of {split} differ in length")
    return SampleArrays(offsets, indices, phases, games)


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
        months = [MonthFolders.open(opening, dataset) for dataset in self.dataset_dirs]
        if opening.first:
            self.cached, self._made = [], []
            if self._wanted is None:
                self.config = config_of([month.admit_config() for month in months])
        for month in months if opening.first else ():
            opening.folder(month.dataset.path)
            why = reason_against_cache(month, self.split, self.config)
            if why and self._require_cache:
                rule = f"Runtime splice cache required but unavailable: {why}"
                raise BadInput(month.dataset.path, rule)
            self.cached.append(not why)
            self._made.append(made_samples(month, self.split, self.config) if why else None)
        return [
            open_month(month, self.split, made)
            for month, made in zip(months, self._made, strict=True)
        ]

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> Sample:
        """One sample by its number from 0; negative numbers count from the end.

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
        """Samples by number as one batch, as `self[index]`; a data loader of torch calls it."""
        numbers = numbers_of(indices, len(self), "sample").tolist()
        return SampleBatch(self, numbers, Sample, self._tensors)

    def _tensors(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Samples as tensors: a method, since a batch goes from a worker to its loader."""
        return tensors(self.batch(numbers))

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
                        folders.split_file(folder, "train"), "is missing; build the dataset again"
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
        columns = self.batch([number_of(index, len(self), "sample")], vocabulary)
        del columns["context_mask"]  # the context of one sample has no padding
        return {name: column[0] for name, column in tensors(columns).items()}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_last": (-1, -1, {}), "_ids": None}


def _config_of(dataset: Path) -> CacheConfig:
    """The config of the dataset's cache, else the defaults of its `stats.json`."""
    cache, stats = dataset / folders.CACHE_FOLDER, dataset / folders.STATS
    has_cache = (cache / folders.CACHE_MANIFEST).exists()
    try:
        if has_cache:
            recorded: dict[str, Any] = read_manifest(cache)["config"]
        else:
            written = json.loads(stats.read_bytes())
            defaults = written["runtime_splice_defaults"]
            recorded = {**defaults, "max_samples_per_game": 0, "seed": written["split_seed"]}
        numbers: dict[str, Any] = {name: int(recorded[name]) for name in CacheConfig().contract()}
        return CacheConfig(**numbers)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        if has_cache:
            raise stale(cache, f"its manifest cannot be read ({error!r})") from error
        rule = f"does not say which samples the dataset is for ({error!r}); pass a config"
        raise BadInput(stats, rule) from error


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


_ASSET: Final = "chess/game_dataset"


class SpliceSource:
    """Samples by number over the months in the order of the reader, one shard a month.

    A cache decides no number, so its version is no part of the identity; its four settings are.
    """

    def __init__(self, data: GameSpliceDataset) -> None:
        self._data = data
        months = [each for each in data.generations if each.folder in data.dataset_dirs]
        settings = {"cache": data.config.contract()}
        self.identity = identity_of(_ASSET, months, data.split, settings)
        ends = np.cumsum([len(month.arrays.indices) for month in data.held])
        self.cuts: Numbers = np.append(0, ends).astype(np.int64)

    @cached_property
    def words(self) -> str:
        """The digest of the vocabulary, which hangs on the months: others mean other moves."""
        return hashlib.sha256("\n".join(self._data.vocabulary()).encode()).hexdigest()

    def read(self, numbers: Numbers) -> Columns:
        """Context, target, their masks, phase, winner and side to move, as `collate`."""
        return self._data.batch(numbers)

    def shown(self, number: int) -> Iterator[Request]:
        """The game of a sample, at the end of the context."""
        from gristmill.chess.read.trace import row_at
        from gristmill.families import Request

        folder, _, offset, index = self._place(number)
        options = {"split": self._data.split, "ply": index + 1}
        yield Request(folder, str(row_at(folder, self._data.split, offset)), options)

    def origin(self, number: int) -> Iterator[Trace]:
        """The game of a sample, its bytes in the PGN and in the drop."""
        from gristmill.chess.read.trace import sample_origins

        folder, inside, offset, index = self._place(number)
        return sample_origins(folder, self._data.split, inside, offset, index)

    def _place(self, number: int) -> tuple[Path, int, int, int]:
        """The month of a sample, its number there, the byte of its row, and its splice index."""
        month = int(np.searchsorted(self.cuts, number, "right")) - 1
        inside = number - int(self.cuts[month])
        arrays = self._data.held[month].arrays
        offset, index = int(arrays.offsets[inside]), int(arrays.indices[inside])
        return self._data.dataset_dirs[month], inside, offset, index
