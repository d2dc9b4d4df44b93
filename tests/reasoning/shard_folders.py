"""Folders of small shards: the first token of a sequence is its number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.reasoning.format import names, pt_file
from gristmill.reasoning.format.shards import CONTRACT

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
