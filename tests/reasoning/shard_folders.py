"""Folders of small shards: the first token of a sequence is its number."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.reasoning.builders import shard_part
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names, pt_file, shards
from gristmill.reasoning.format.shards import CONTRACT, Meta
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.normalized_files import numbered, write

SEQ_LEN = 8


def tokens(first: int, count: int, seq_len: int = SEQ_LEN) -> npt.NDArray[np.int32]:
    """Sequences whose first token is their number, int32 [count, seq_len]."""
    numbers = np.arange(first, first + count, dtype=np.int32)
    return (numbers[:, None] + 1_000 * np.arange(seq_len, dtype=np.int32)).astype(np.int32)


def write_shard(root: Path, path: str, ids: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Write a shard and its meta with the seed's eight keys; return them."""
    corpus, split, name = path.split("/")
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pt_file.write(file, (ids.shape[0], ids.shape[1]), [ids.tobytes()])
    values = (
        *(corpus, split, ids.shape[1], ids.shape[0], ids.size),
        *(int(name[6:11]), path, hashlib.sha256(ids.tobytes()).hexdigest()),
    )
    meta = dict(zip(CONTRACT, values, strict=True))
    (root / names.meta(path)).write_text(json.dumps(meta, indent=2))
    return meta


def write_manifest(root: Path) -> None:
    """Write the manifest of the metas that there are, as the seed's tools do."""
    metas = [json.loads(path.read_text()) for path in root.rglob("shard_*.meta.json")]
    metas.sort(key=lambda meta: meta["path"])
    (root / names.MANIFEST).write_text(json.dumps(metas, indent=2))


def write_folder(
    root: Path, sizes: Mapping[str, Sequence[int]], seq_len: int = SEQ_LEN, first: int = 0
) -> int:
    """Write shards without records, and their manifest; return how many sequences they have."""
    at = first
    for folder, counts in sorted(sizes.items()):
        for index, count in enumerate(counts):
            corpus, split = folder.split("/")
            write_shard(root, names.shard(corpus, split, index), tokens(at, count, seq_len))
            at += count
    write_manifest(root)
    return at - first


PICKLE = (
    b"\x80\x02}q\x00X\x09\x00\x00\x00input_idsq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02"
    b"((X\x07\x00\x00\x00storageq\x03ctorch\nIntStorage\nq\x04X\x01\x00\x00\x000q\x05"
    b"X\x03\x00\x00\x00cpuq\x06%btq\x07QK\x00%b%b\x86q\x08%bK\x01\x86q\x09"
    b"\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rs."
)


def tensor(shape: tuple[int, int]) -> npt.NDArray[np.int32]:
    """Any ids, the largest and the smallest among them."""
    ids = np.random.default_rng(shape).integers(0, 50_257, shape, dtype=np.int32)
    ids[0, 0], ids[-1, -1] = 50_256, 0
    return ids


def pickle(shape: tuple[int, int]) -> bytes:
    """The pickle of a contiguous matrix, as Python's pickler writes it."""
    numbers = (shape[0] * shape[1], *shape, shape[1])
    return PICKLE % tuple(map(_pickled, numbers))


def foreign(
    path: Path,
    ids: npt.NDArray[Any],
    *,
    stem: str | None = None,
    pad: int = 64,
    entries: Mapping[str, bytes] | None = None,
    pickled: bytes | None = None,
) -> None:
    """Write a file as torch 2.0 to 2.6 did."""
    entries = {"byteorder": b"little"} if entries is None else entries
    named = {
        "data.pkl": pickle((ids.shape[0], ids.shape[1])) if pickled is None else pickled,
        **entries,
        "data/0": ids.tobytes(),
        "version": b"3\n",
    }
    out, central = b"", b""
    for short, data in named.items():
        name, at = f"{stem or path.stem}/{short}".encode(), len(out)
        padding = -(at + 30 + len(name) + 4) % pad
        extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        sizes = (zlib.crc32(data), len(data), len(data))
        out += struct.pack("<4s5H3I2H", b"PK\3\4", *(0, 0x808), *[0] * 6, len(name), len(extra))
        out += name + extra + data + struct.pack("<4s3I", b"PK\7\x08", *sizes)
        lengths = (len(name), 0, 0, 0, 0, 0, at)
        central += struct.pack("<4s6H3I5H2I", b"PK\1\2", *(0, 0, 0x808, 0, 0, 0), *sizes, *lengths)
        central += name
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, *[len(named)] * 2, len(central), len(out), 0)
    path.write_bytes(out + central + end)


def _pickled(number: int) -> bytes:
    if number < 1 << 8:
        return struct.pack("<cB", b"K", number)
    if number < 1 << 16:
        return struct.pack("<cH", b"M", number)
    return struct.pack("<ci", b"J", number)


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

    def write_lines(self, lines: list[dict]) -> None:  # type: ignore[type-arg]
        self.index.write_text("".join(json.dumps(line) + "\n" for line in lines))


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
