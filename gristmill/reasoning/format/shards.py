"""Meta files and manifests of token shards, and the list that a reader has, the seed's included.

Source: `docs/formats/reasoning.md#manifest`, `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.reasoning.format import names

EOS: Final = 50_256
"""The token after each record, and the padding."""
TOKENS: Final = 50_257
"""Number of token ids."""
MOST_TOKENS: Final = 1 << 29
"""Tokens of one shard at most: 2 GiB, so that no number in a `.pt` file needs 64 bits."""
SCHEMA_VERSION: Final = 1

CONTRACT: Final = (
    *("dataset", "split", "seq_len", "num_sequences", "token_count", "shard_index", "path"),
    "sha256",
)
"""The keys that the seed's readers know, which come first."""


@dataclass(frozen=True)
class Meta:
    """One shard. The fields are the keys of the file, in its order.

    seq_len, num_sequences, token_count: shape of the tensor, and its number of tokens.
    shard_index: number in its name, `local * world_size + rank`.
    sha256: hex, of the tensor's bytes (int32 little endian, row by row); file_sha256 of the file.
    source_files: `path` below the data root, and `sha256`, of the normalised file.
    text_tokens, eos_tokens, pad_tokens: tokens of texts, ends of records, and padding.
    first_example, last_example: ids of the first and the last example with tokens in it.
    tokenizer, dtype, eod, ids: of a token dataset: name of the tokenizer, type of the ids, the id
        after each record, and the number of ids; metas of `reasoning/gpt2_shards` lack these keys.
    """

    dataset: str
    split: str
    seq_len: int
    num_sequences: int
    token_count: int
    shard_index: int
    path: str
    sha256: str
    source_files: tuple[Mapping[str, str], ...]
    rank: int
    world_size: int
    file_sha256: str
    text_tokens: int
    eos_tokens: int
    pad_tokens: int
    first_example: str
    last_example: str
    tokenizer_sha256: str
    schema_version: int = SCHEMA_VERSION
    tokenizer: str = ""
    dtype: str = "int32"
    eod: int = EOS
    ids: int = TOKENS


_TYPES: Final[Mapping[str, type]] = {
    field.name: {"int": int, "str": str}.get(str(field.type), tuple) for field in fields(Meta)
}
OTHERS: Final = ("tokenizer", "dtype", "eod", "ids")
"""The keys that shards of GPT-2 do not have."""


def meta_bytes(meta: Meta) -> bytes:
    """The contents of a meta file: indent 2, no newline at the end."""
    return _dumped(_as_dict(meta))


def mistyped(values: Any, types: Mapping[str, type], optional: str | None = None) -> str | None:
    """Why a value is no object with some keys in order, each of a type; None where it is one.

    optional: a key that may be there, too, with any value.
    """
    if not isinstance(values, dict):
        return "must be an object"
    if optional in values:
        values = {name: value for name, value in values.items() if name != optional}
    if [*values] != [*types]:
        return f"the keys must be {', '.join(types)}"
    # A bool is an int to isinstance.
    if [*map(type, values.values())] != [*types.values()]:
        wrong = next(name for name, kind in types.items() if type(values[name]) is not kind)
        return f"{wrong}: must be of type {types[wrong].__name__}"
    return None


def read_meta(path: Path) -> Meta:
    """Return what a meta file says.

    Raises BadInput where it is no JSON object with exactly the keys of `Meta`, of their types.
    """
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no meta file of a shard: {error}") from error
    return meta_of(found, path)


def meta_of(found: Any, path: Path) -> Meta:
    """Return a meta from a parsed JSON object; raises as `read_meta`. path: for errors."""
    expected = [name for name in _TYPES if name not in OTHERS]
    if isinstance(found, dict) and OTHERS[0] in found:
        expected += OTHERS
    if not isinstance(found, dict) or list(found) != expected:
        raise BadInput(path, f"is no meta file of a shard: its keys must be {', '.join(expected)}")
    values = found | {"source_files": _sources(found["source_files"], path)}
    if problem := mistyped(values, {name: _TYPES[name] for name in expected}):
        raise BadInput(path, f"is no meta file of a shard: {problem}")
    if values.get("dtype", "int32") not in ("int32", "uint16"):
        raise BadInput(path, f"dtype: {found['dtype']!r} must be int32 or uint16")
    return Meta(**values)


def manifest_entries(metas: Iterable[Meta]) -> Iterator[bytes]:
    """Yield the manifest: a list of metas, indent 2, no newline at the end."""
    before = b"[\n"
    for meta in metas:
        entry = _dumped(_as_dict(meta)).replace(b"\n", b"\n  ")
        yield before + b"  " + entry
        before = b",\n"
    yield b"[]" if before == b"[\n" else b"\n]"


def read_manifest(root: Path) -> list[Meta]:
    """Return the entries of the manifest in the folder of all shards.

    Raises BadInput where it is no list of metas, in ascending order of their paths.
    """
    path = root / names.MANIFEST
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no JSON: {error}") from error
    if not isinstance(found, list):
        raise BadInput(path, "is no list of shards")
    metas = [meta_of(each, path) for each in found]
    if [meta.path for meta in metas] != sorted({meta.path for meta in metas}):
        raise BadInput(path, "its shards are not in ascending order of their paths, each once")
    return metas


def metas(root: Path, corpus: str, split: str) -> list[Meta]:
    """Return the metas of one split, in the order of their shards. Raises as `read_meta`."""
    found = (root / corpus / split).glob("shard_*.meta.json")
    return sorted(map(read_meta, found), key=lambda meta: meta.path)


def _as_dict(meta: Meta) -> dict[str, Any]:
    left_out = () if meta.tokenizer else OTHERS
    return {name: getattr(meta, name) for name in _TYPES if name not in left_out}


def _dumped(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode()


def _sources(found: Any, path: Path) -> tuple[Mapping[str, str], ...]:
    if not isinstance(found, list) or not all(
        isinstance(each, dict)
        and list(each) == ["path", "sha256"]
        and all(isinstance(value, str) for value in each.values())
        for each in found
    ):
        raise BadInput(path, "source_files: must be a list of objects with path and sha256")
    return tuple(found)


_NUMBERS: Final = ("seq_len", "num_sequences", "token_count", "shard_index")
_OPTIONAL: Final[Mapping[str, type]] = {
    **dict.fromkeys(("rank", "world_size"), int),
    **dict.fromkeys(("first_example", "last_example", "file_sha256"), str),
    **dict.fromkeys(("tokenizer", "dtype", "tokenizer_sha256"), str),
}
"""Keys beside the eight; one that has another type is left out."""
_REMEDY: Final = "build reasoning/manifest again, or copy it again"


@dataclass(frozen=True)
class Shard:
    """One entry of a manifest.

    rank, world_size: those that the shard was packed with; None in a manifest of the seed's tools.
    first_example, last_example: with tokens in the shard; None as above.
    file_sha256: of the file; None as above.
    tokenizer, dtype: of a dataset of another tokenizer than GPT-2's; None for GPT-2.
    tokenizer_sha256: of the tokenizer's file; None in a manifest of the seed's tools.
    """

    path: str
    corpus: str
    split: str
    seq_len: int
    sequences: int
    sha256: str
    rank: int | None = None
    world_size: int | None = None
    first_example: str | None = None
    last_example: str | None = None
    file_sha256: str | None = None
    tokenizer: str | None = None
    dtype: str | None = None
    tokenizer_sha256: str | None = None

    @property
    def partition(self) -> str:
        """Key of the partition that the shard belongs to."""
        return f"{self.corpus}__{self.split}"


@dataclass(frozen=True)
class ShardList:
    """The shards that a reader chooses from a manifest, in its order.

    sha256: hex, of the eight keys of each entry that was chosen. It stays when the manifest gets
        shards of other corpora, and keys beside the eight.
    """

    shards: tuple[Shard, ...]
    sha256: str

    @property
    def seq_len(self) -> int:
        """Tokens of a sequence, the same for all."""
        return self.shards[0].seq_len

    def partitions(self, numbers: Collection[int] | None = None) -> list[str]:
        """The partitions of some shards, default all, in the order of the manifest."""
        chosen = range(len(self.shards)) if numbers is None else sorted(numbers)
        return list(dict.fromkeys(self.shards[number].partition for number in chosen))


def shard_list(
    data: bytes, file: Path, corpora: Sequence[str] = (), splits: Sequence[str] = ()
) -> ShardList:
    """Return what a manifest lists.

    corpora, splits: which to choose; default all.

    Raises BadInput where it is no such manifest, where it has nothing of a corpus or a split that
    was asked for, and where the shards have sequences of several lengths.
    """
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(file, f"is no JSON: {error}: {_REMEDY}") from error
    if not isinstance(entries, list):
        raise BadInput(file, f"is no list of shards: {_REMEDY}")
    listed = [(entry, _shard(entry, file, row)) for row, entry in enumerate(entries, 1)]
    if len({shard.path for _, shard in listed}) < len(listed):
        raise BadInput(file, f"lists a shard twice: {_REMEDY}")
    for asked, known in (
        (corpora, {shard.corpus for _, shard in listed}),
        (splits, {shard.split for _, shard in listed}),
    ):
        if unknown := sorted(set(asked) - known):
            raise BadInput(file, f"has no shard of {unknown}: it has {sorted(known)}")
    chosen = [
        (entry, shard)
        for entry, shard in listed
        if (not corpora or shard.corpus in corpora) and (not splits or shard.split in splits)
    ]
    if not chosen:
        raise BadInput(file, "lists no shard to read: build reasoning/gpt2_shards")
    if len(lengths := {shard.seq_len for _, shard in chosen}) > 1:
        raise BadInput(
            file, f"has sequences of {sorted(lengths)} tokens: choose corpora of one seq_len"
        )
    if len(tokenizers := {(shard.tokenizer, shard.dtype) for _, shard in chosen}) > 1:
        raise BadInput(file, f"has shards of several tokenizers: {sorted(map(str, tokenizers))}")
    named = json.dumps([[entry[name] for name in CONTRACT] for entry, _ in chosen])
    return ShardList(
        tuple(shard for _, shard in chosen), hashlib.sha256(named.encode()).hexdigest()
    )


def _shard(entry: Any, file: Path, row: int) -> Shard:
    """One entry. Raises BadInput for another form."""
    if not isinstance(entry, dict):
        raise BadInput(file, f"an entry is no object: {_REMEDY}", row)
    for name in CONTRACT:
        kind = int if name in _NUMBERS else str
        if type(entry.get(name)) is not kind:
            raise BadInput(file, f"{name} must be of type {kind.__name__}: {_REMEDY}", row)
    size = (entry["num_sequences"], entry["seq_len"])
    if min(size) < 1 or size[0] * size[1] != entry["token_count"]:
        raise BadInput(file, f"{size[0]} sequences of {size[1]} tokens: {_REMEDY}", row)
    path = PurePosixPath(entry["path"])
    if path.parts[:-1] != (entry["dataset"], entry["split"]) or ".." in path.parts:
        raise BadInput(file, f"the path {entry['path']!r} is not <dataset>/<split>/<file>", row)
    return Shard(
        path=entry["path"],
        corpus=entry["dataset"],
        split=entry["split"],
        seq_len=entry["seq_len"],
        sequences=entry["num_sequences"],
        sha256=entry["sha256"],
        **{name: entry[name] for name, kind in _OPTIONAL.items() if type(entry.get(name)) is kind},
    )
