"""Chunks of litdata, which litgpt trains on: documents of tokens in binary files, and their index.

Source: `docs/consumers.md#litgpt`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np

from gristmill.exports.table import Array, Split, cut

CHUNK_TOKENS: Final = 1 << 24
_INT32: Final = 16
_CONFIG: Final = {
    "compression": None,
    "chunk_size": None,
    "chunk_bytes": None,
    "data_format": [f"no_header_tensor:{_INT32}"],
    "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
    "encryption": None,
    "item_loader": "TokensLoader",
}


def chunks(name: str, splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the documents of a split as chunks of 32-bit tokens with their `index.json`.

    Arguments and errors as of `token_files`; a chunk is in memory before it is written.

    Returns the tokens of each chunk, by its path, as `train/chunk-0-0.bin`.
    """
    folder, found, state = out / name, list[dict[str, Any]](), 0
    folder.mkdir()
    held: list[tuple[Array, Array]] = []

    def write() -> None:
        nonlocal state
        path = folder / f"chunk-0-{len(found)}.bin"
        sizes = np.concatenate([np.diff(bounds) for _, bounds in held])
        begin = 4 * (len(sizes) + 2)
        offsets = begin + 4 * np.concatenate([[0], np.cumsum(sizes)])
        with path.open("xb") as file:
            for part in (np.array([len(sizes)]), offsets):
                file.write(part.astype("<u4").data)
            for tokens, _ in held:
                state = crc32(np.ascontiguousarray(tokens).data, state)
                file.write(tokens.astype("<i4", copy=False).data)
        size, tokens_of = int(offsets[-1]), int(sizes.sum())
        said = {"chunk_bytes": size, "chunk_size": len(sizes), "dim": tokens_of}
        found.append({**said, "filename": path.name})
        held.clear()

    for tokens, bounds, is_last in cut(splits, most, out):
        held.append((tokens, bounds))
        if is_last:
            write()
    if held:
        write()
    # Readers keep what they fetched by this value: it changes with the tokens alone.
    index = {
        "chunks": found,
        "config": _CONFIG | {"chunk_bytes": 4 * most},
        "updated_at": f"{state}",
    }
    (folder / "index.json").write_text(json.dumps(index, sort_keys=True))
    return {f"{name}/{each['filename']}": each["dim"] for each in found}
