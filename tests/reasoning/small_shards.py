"""A small folder of token shards, built once for many tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from gristmill.reasoning.builders import shard_part
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names, pt_file, shards
from gristmill.reasoning.format.shards import Meta
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.normalized_files import numbered, write


@dataclass(frozen=True)
class SmallShards:
    """A folder of normalised files and the folder of their shards."""

    normalized: Path
    tokenized: Path
    config: TokenizeConfig

    @property
    def index(self) -> Path:
        return self.tokenized / names.split_index("gsm8k", "train")

    def copied(self, folder: Path) -> SmallShards:
        """A copy that a test may change."""
        shutil.copytree(self.tokenized, folder / "tokenized")
        shutil.copytree(self.normalized, folder / "raw")
        return replace(self, normalized=folder / "raw", tokenized=folder / "tokenized")

    def metas(self) -> list[Meta]:
        return shards.metas(self.tokenized, "gsm8k", "train")

    def write_meta(self, meta: Meta, path: str | None = None) -> None:
        octets = shards.meta_bytes(meta)
        (self.tokenized / names.meta(path or meta.path)).write_bytes(octets)

    def change_tensor(self, meta: Meta, change: Callable[[bytearray], None]) -> Meta:
        """Change a tensor, and its hashes in its meta; its twin goes."""
        path = self.tokenized / meta.path
        path.with_suffix(".safetensors").unlink()
        data = bytearray(pt_file.mapped(path).tobytes())
        change(data)
        path.unlink()
        written = pt_file.write(path, (meta.num_sequences, meta.seq_len), [data])
        meta = replace(meta, sha256=written.tensor_sha256, file_sha256=written.sha256)
        self.write_meta(meta)
        return meta

    def lines(self) -> list[dict]:  # type: ignore[type-arg]
        return [orjson.loads(line) for line in self.index.read_bytes().splitlines()]

    def write_lines(self, lines: list[dict], compact: bool = False) -> None:  # type: ignore[type-arg]
        """Write the index, with the separators of the format or without spaces."""
        separators = (",", ":") if compact else None
        self.index.write_text(
            "".join(json.dumps(line, separators=separators) + "\n" for line in lines)
        )


def build(
    folder: Path, vocabulary_root: Path, world_size: int = 2, records: int = 24
) -> SmallShards:
    """Records in shards of three sequences of eight tokens, with twins."""
    jsonl = write(folder / "raw" / names.normalized("gsm8k", "train"), numbered(records))
    config = TokenizeConfig(
        vocabulary=find(GPT2, vocabulary_root),
        seq_len=8,
        tokens_per_shard=24,
        world_size=world_size,
        safetensors=True,
    )
    before, shard_part._GROUP_BYTES = shard_part._GROUP_BYTES, 400
    try:
        tokenize(jsonl, folder / "tokenized", config)
    finally:
        shard_part._GROUP_BYTES = before
    return SmallShards(folder / "raw", folder / "tokenized", config)
