"""Files of shards that torch did not save. Source: `docs/formats/reasoning.md#token-datasets`."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.hashing import HashedFile
from gristmill.reasoning.format import names, pt_file
from gristmill.reasoning.format.pt_file import Written
from gristmill.reasoning.format.shards import Meta, read_meta

BIN: Final = ".bin"
SAFETENSORS: Final = ".safetensors"
SUFFIXES: Final = (BIN, SAFETENSORS)
_ALIGNMENT: Final = 8
_DTYPES: Final = {"int32": ("I32", 4), "uint16": ("U16", 2)}
"""Names in the header, and bytes of an id, by type."""
Ids = npt.NDArray[Any]


def write(
    path: Path,
    shape: tuple[int, int],
    rows: Iterable[bytes | bytearray | memoryview],
    dtype: str = "int32",
) -> Written:
    """Write a new file in one pass.

    path: `.bin` or `.safetensors`, where no file is yet. shape: sequences and their length.
    rows: their ids, little endian, row by row, cut anywhere. dtype: of them; default "int32".

    Raises ValueError for other bytes than the shape needs.
    """
    start = b"" if path.suffix == BIN else header(shape, dtype)
    tensor = hashlib.sha256()
    with HashedFile(path) as file:
        file.write(start)
        for data in rows:
            file.write(data)
            tensor.update(data)
        if file.bytes - len(start) != shape[0] * shape[1] * _DTYPES[dtype][1]:
            raise ValueError(f"{path}: {file.bytes - len(start)} bytes of rows for {shape}")
        return Written(file.sha256, tensor.hexdigest(), file.bytes)


def header(shape: tuple[int, int], dtype: str = "int32") -> bytes:
    """What is before the tensor: the length of a JSON text, and the text, padded to 8 bytes."""
    (sequences, seq_len), (name, size) = shape, _DTYPES[dtype]
    text = (
        f'{{"input_ids":{{"dtype":"{name}","shape":[{sequences},{seq_len}],'
        f'"data_offsets":[0,{sequences * seq_len * size}]}}}}'
    ).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def mapped(path: Path, shape: tuple[int, int], dtype: str, suffix: str = "") -> Ids:
    """The ids of a file [sequences, seq_len], mapped into memory and read-only.

    shape, dtype: as its meta file has them. suffix: of its name, where `path` is another one.

    Raises BadInput for a file of another size or header.
    """
    kind = np.dtype(dtype).newbyteorder("<")
    is_bin = (suffix or path.suffix) == BIN
    head = b"" if is_bin else header(shape, dtype)
    size = len(head) + shape[0] * shape[1] * kind.itemsize
    with path.open("rb") as file:
        if path.stat().st_size != size or file.read(len(head)) != head:
            raise BadInput(path, f"does not hold {shape[0]} sequences of {shape[1]} ids {dtype}")
    return np.memmap(path, dtype=kind, mode="r", offset=len(head), shape=shape)


def place(path: Path) -> tuple[int, int]:
    """Where the ids of a shard begin in its file, and where they end.

    Raises BadInput for a `.pt` that is no file of torch.
    """
    if path.suffix == ".pt":
        begin, (sequences, seq_len) = pt_file.payload(path)
        return begin, begin + 4 * sequences * seq_len
    if path.suffix == BIN:
        return 0, path.stat().st_size
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
    return 8 + size, path.stat().st_size


def hashes(path: Path) -> tuple[str, str]:
    """Hex sha256 of the ids of a shard, and of its file. Raises BadInput as `place`."""
    if path.suffix == ".pt":
        return pt_file.hashes(path)
    begin, end = place(path)  # the end of the file: no id is behind it
    return pt_file.hashes(path, pt_file.Payload(begin, (1, end)))


def of_meta(folder: Path, meta: Meta, path: str = "") -> Ids:
    """The ids of a shard. folder: of all shards. path: of the file in it; default that of `meta`.

    Raises BadInput where the file is not as the meta says.
    """
    file = folder / (path or meta.path)
    if file.suffix == ".pt":
        return pt_file.mapped(file)
    return mapped(file, (meta.num_sequences, meta.seq_len), meta.dtype)


def of_path(path: Path) -> Ids:
    """The ids of a shard by its path; the meta file is beside it. Raises BadInput as `of_meta`."""
    if path.suffix == ".pt":
        return pt_file.mapped(path)
    meta = read_meta(path.with_name(names.meta(path.name)))
    return mapped(path, (meta.num_sequences, meta.seq_len), meta.dtype)
