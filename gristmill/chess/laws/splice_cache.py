"""Laws of a runtime splice cache."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format import folders, rows
from gristmill.chess.format.folders import (
    CACHE_MANIFEST,
    CACHE_PATHS,
    LAYOUT,
    SAMPLE_GAMES,
    VOCABULARY,
    split_file,
)
from gristmill.chess.laws.files import check_rows, law, read_json
from gristmill.chess.read.move_vocabulary import words_of_train
from gristmill.chess.read.samples import sample_parts
from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.hashing import sha256_file

_LAW_OF_ARRAY = {
    "path_ids.u32.bin": "path_ids",
    "offsets.u64.bin": "offsets_start_lines",
    "splice_indices.u32.bin": "splice_indices_in_games",
    "sample_phase_ids.u8.bin": "phases_rederived",
    SAMPLE_GAMES: "games_of_samples",
}


@dataclass(frozen=True)
class _Cache:
    """A cache while it is checked."""

    path: Path
    dataset: Path
    manifest: Mapping[str, Any]
    is_ours: bool

    def config(self) -> CacheConfig:
        """Raises KeyError, TypeError or ValueError for a config that is not complete."""
        return CacheConfig(**self.manifest["config"])

    def entries(self) -> dict[str, Mapping[str, Any]]:
        """The manifest's entries by split.

        Raises AttributeError, KeyError, TypeError or ValueError where a law cannot read one.
        """
        entries = {split: self.manifest["splits"][split] for split in SPLITS}
        for entry in entries.values():
            int(entry["sample_rows_total"])
            for name in LAYOUT:
                int(entry["files"][name]["size_bytes"])
            if entry.get("source") is not None:
                str(entry["source"]["sha256"])
        return entries


@law
def cache_laws(subject: Subject) -> Iterator[Violation]:
    """Check a cache: its structure, its manifest, its source; without a record every element.

    subject: its input is the folder of the rows. By default the folder around the cache; for a
        cache that is still being built, the folder that its manifest names. The manifest of
        another program need not name the source, and its rows need no sidecar.
    """
    path, is_ours = subject.folder, subject.has_record
    dataset = next((each for each in subject.inputs if each.exists()), None)
    if not is_ours:
        subject.left_out.append("source_unchanged: where the manifest does not name the source")
    file = path / CACHE_MANIFEST
    if not file.is_file():
        yield Violation("missing_manifest", str(file), "missing")
        return
    manifest, faults = read_json(file)
    yield from (Violation("invalid_manifest_json", fault.where, fault.found) for fault in faults)
    if faults:
        return
    if manifest.get("kind") != rows.CACHE_KIND:
        yield Violation("manifest_kind_unexpected", str(path), repr(manifest.get("kind")))
        return
    dataset = dataset or _dataset_of(path, manifest)
    cache = _Cache(path, dataset, manifest, is_ours)
    try:
        config, entries = cache.config(), cache.entries()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield Violation("manifest_complete", str(file), repr(error))
        return
    for split, entry in entries.items():
        yield from _check_split(cache, split, entry, config)
    yield from _check_vocabulary(cache)


def _dataset_of(path: Path, manifest: Mapping[str, Any]) -> Path:
    if split_file(path.parent, "train").is_file():
        return path.parent
    return Path(str(manifest.get("dataset_dir", path.parent)))


def _check_split(
    cache: _Cache, split: str, entry: Mapping[str, Any], config: CacheConfig
) -> Iterator[Violation]:
    faults = [*_check_arrays(cache.path, split, entry), *_check_paths(cache.path, split)]
    yield from faults
    recorded = cache.manifest["config"]
    if entry.get("config", recorded) != recorded:
        yield Violation("one_config", split, f"{entry['config']}, not {recorded}")
    jsonl = split_file(cache.dataset, split)
    if not jsonl.is_file():
        yield Violation("source_path_missing", split, str(jsonl))
        return
    source = entry.get("source")
    is_other = cache.is_ours if source is None else source["sha256"] != sha256_file(jsonl)
    if is_other:
        found = f"{jsonl} is not the file that the cache was built from"
        yield Violation("source_unchanged", split, found)
    elif not faults:
        yield from _check_samples(cache, split, config)


def _check_arrays(path: Path, split: str, entry: Mapping[str, Any]) -> Iterator[Violation]:
    """The four arrays are whole, equally long, and as the manifest says."""
    elements = {}
    for name, dtype in LAYOUT.items():
        file = path / split / name
        if not file.is_file():
            yield Violation("missing_file", f"{split}: {file}", "missing")
            return
        size, item = file.stat().st_size, np.dtype(dtype).itemsize
        if size % item:
            found = f"{size} bytes are not a multiple of {item}"
            yield Violation("whole_elements", f"{split}: {file}", found)
        elements[name] = size // item
        recorded = entry["files"][name]
        digests = (None, sha256_file(file))
        if recorded["size_bytes"] != size or recorded.get("sha256") not in digests:
            yield Violation("bytes_as_manifest", f"{split}: {file}", "size or SHA-256 differs")
    if len(set(elements.values())) != 1:
        yield Violation("row_count_mismatch", split, f"{elements}")
    elif set(elements.values()) != {entry["sample_rows_total"]}:
        found = f"{elements}, recorded {entry['sample_rows_total']}"
        yield Violation("samples_counted", split, found)


def _check_paths(path: Path, split: str) -> Iterator[Violation]:
    try:
        paths = json.loads((path / split / CACHE_PATHS).read_bytes())
    except (OSError, ValueError) as error:
        yield Violation("invalid_paths_json", split, repr(error))
        return
    if not isinstance(paths, list) or not paths:
        yield Violation("paths_json_empty_or_invalid", split, repr(paths))
    elif len(paths) != 1 or Path(paths[0]).name != f"{split}.jsonl":
        yield Violation("paths_of_split", split, repr(paths))


def _check_samples(cache: _Cache, split: str, config: CacheConfig) -> Iterator[Violation]:
    """Each sample has its game. Without a record, the arrays are those that the rows give."""
    file, beside = cache.path / split / SAMPLE_GAMES, folders.Sidecar.open(cache.dataset, split)
    if cache.is_ours:
        size, samples = file.stat().st_size if file.exists() else 0, cache.entries()[split]
        if beside and beside.has_moves and size != 4 * samples["sample_rows_total"]:
            yield Violation("games_of_samples", f"{split}/{SAMPLE_GAMES}", f"has {size:,} bytes")
        return
    if beside:
        jsonl = split_file(cache.dataset, split)
        for item in check_rows(jsonl, cache.dataset, split, is_ours=False):
            if isinstance(item, Violation):
                yield item
    names = [*LAYOUT, *([SAMPLE_GAMES] if beside and file.exists() else [])]
    yield from _check_elements(cache, split, config, names)


def _check_elements(
    cache: _Cache, split: str, config: CacheConfig, names: Sequence[str]
) -> Iterator[Violation]:
    wrong: set[str] = set()
    with ExitStack() as stack:
        files = {
            name: stack.enter_context((cache.path / split / name).open("rb")) for name in names
        }
        try:
            for arrays, _ in sample_parts(cache.dataset, split, config):
                for name, file in files.items():
                    expected = bytes(arrays[name])
                    if file.read(len(expected)) != expected and name not in wrong:
                        wrong.add(name)
                        found = "differs from what the rows give"
                        yield Violation(_LAW_OF_ARRAY[name], f"{split}/{name}", found)
            for name, file in files.items():
                if file.read(1):
                    yield Violation(_LAW_OF_ARRAY[name], f"{split}/{name}", "has samples of no row")
        except BadInput as error:
            yield Violation("rows_readable", split, str(error))


def _check_vocabulary(cache: _Cache) -> Iterator[Violation]:
    vocabulary = cache.path / VOCABULARY
    if not vocabulary.exists():
        return
    meta, faults = read_json(vocabulary)
    yield from faults
    words = list(meta.get("vocab", {}))
    expected = words if cache.is_ours else words_of_train(cache.dataset)
    if words != expected or meta.get("config") != cache.manifest["config"]:
        yield Violation("vocabulary_of_train", str(vocabulary), "words or config differ")
