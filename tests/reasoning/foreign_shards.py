"""`.pt` files as torch 1.6 to 2.6 laid them out, written by hand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

PICKLE = (
    b"\x80\x02}q\x00X\x09\x00\x00\x00input_idsq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02"
    b"((X\x07\x00\x00\x00storageq\x03ctorch\nIntStorage\nq\x04X\x01\x00\x00\x000q\x05"
    b"X\x03\x00\x00\x00cpuq\x06%btq\x07QK\x00%b%b\x86q\x08%bK\x01\x86q\x09"
    b"\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rs."
)


def tensor(shape: tuple[int, int]) -> npt.NDArray[np.int32]:
    """Any ids."""
    return np.random.default_rng(shape).integers(0, 50_257, shape, dtype=np.int32)


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
