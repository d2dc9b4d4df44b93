"""Laws of the token shards of one split. Source: `docs/formats/reasoning.md#shard-laws`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.corpora.corpus import corpus_and_split
from gristmill.hashing import sha256_file
from gristmill.reasoning.format import foreign_pt, id_files, names
from gristmill.reasoning.format.shards import CONTRACT, TOKENS, Meta, read_meta
from gristmill.reasoning.laws.shard_index import index_laws

_ROWS_BYTES: Final = 1 << 22
_SAME: Final = (
    *("seq_len", "world_size", "tokenizer_sha256", "source_files", "schema_version"),
    *("tokenizer", "dtype", "eod", "ids"),
)
"""What all shards of a split have in common."""
_SUFFIXES: Final = (".pt", id_files.BIN, ".meta.json", id_files.SAFETENSORS)


def shard_laws(
    folder: Path, partition: str | None, *, sampled: bool = False
) -> Iterator[Violation]:
    """Yield the violations of the shards, metas and index of one split.

    sampled: leaves out the hash of each whole file, which the record has, too; default False.
    Memory: the rows of a shard 4 MiB at a time, and some lines of the index.
    """
    corpus, split = corpus_and_split(str(partition))
    name = names.split_index(corpus.name, split)
    if not (folder / name).is_file():
        yield Violation("index", name, "is missing")
        return
    shards: list[Meta] = []
    broken = False
    for violation in _shards(folder, corpus.name, split, sampled, shards):
        broken = True
        yield violation
    for violation in _series(shards):
        broken = True
        yield violation
    if not broken:
        yield from index_laws(folder, corpus.name, split, shards)


def _shards(
    folder: Path, corpus: str, split: str, sampled: bool, shards: list[Meta]
) -> Iterator[Violation]:
    """Every file belongs to a shard, and every shard is as its meta says; fills `shards`."""
    inside = folder / corpus / split
    stems: dict[str, set[str]] = {}
    for path in sorted(inside.iterdir()):
        suffix = path.name[path.name.find(".") :]
        if path.name.startswith("shard_") and suffix in _SUFFIXES:
            stems.setdefault(path.name.removesuffix(suffix), set()).add(suffix)
        elif path.name != names.INDEX:
            where = path.relative_to(folder).as_posix()
            yield Violation("files", where, "is no shard, meta file or index")
    for stem, suffixes in stems.items():
        where = f"{corpus}/{split}/{stem}"
        try:
            meta = read_meta(inside / f"{stem}.meta.json") if ".meta.json" in suffixes else None
            own = f".{meta.path.rpartition('.')[2]}" if meta and meta.tokenizer else ".pt"
            if missing := {own, ".meta.json"} - suffixes:
                for suffix in sorted(missing):
                    rule = "is missing, other files of it are there"
                    yield Violation("files", where + suffix, rule)
                continue
            assert meta is not None
            if problem := _misplaced(meta, corpus, split, stem):
                yield Violation("meta", f"{where}.meta.json", problem)
                continue
            shards.append(meta)
            yield from tensor_laws(folder, meta, sampled=sampled)
        except BadInput as error:
            yield Violation("readable", where, str(error))


def _misplaced(meta: Meta, corpus: str, split: str, stem: str) -> str | None:
    """What a meta says about another shard, None where it is that of this one."""
    suffix = f".{meta.path.rpartition('.')[2]}" if meta.tokenizer else ".pt"
    path = names.shard(corpus, split, meta.shard_index, suffix)
    expected = {
        "dataset": corpus,
        "split": split,
        "path": path,
        "token_count": meta.num_sequences * meta.seq_len,
        "rank": meta.shard_index % max(1, meta.world_size),
    }
    if path != f"{corpus}/{split}/{stem}{suffix}":
        return f"shard_index {meta.shard_index} is not the number in its name"
    for name, value in expected.items():
        if getattr(meta, name) != value:
            return f"{name} is {getattr(meta, name)!r}, expected {value!r}"
    if meta.text_tokens + meta.eos_tokens + meta.pad_tokens != meta.token_count:
        return "text_tokens, eos_tokens and pad_tokens are not token_count together"
    return None


def tensor_laws(folder: Path, meta: Meta, *, sampled: bool = False) -> Iterator[Violation]:
    """Yield where the tensor of a shard is not as its meta says."""
    ids = id_files.of_meta(folder, meta)
    shape = (meta.num_sequences, meta.seq_len)
    if ids.shape != shape:
        yield Violation("shape", meta.path, f"is {ids.shape}, its meta file says {shape}")
        return
    digest = hashlib.sha256()
    ends, least, most = 0, 0, 0
    step = max(1, _ROWS_BYTES // (ids.itemsize * meta.seq_len))
    for begin in range(0, len(ids), step):
        rows = np.asarray(ids[begin : begin + step])
        digest.update(rows.data)
        ends += int(np.count_nonzero(rows == meta.eod))
        least, most = min(least, int(rows.min())), max(most, int(rows.max()))
    if least < 0 or most >= meta.ids:
        found = f"ids from {least} to {most}, allowed 0 to {meta.ids - 1}"
        yield Violation("ids", meta.path, found)
    if ends != meta.eos_tokens + meta.pad_tokens:
        expected = f"{meta.eos_tokens} ends of examples and {meta.pad_tokens} of padding"
        yield Violation(
            "ends", meta.path, f"id {meta.eod} occurs {ends} times, its meta has {expected}"
        )
    if digest.hexdigest() != meta.sha256:
        rule = f"the tensor has {digest.hexdigest()}, its meta file {meta.sha256}"
        yield Violation("sha256", meta.path, rule)
    if not sampled and (found := sha256_file(folder / meta.path)) != meta.file_sha256:
        yield Violation("file_sha256", meta.path, f"{found}, its meta file has {meta.file_sha256}")
    twin = meta.path.rpartition(".")[0] + id_files.SAFETENSORS
    if twin != meta.path and (folder / twin).exists() and not _is_twin(folder, meta, twin, ids):
        yield Violation("twin", twin, f"does not hold the tensor of {meta.path}")


def _is_twin(folder: Path, meta: Meta, twin: str, ids: id_files.Ids) -> bool:
    try:
        other = id_files.of_meta(folder, meta, twin)
    except BadInput:
        return False
    step = max(1, _ROWS_BYTES // (ids.itemsize * ids.shape[1]))
    return all(
        np.array_equal(ids[begin : begin + step], other[begin : begin + step])
        for begin in range(0, len(ids), step)
    )


def _series(shards: list[Meta]) -> Iterator[Violation]:
    """The shards of each rank are numbered without a gap, all full but the last."""
    if not shards:
        return
    first = shards[0]
    most = max(meta.num_sequences for meta in shards)
    for name in _SAME:
        for meta in shards:
            if getattr(meta, name) != getattr(first, name):
                yield Violation("one kind of shards", meta.path, f"{name} is not that of the first")
                return
    for rank in range(first.world_size):
        own = sorted(
            (meta for meta in shards if meta.rank == rank), key=lambda meta: meta.shard_index
        )
        for local, meta in enumerate(own):
            if meta.shard_index != local * first.world_size + rank:
                yield Violation("numbers", meta.path, f"rank {rank} lacks its shard {local}")
                return
            is_last = local == len(own) - 1
            if not is_last and (meta.num_sequences != most or meta.pad_tokens):
                yield Violation("full", meta.path, "is not full, but not the last of its rank")
            if meta.pad_tokens >= meta.seq_len:
                yield Violation("padding", meta.path, "has a sequence of padding alone")


_NUMBERS: Final = ("seq_len", "num_sequences", "token_count", "shard_index")


def other_shard_laws(folder: Path, corpus: str, split: str) -> Iterator[Violation]:
    """Yield the violations of the shards of one split.

    The laws: `files`, `meta`, `readable`, `shape`, `ids`, `sha256` as in `shards.py`, and `full`:
    all have one `seq_len`, and as many sequences as the first, but for the last.
    """
    inside = folder / corpus / split
    stems = {path.name.partition(".")[0] for path in inside.glob("shard_*")}
    metas: list[Mapping[str, Any]] = []
    for stem in sorted(stems):
        where = f"{corpus}/{split}/{stem}"
        missing = [end for end in (".pt", ".meta.json") if not (folder / f"{where}{end}").is_file()]
        for end in missing:
            yield Violation("files", where + end, "is missing, other files of it are there")
        if missing:
            continue
        try:
            meta = _read(folder / f"{where}.meta.json", corpus, split, f"{where}.pt")
            metas.append(meta)
            yield from _tensor_laws(folder, meta)
        except BadInput as error:
            yield Violation("readable", where, str(error))
    for meta in metas:
        if meta["seq_len"] != metas[0]["seq_len"]:
            yield Violation("full", meta["path"], "seq_len is not that of the first shard")
        elif meta["num_sequences"] != metas[0]["num_sequences"] and meta is not metas[-1]:
            yield Violation("full", meta["path"], "has not as many sequences as the first shard")


def _read(path: Path, corpus: str, split: str, shard: str) -> Mapping[str, Any]:
    """The meta of a shard. Raises BadInput where it is not that of this shard."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no meta file of a shard: {error}") from error
    if not isinstance(found, dict) or not set(CONTRACT) <= set(found):
        raise BadInput(path, f"is no meta file of a shard: it needs {', '.join(CONTRACT)}")
    for name in _NUMBERS:
        if type(found[name]) is not int or found[name] < 0:
            raise BadInput(path, f"{name} is {found[name]!r}, expected a number from 0")
    expected = {
        "dataset": corpus,
        "split": split,
        "path": shard,
        "token_count": found["num_sequences"] * found["seq_len"],
    }
    for name, value in expected.items():
        if found[name] != value:
            raise BadInput(path, f"{name} is {found[name]!r}, expected {value!r}")
    if names.shard(corpus, split, found["shard_index"]) != shard:
        raise BadInput(path, f"shard_index {found['shard_index']} is not the number in its name")
    return found


def _tensor_laws(folder: Path, meta: Mapping[str, Any]) -> Iterator[Violation]:
    path = folder / meta["path"]
    ids = foreign_pt.mapped(path)
    shape = (meta["num_sequences"], meta["seq_len"])
    if ids.shape != shape:
        yield Violation("shape", meta["path"], f"is {ids.shape}, its meta file says {shape}")
        return
    least, most = int(ids.min()), int(ids.max())
    if least < 0 or most >= TOKENS:
        found = f"ids from {least} to {most}, allowed 0 to {TOKENS - 1}"
        yield Violation("ids", meta["path"], found)
    tensor, _ = foreign_pt.hashes(path)
    if tensor != meta["sha256"]:
        rule = f"the tensor has {tensor}, its meta file {meta['sha256']}"
        yield Violation("sha256", meta["path"], rule)
