"""Laws of game datasets, splice caches, legacy rows and subsets.

Of legacy rows all are counted, and a sample obeys every rule. Leakage is checked over all rows in
bounded memory: by ids with the shuffle, else by moves, all or those of the opening. A row shows all
moves of its game only where its target reaches the end. Of a capped game without such a row only
the builder saw the moves, and it refuses to build a leak.
Source: docs/formats/chess.md#splice-laws
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.builders.splits import strata_of
from gristmill.chess.config import SPLITS, WINNERS_OF, CacheConfig, SubsetConfig
from gristmill.chess.format import folders, rows
from gristmill.chess.laws.games import (
    SIDECAR_LAWS,
    check_rows,
    difference,
    law,
    read_json,
)
from gristmill.chess.read.row_batches import RowBatch, phase_codes, words_of_train
from gristmill.chess.read.samples import sample_parts
from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.hashing import kept, sha256_file

_BY_MOVES = ("move_key", "opening_key")
"""The split rules by which the moves of a game decide its split, all or the first of them."""


@law
def dataset_laws(subject: Subject) -> Iterator[Violation]:
    """Find where rows, sidecar, phases, splits and stats do not agree, and what leaks."""
    path, split_of_id = subject.folder, dict[str, int]()
    has_sidecar = not subject.missing({folders.FOLDER: f"{SIDECAR_LAWS}, rows_noted"})
    stats, faults = read_json(path / folders.STATS)
    yield from faults
    if faults:
        return
    noted = folders.read_rows(path)
    for number, split in enumerate(SPLITS):
        jsonl, games = folders.split_file(path, split), 0
        if not jsonl.is_file():
            yield Violation("missing_file", str(jsonl), "missing")
            continue
        ours = subject.has_record
        for item in check_rows(jsonl, path, split, is_ours=ours, has_sidecar=has_sidecar):
            if isinstance(item, Violation):
                yield item
                continue
            games += len(item.columns)
            yield from _check_eligibility(item, stats, jsonl)
            yield from _check_places(item, stats, split_of_id, number, jsonl)
        yield from difference("games_counted", jsonl, games, stats["split_games"][split])
        if noted:
            recorded = noted.get(split, {}).get("sha256")
            yield from difference("rows_noted", jsonl, sha256_file(jsonl), recorded)
    files = [folders.games_file(path, split) for split in SPLITS]
    by_moves = stats.get("split_rule") in _BY_MOVES and all(file.exists() for file in files)
    if by_moves and (shared := folders.count_shared(files)):
        yield Violation("no_leakage", str(path), f"{shared} move sequences in more than one split")


def _check_eligibility(
    batch: RowBatch, stats: Mapping[str, Any], jsonl: Path
) -> Iterator[Violation]:
    from gristmill.chess.kernels import rowshape

    shortest = sum(stats["runtime_splice_defaults"].values())
    if (batch.columns[:, rowshape.N] < shortest).any():
        yield Violation("games_spliceable", str(jsonl), "a game is too short to splice")
    sides = set(map(chr, batch.columns[:, rowshape.WINNER].tolist()))
    taken = WINNERS_OF[stats.get("games", "decisive" if stats["decisive_only"] else "all")]
    if taken and not sides <= set(taken):
        yield Violation("games_decisive", str(jsonl), f"winners {sorted(sides)}")


def _check_places(
    batch: RowBatch, stats: Mapping[str, Any], split_of_id: dict[str, int], number: int, jsonl: Path
) -> Iterator[Violation]:
    """Each game is in the split of its moves; with the shuffle, its id is in no other split."""
    if stats.get("split_rule") in _BY_MOVES:
        opening = stats["split_rule"] == "opening_key"
        keys = batch.opening_keys(stats["opening_plies"]) if opening else batch.records["move_key"]
        ratios = (stats["train_ratio"], stats["val_ratio"])
        if (folders.split_of(keys, stats["split_seed"], *ratios) != number).any():
            law_name = "split_of_opening" if opening else "split_of_moves"
            yield Violation(law_name, str(jsonl), "a game belongs to another split")
        return
    for game_id in batch.ids():
        if split_of_id.setdefault(game_id, number) != number:
            yield Violation("ids_in_one_split", str(jsonl), game_id)


_LAW_OF_ARRAY = {
    "path_ids.u32.bin": "path_ids",
    "offsets.u64.bin": "offsets_start_lines",
    "splice_indices.u32.bin": "splice_indices_in_games",
    "sample_phase_ids.u8.bin": "phases_rederived",
    folders.SAMPLE_GAMES: "games_of_samples",
}


@dataclass(frozen=True)
class _Cache:
    """A cache while it is checked."""

    path: Path
    dataset: Path
    manifest: Mapping[str, Any]
    is_ours: bool


@law
def cache_laws(subject: Subject) -> Iterator[Violation]:
    """Check a cache: its structure, its manifest, its source; without a record every element.

    Its input is the folder of its rows; by default that around it, else what the manifest names.
    The manifest of another program need not name the source, and its rows need no sidecar.
    """
    path, is_ours = subject.folder, subject.has_record
    dataset = next((each for each in subject.inputs if each.exists()), None)
    if not is_ours:
        subject.left_out.append("source_unchanged: where the manifest does not name the source")
    file = path / folders.CACHE_MANIFEST
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
    if dataset is None:
        is_around = folders.split_file(path.parent, "train").is_file()
        dataset = path.parent if is_around else Path(manifest.get("dataset_dir", path.parent))
    cache = _Cache(path, dataset, manifest, is_ours)
    config = CacheConfig(**manifest["config"])
    for split in SPLITS:
        yield from _check_cached_split(cache, split, manifest["splits"][split], config)
    yield from _check_vocabulary(cache)


def _check_cached_split(
    cache: _Cache, split: str, entry: Mapping[str, Any], config: CacheConfig
) -> Iterator[Violation]:
    faults = [*_check_arrays(cache.path, split, entry), *_check_paths(cache.path, split)]
    yield from faults
    recorded = cache.manifest["config"]
    if entry.get("config", recorded) != recorded:
        yield Violation("one_config", split, f"{entry['config']}, not {recorded}")
    jsonl = folders.split_file(cache.dataset, split)
    if not jsonl.is_file():
        yield Violation("source_path_missing", split, str(jsonl))
        return
    source = entry.get("source")
    is_other = cache.is_ours if source is None else source["sha256"] != kept(sha256_file, jsonl)
    if is_other:
        found = f"{jsonl} is not the file that the cache was built from"
        yield Violation("source_unchanged", split, found)
    elif not faults:
        yield from _check_samples(cache, split, entry, config)


def _check_arrays(path: Path, split: str, entry: Mapping[str, Any]) -> Iterator[Violation]:
    """The four arrays are whole, equally long, and as the manifest says."""
    elements = {}
    for name, dtype in folders.LAYOUT.items():
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
        paths = json.loads((path / split / folders.CACHE_PATHS).read_bytes())
    except (OSError, ValueError) as error:
        yield Violation("invalid_paths_json", split, repr(error))
        return
    if not isinstance(paths, list) or not paths:
        yield Violation("paths_json_empty_or_invalid", split, repr(paths))
    elif len(paths) != 1 or Path(paths[0]).name != f"{split}.jsonl":
        yield Violation("paths_of_split", split, repr(paths))


def _check_samples(
    cache: _Cache, split: str, entry: Mapping[str, Any], config: CacheConfig
) -> Iterator[Violation]:
    """Each sample has its game. Without a record, the arrays are those that the rows give."""
    name, beside = folders.SAMPLE_GAMES, folders.Sidecar.open(cache.dataset, split)
    file = cache.path / split / name
    if cache.is_ours:
        size = file.stat().st_size if file.exists() else 0
        if beside and beside.has_moves and size != 4 * entry["sample_rows_total"]:
            yield Violation("games_of_samples", f"{split}/{name}", f"has {size:,} bytes")
        return
    jsonl = folders.split_file(cache.dataset, split)
    for item in check_rows(jsonl, cache.dataset, split, is_ours=False) if beside else ():
        if isinstance(item, Violation):
            yield item
    names = [*folders.LAYOUT, *([name] if beside and file.exists() else [])]
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
    vocabulary = cache.path / folders.VOCABULARY
    if not vocabulary.exists():
        return
    meta, faults = read_json(vocabulary)
    yield from faults
    words = list(meta.get("vocab", {}))
    expected = words if cache.is_ours else words_of_train(cache.dataset)
    if words != expected or meta.get("config") != cache.manifest["config"]:
        yield Violation("vocabulary_of_train", str(vocabulary), "words or config differ")


_SAMPLE = 200
_READ_BYTES = 1 << 19


@law
def splice_laws(subject: Subject) -> Iterator[Violation]:
    """Find rows that are not counted, what is wrong in a sample of rows, and what leaks."""
    path = subject.folder
    stats, faults = read_json(path / folders.STATS)
    yield from faults
    if faults:
        return
    params = stats["params"]
    kind, plies = "game ids", None
    if params.get("split_rule") == "move_key":
        kind, plies = "move sequences", 0
    elif params.get("split_rule") == "opening_key":
        kind, plies = "openings", int(params["opening_plies"])
    with tempfile.TemporaryDirectory(prefix="gristmill_") as folder:
        files = [Path(folder) / split for split in SPLITS]
        for split, file in zip(SPLITS, files, strict=True):
            jsonl = folders.split_file(path, split)
            file.touch()
            if not jsonl.is_file():
                yield Violation("missing_file", str(jsonl), "missing")
                continue
            count, faults = _write_keys(jsonl, plies, int(params["k"]), file)
            yield from faults
            yield from difference("samples_counted", jsonl, count, stats["split_samples"][split])
            if sum(stats["split_phase_counts"][split].values()) != stats["split_samples"][split]:
                yield Violation("phases_counted", str(jsonl), "phase counts do not sum to the rows")
            yield from _check_spread_rows(jsonl, stats["params"])
        if shared := folders.count_shared(files):
            yield Violation("no_leakage", str(path), f"{shared} {kind} in more than one split")


def _write_keys(jsonl: Path, plies: int | None, k: int, out: Path) -> tuple[int, list[Violation]]:
    """Write keys of games as records of folders.GAME, up to a row that cannot be read.

    plies: a key is of so many first moves, 0 for all moves, None for the game's id.
    """
    count = 0
    with jsonl.open("rb") as file, out.open("wb") as records:
        while data := file.read(_READ_BYTES):
            data += file.readline()
            rows, texts, fault = _keys_in(data, plies, k)
            keys = np.zeros(len(texts), folders.GAME)
            digests = b"".join([hashlib.sha256(text).digest()[:8] for text in texts])
            keys["move_key"] = np.frombuffer(digests, ">u8")
            records.write(keys.tobytes())
            if fault is not None:
                line, error = fault
                where = f"{jsonl}: row {count + rows + 1}: {line[:80]!r}"
                count += data.count(b"\n") + (not data.endswith(b"\n")) + sum(1 for _ in file)
                return count, [Violation("sample_rows", where, f"not a sample row ({error!r})")]
            count += rows
    return count, []


def _keys_in(
    data: bytes, plies: int | None, k: int
) -> tuple[int, list[bytes], tuple[bytes, Exception] | None]:
    """The rows of whole lines, the texts of their keys, and what cannot be read, where both end."""
    from gristmill.chess.kernels.splicetext import LEAST_BYTES, PADDING, read_keys

    buf = np.zeros(len(data) + PADDING, np.uint8)
    buf[: len(data)] = np.frombuffer(data, np.uint8)
    out, ends = np.empty(len(data), np.uint8), np.empty(len(data) // LEAST_BYTES + 1, np.int64)
    place, rows = 0, 0
    texts: list[bytes] = []
    while place < len(data):
        first = -1 if plies is None else plies
        place, read, found = read_keys(buf, place, len(data), first, k, out, ends)
        rows += read
        text = out[: ends[found - 1] if found else 0].tobytes()
        texts += [text[a:b] for a, b in pairwise((0, *ends[:found].tolist()))]
        if place < len(data):
            end = data.find(b"\n", place) + 1 or len(data)
            line = data[place:end]
            try:
                texts += filter(None, [_key_of(line, plies, k)])
            except (ValueError, KeyError, TypeError) as error:
                return rows, texts, (line, error)
            place, rows = end, rows + 1
    return rows, texts, None


def _key_of(line: bytes, plies: int | None, k: int) -> bytes:
    """The text of a row's key, empty for a row that does not show the moves of the key."""
    row = json.loads(line)
    if plies is None:
        return json.dumps(row["game_id"]).encode()
    moves = row["context"] + row["target"][:k]
    shows = (plies and len(moves) >= plies) or row["plies_remaining"] <= k
    return " ".join(moves[: plies or None]).encode() if shows else b""


def _check_spread_rows(jsonl: Path, params: Mapping[str, Any]) -> Iterator[Violation]:
    """Whole rows at places spread evenly over a file."""
    size = jsonl.stat().st_size
    with jsonl.open("rb") as file:
        for number in range(_SAMPLE if size else 0):
            file.seek(size * number // _SAMPLE)
            if number:
                file.readline()
            if not (line := file.readline()):
                continue
            try:
                faults = _row_faults(json.loads(line), params)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                faults = [f"not a sample row ({error!r})"]
            for fault in faults:
                yield Violation("sample_rows", f"{jsonl}: {line[:80]!r}", fault)


def _row_faults(row: Mapping[str, Any], params: Mapping[str, Any]) -> list[str]:
    """The rules of docs/formats/chess.md#legacy-rows that a row breaks, as texts."""
    index, total, ply = row["splice_index"], row["plies_total"], row["ply"]
    context, target, left = row["context"], row["target"], row["plies_remaining"]
    code = phase_codes([context])[0][-1]
    phase = (rows.PHASES[code & 3], rows.PHASE_REASONS[code])
    rules = {
        "context and splice index disagree": len(context) == index + 1 == ply,
        "the context is too short": len(context) >= params["min_context"],
        "the target has not the plies it should have": len(target) == min(params["k"], total - ply),
        "the target is too short": len(target) >= params["min_target"],
        "next_move is not the first move of the target": target[:1] == [row["next_move"]],
        "plies_remaining is wrong": left == total - ply,
        "phase or its reason is not that of the replayed context": (
            (row["phase"], row["phase_reason"]) == phase
        ),
    }
    buckets = {
        "plies_remaining_bucket": rows.remaining_bucket(left),
        "relative_progress_bucket": rows.progress_bucket(ply, total),
    }
    rules |= {f"{name} is wrong": row[name] == bucket for name, bucket in buckets.items()}
    return [fault for fault, holds in rules.items() if not holds]


@law
def subset_laws(subject: Subject) -> Iterator[Violation]:
    """Find where counts, strata and numbers of rows do not agree with the rows."""
    path = subject.folder
    report, faults = read_json(path / folders.SUBSET)
    yield from faults
    if faults:
        return
    given: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in report["config"].items()
    }
    config = SubsetConfig(**given)
    for split in SPLITS:
        said, file = report["splits"][split], folders.split_file(path, split)
        numbers = np.load(path / folders.subset_rows(split))
        counts = dict(Counter(stratum for _, stratum in strata_of(file, config)))
        taken = {name: count for name, (count, _) in said["strata"].items() if count}
        rows = sum(counts.values())
        if counts != taken or not said["rows"] == len(numbers) == rows:
            yield Violation("subset_counted", str(file), f"{rows:,} rows, {counts}")
        most, total = int(getattr(config, split)), sum(size for _, size in said["strata"].values())
        if total != said["rows_of"] or said["rows"] != min(most, total):
            words = f"{said['rows']:,} rows of {total:,}, most {most:,}"
            yield Violation("subset_sized", str(file), words)
        if not (np.diff(numbers, prepend=-1, append=said["rows_of"]) > 0).all():
            words = "numbers of rows do not rise within the dataset"
            yield Violation("rows_numbered", str(file), words)
    if (path / folders.CACHE_FOLDER).is_dir():
        yield from cache_laws(replace(subject, folder=path / folders.CACHE_FOLDER, inputs=[path]))
