"""Opens a month for training: its folder, its cache, its rows and its samples.

A cache or a sidecar that was not built from the rows next to it is refused; the laws check whole
folders. Source: docs/formats/chess.md#staleness-checks
"""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.names import (
    CACHE_FOLDER,
    CACHE_MANIFEST,
    LAYOUT,
    OFFSETS,
    SAMPLE_GAMES,
    SAMPLE_PHASES,
    SPLICE_INDICES,
    STATS,
    split_file,
)
from gristmill.chess.read.packed import PackedGames, mapped, open_packed
from gristmill.chess.read.samples import SampleArrays, sample_arrays
from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import sha256_file
from gristmill.reading.folder import HeldFile, OpenFolder, Opening, made_from_another


class StaleCache(GristmillError):
    """A splice cache or a sidecar was not built from the rows next to it."""


def stale(cache: Path, why: str) -> StaleCache:
    """The error for a cache that must be built again."""
    return StaleCache(f"{cache}: {why}; build the cache of this dataset again")


def _changed(jsonl: Path, size: int, sha256: str, current: str | None) -> bool:
    """Whether a file has another size or, where its sha256 is known, other bytes than recorded."""
    return jsonl.stat().st_size != size or current not in (None, sha256)


def read_manifest(cache: Path) -> dict[str, Any]:
    """The manifest of a splice cache (docs/formats/chess.md#manifest).

    Raises StaleCache where it cannot be read or is of another kind.
    """
    try:
        manifest = json.loads((cache / CACHE_MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != rows.CACHE_KIND:
        raise stale(cache, f"its manifest is not of kind {rows.CACHE_KIND!r}")
    return manifest


def check_cache(
    cache: Path, dataset: Path, split: str, config: CacheConfig, sha256: str | None
) -> str:
    """Check that a cache was built from this dataset's rows, and for which config.

    sha256: of the rows; None to compare only their size.
    Returns "" if the cache can be used, or how its config differs. Raises StaleCache where it is
    damaged or its rows have changed.
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
    for name, dtype in LAYOUT.items():
        path = cache / split / name
        if not path.exists() or path.stat().st_size != samples * np.dtype(dtype).itemsize:
            raise stale(cache, f"{split}/{name} does not have the manifest's {samples} samples")
    if not expected:
        raise stale(cache, "its manifest does not name the rows that it was built from")
    if _changed(split_file(dataset, split), *expected, sha256):
        raise stale(cache, f"{split}.jsonl has changed since the cache was built")
    wanted = config.contract()
    if not config.max_samples_per_game and not recorded.get("max_samples_per_game"):
        # Without a cap nothing is drawn, so the seed has no effect.
        wanted["seed"] = recorded.get("seed", 0)
    return "" if recorded == wanted else f"its config is {recorded}, wanted {wanted}"


def check_sidecar(dataset: Path, split: str, sha256: str | None) -> None:
    """Check that a sidecar was built from this split's rows; a dataset without one is right.

    sha256: of the rows; None to compare only their size.
    """
    # The reader takes offsets and phases from the sidecar without parsing the rows,
    # so a changed row would give samples of no game.
    if sidecar.Sidecar.open(dataset, split) is None:
        return
    jsonl = split_file(dataset, split)
    remedy = f"build the dataset again, or remove {sidecar.FOLDER}/ to have the games replayed"
    try:
        entry = sidecar.read_rows(dataset)[split]
        expected = (int(entry["bytes"]), str(entry["sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        where = sidecar.rows_file(dataset)
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
        if not dataset.has(f"{CACHE_FOLDER}/{CACHE_MANIFEST}"):
            return MonthFolders(dataset, None)
        return MonthFolders(dataset, opening.folder(path / CACHE_FOLDER, within=dataset))

    def admit_config(self) -> Path:
        """Check the file that says which samples the month is for; returns the dataset's folder."""
        if self.cache is not None:
            self.cache.file(CACHE_MANIFEST)
        elif self.dataset.has(STATS):
            self.dataset.file(STATS)
        return self.dataset.inside


@dataclass(frozen=True)
class OpenMonth:
    """One split of a month.

    packed: the moves of the rows; None where the month has none.
    train, train_moves: the train rows and their packed moves, None where there are none.
    """

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
        except (ValueError, RecursionError) as error:
            raise self._no_row(offset, str(error)) from error
        if not isinstance(row, dict):
            raise self._no_row(offset, "it is no object")
        return row

    def _no_row(self, offset: int, why: str) -> BadInput:
        rule = f"has no row at byte {offset} ({why}): build the dataset and its cache again"
        return BadInput(self.jsonl, rule)


def reason_against_cache(month: MonthFolders, split: str, config: CacheConfig) -> str:
    """Why the month's cache is not used for these samples; an empty text if it is used."""
    dataset, cache = month.dataset, month.cache
    if not dataset.has(f"{split}.jsonl"):
        raise BadInput(dataset.path / f"{split}.jsonl", "is missing; build the game dataset first")
    if cache is None:
        return f"there is no {CACHE_FOLDER}/"
    cache.file(CACHE_MANIFEST)
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
    names = [f"{sidecar.FOLDER}/{split}.{kind}.bin" for kind in ("games", "phases")]
    if all(dataset.has(name) for name in names):
        for name in [*names, f"{sidecar.FOLDER}/rows.json"]:
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
        for name in ("train.jsonl", f"{sidecar.FOLDER}/train.moves.u16.bin")
    )
    packed = None if made.games is None else open_packed(dataset, split, made.games)
    if packed is not None:
        dataset.file(f"{sidecar.FOLDER}/rows.json")
        check_sidecar(dataset.inside, split, _sha256_of_rows(dataset, split))
    with dataset.file(f"{split}.jsonl").open("rb") as file:
        empty = file.seek(0, 2) == 0
        text = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return OpenMonth(dataset.path / f"{split}.jsonl", text, made, packed, train, train_moves)


def _cached_samples(month: MonthFolders, split: str) -> SampleArrays:
    if month.cache is None:
        raise BadInput(month.dataset.path / CACHE_FOLDER, "is missing: build the cache again")
    offsets, indices, phases = (
        mapped(month.cache.file(f"{split}/{name}"), LAYOUT[name])
        for name in (OFFSETS, SPLICE_INDICES, SAMPLE_PHASES)
    )
    games, of_games = None, f"{split}/{SAMPLE_GAMES}"
    if month.cache.has(of_games):
        games = mapped(month.cache.file(of_games), "<u4")
    lengths = {len(each) for each in (offsets, indices, phases, games) if each is not None}
    if len(lengths) != 1:
        raise stale(month.cache.path, f"its arrays of {split} differ in length")
    return SampleArrays(offsets, indices, phases, games)
