"""What must hold of a runtime splice cache, beside the dataset that it is of.

The laws and their names: docs/formats/chess.md#cache-laws.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS, CacheConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.cache_arrays import LAYOUT
from gristmill.chess.format.names import CACHE_MANIFEST, CACHE_PATHS, VOCABULARY
from gristmill.chess.laws.files import read_json, relative
from gristmill.chess.laws.games_and_datasets import rows_hold
from gristmill.chess.read.move_vocabulary import moves_in
from gristmill.chess.read.samples import sample_parts
from gristmill.contract import BadInput, Violation
from gristmill.hashing import sha256_file

_NAMES = {
    "path_ids.u32.bin": "path_ids",
    "offsets.u64.bin": "offsets_start_lines",
    "splice_indices.u32.bin": "splice_indices_in_games",
    "sample_phase_ids.u8.bin": "phases_rederived",
}


def _complete(entry: Mapping[str, Any]) -> None:
    """Raise KeyError, TypeError or ValueError for a split's entry that lacks what laws read."""
    int(entry["sample_rows_total"])
    for name in LAYOUT:
        int(entry["files"][name]["size_bytes"])
    if entry.get("source") is not None:
        str(entry["source"]["sha256"])


def _structure(path: Path, split: str, entry: Mapping[str, Any]) -> Iterator[Violation]:
    """One split's files and the manifest's counts (docs/formats/chess.md#cache-laws)."""
    sizes = {}
    for name, dtype in LAYOUT.items():
        file = path / split / name
        if not file.is_file():
            yield Violation("missing_file", f"{split}: {file}", "missing")
            return
        size, item = file.stat().st_size, np.dtype(dtype).itemsize
        if size % item:
            yield Violation("whole_elements", f"{split}: {file}", f"{size} bytes of {item}")
        sizes[name] = size // item
        told = entry["files"][name]
        if told["size_bytes"] != size or told.get("sha256") not in (None, sha256_file(file)):
            yield Violation("bytes_as_manifest", f"{split}: {file}", "size or sha256 differs")
    if len(set(sizes.values())) != 1:
        yield Violation("row_count_mismatch", split, f"{sizes}")
    elif set(sizes.values()) != {entry["sample_rows_total"]}:
        yield Violation("samples_counted", split, f"{sizes}, told {entry['sample_rows_total']}")
    try:
        paths = json.loads((path / split / CACHE_PATHS).read_bytes())
    except (OSError, ValueError) as error:
        yield Violation("invalid_paths_json", split, repr(error))
        return
    if not isinstance(paths, list) or not paths:
        yield Violation("paths_json_empty_or_invalid", split, repr(paths))
    elif len(paths) != 1 or Path(paths[0]).name != f"{split}.jsonl":
        yield Violation("paths_of_split", split, repr(paths))


def _contents(
    path: Path, dataset: Path, split: str, config: CacheConfig, sampled: bool
) -> Iterator[Violation]:
    """The arrays are those that the rows give when every game is replayed.

    sampled: those that the dataset's sidecar gives, which must agree with every
    row and, in a sample of games, with the replay.
    """
    if sampled and sidecar.games_file(dataset, split).exists():
        held = rows_hold(dataset / f"{split}.jsonl", dataset, split, sampled)
        yield from (item for item in held if isinstance(item, Violation))
    else:
        sampled = False
    files = {name: (path / split / name).open("rb") for name in LAYOUT}
    games = 0
    wrong: set[str] = set()
    try:
        for sections, part in sample_parts(dataset, split, config, replay=not sampled):
            games += part["games"]
            for name, file in files.items():
                piece = sections[name]
                if file.read(len(piece)) != bytes(piece) and name not in wrong:
                    wrong.add(name)
                    found = "differs from what the rows give"
                    yield Violation(_NAMES[name], f"{split}/{name}", found)
        for name, file in files.items():
            if file.read(1):
                yield Violation(_NAMES[name], f"{split}/{name}", "has samples of no row")
    except BadInput as error:
        yield Violation("rows_readable", split, str(error))
    finally:
        for file in files.values():
            file.close()


@relative
def cache_laws(
    path: Path, dataset: Path | None = None, *, sampled: bool = False
) -> Iterator[Violation]:
    """A cache folder: structure, manifest, source, and every element derived anew.

    dataset: the folder of the rows; by default the one that the cache stands in,
    or, for a cache that is still being built, the one that its manifest names.
    sampled: replay a sample of the games, not all: see `laws`.
    """
    if not (path / CACHE_MANIFEST).is_file():
        yield Violation("missing_manifest", str(path / CACHE_MANIFEST), "missing")
        return
    manifest, wrong = read_json(path / CACHE_MANIFEST)
    yield from (Violation("invalid_manifest_json", v.where, v.found) for v in wrong)
    if wrong:
        return
    if manifest.get("kind") != rows.CACHE_KIND:
        yield Violation("manifest_kind_unexpected", str(path), repr(manifest.get("kind")))
        return
    if dataset is None:
        dataset = path.parent
        if not (dataset / "train.jsonl").is_file():
            dataset = Path(str(manifest.get("dataset_dir", dataset)))
    try:
        config = CacheConfig(**manifest["config"])
        entries = {split: manifest["splits"][split] for split in SPLITS}
        for entry in entries.values():
            _complete(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield Violation("manifest_complete", str(path / CACHE_MANIFEST), repr(error))
        return
    for split, entry in entries.items():
        structure = list(_structure(path, split, entry))
        yield from structure
        if entry.get("config", manifest["config"]) != manifest["config"]:
            yield Violation("one_config", split, f"{entry['config']}, not {manifest['config']}")
        jsonl = dataset / f"{split}.jsonl"
        if not jsonl.is_file():
            yield Violation("source_path_missing", split, str(jsonl))
            continue
        source = entry.get("source")
        if source is None or source["sha256"] != sha256_file(jsonl):
            yield Violation("source_unchanged", split, f"{jsonl} is not the file it was built of")
        elif not structure:
            yield from _contents(path, dataset, split, config, sampled)
    vocabulary = path / VOCABULARY
    if vocabulary.exists():
        meta, wrong = read_json(vocabulary)
        yield from wrong
        words = ["<PAD>", "<UNK>", *moves_in(dataset / "train.jsonl")]
        if list(meta.get("vocab", {})) != words or meta.get("config") != manifest["config"]:
            yield Violation("vocabulary_of_train", str(vocabulary), "words or config differ")
