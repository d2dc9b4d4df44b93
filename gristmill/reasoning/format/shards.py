"""The meta file of a shard, and the manifest. Source: `docs/formats/reasoning.md#manifest`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
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
    for name in expected:
        # A bool is an int to isinstance.
        if type(values[name]) is not (kind := _TYPES[name]):
            raise BadInput(path, f"{name}: {found[name]!r} must be of type {kind.__name__}")
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
