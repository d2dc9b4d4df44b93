"""`.safetensors` twins of shards: the same tensor in the safetensors format.

Source: `docs/formats/reasoning.md#torch-files`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gristmill.hashing import HashedFile

SUFFIX: Final = ".safetensors"
_ALIGNMENT: Final = 8


def write(
    path: Path, shape: tuple[int, int], rows: Iterable[bytes | bytearray | memoryview]
) -> tuple[str, int]:
    """Write a new file in one pass; return its hex sha256 and its size in bytes.

    path: where no file is yet.
    shape: sequences and their length.
    rows: the bytes of `input_ids`, int32 little endian, row by row, cut anywhere.

    Raises ValueError for other bytes than the shape needs.
    """
    start = header(shape)
    with HashedFile(path) as file:
        file.write(start)
        for data in rows:
            file.write(data)
        if file.bytes - len(start) != shape[0] * shape[1] * 4:
            raise ValueError(f"{path}: {file.bytes - len(start)} bytes of rows for {shape}")
        return file.sha256, file.bytes


def header(shape: tuple[int, int]) -> bytes:
    """Everything before the tensor: the length of a JSON text, and the text, padded to 8 bytes."""
    sequences, seq_len = shape
    text = (
        f'{{"input_ids":{{"dtype":"I32","shape":[{sequences},{seq_len}],'
        f'"data_offsets":[0,{sequences * seq_len * 4}]}}}}'
    ).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text
