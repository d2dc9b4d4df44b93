"""The shards of a manifest, the seed's included. Source: `docs/formats/reasoning.md#reader`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.reasoning.format.shards import CONTRACT

_NUMBERS: Final = ("seq_len", "num_sequences", "token_count", "shard_index")
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
        rank=_optional(entry, "rank", int),
        world_size=_optional(entry, "world_size", int),
        first_example=_optional(entry, "first_example", str),
        last_example=_optional(entry, "last_example", str),
        file_sha256=_optional(entry, "file_sha256", str),
        tokenizer=_optional(entry, "tokenizer", str),
        dtype=_optional(entry, "dtype", str),
        tokenizer_sha256=_optional(entry, "tokenizer_sha256", str),
    )


def _optional(entry: Mapping[str, Any], name: str, kind: type) -> Any:
    """A value beside the eight keys; None where it has another type."""
    value = entry.get(name)
    return value if type(value) is kind else None
