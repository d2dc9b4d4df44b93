"""`.pt` files: the bytes of torch 2.13's `torch.save({"input_ids": <int32 tensor>}, path)`.

Neither writing nor mapping needs torch. Source: `docs/formats/reasoning.md#torch-files`.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.hashing import HashedFile
from gristmill.reasoning.format.shards import MOST_TOKENS

_ALIGNMENT: Final = 64
LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_DESCRIPTOR: Final = struct.Struct("<4sIII")
CENTRAL: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END64: Final = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR: Final = struct.Struct("<4sIQI")
END: Final = struct.Struct("<4sHHHHIIH")
_FLAGS: Final = 0x0808
"""A data descriptor follows each entry, and names are UTF-8."""

_ID: Final = b"15728199511854643026"
"""What the serialization id of any such file begins with: torch's hash of the entries' names."""
_PICKLE: Final = (
    b"\x80\x02}q\x00X\x09\x00\x00\x00input_idsq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02"
    b"((X\x07\x00\x00\x00storageq\x03ctorch\nIntStorage\nq\x04X\x01\x00\x00\x000q\x05"
    b"X\x03\x00\x00\x00cpuq\x06%stq\x07QK\x00%s%s\x86q\x08%sK\x01\x86q\x09"
    b"\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rs."
)
_NUMBER: Final = rb"(K.|M..|J....)"
PICKLED: Final = re.compile(re.escape(_PICKLE).replace(b"%s", _NUMBER), re.DOTALL)
"""Numbers in it, an opcode and little endian: ids, sequences, their length, stride."""
_BEFORE: Final = (
    (".format_version", b"1"),
    (".storage_alignment", b"64"),
    ("byteorder", b"little"),
)
_PAYLOAD: Final = "data/0"
_LONGEST_HEAD: Final = 1 << 13
_READ_BYTES: Final = 1 << 20
_RULE: Final = "is no file of one int32 matrix `input_ids` as torch 2.13 saves it"


class Written(NamedTuple):
    """What `write` wrote.

    sha256: hex sha256 of the file. tensor_sha256: of its payload. bytes: of the file.
    """

    sha256: str
    tensor_sha256: str
    bytes: int


class Payload(NamedTuple):
    """Where the tensor is in a file: offset in bytes, and its shape.

    The offset is a multiple of 64 in a file of this form.
    """

    offset: int
    shape: tuple[int, int]


def write(
    path: Path,
    shape: tuple[int, int],
    rows: Iterable[bytes | bytearray | memoryview],
    *,
    stem: str | None = None,
) -> Written:
    """Write a new file in one pass.

    shape: sequences and their length, both at least 1; at most `MOST_TOKENS` tokens.
    rows: the tensor's bytes, int32 little endian, row by row, cut anywhere.
    stem: name of the folder in the zip; default the stem of `path`, as torch has it.

    Raises ValueError for another shape, or other bytes than the shape needs.
    """
    size = _checked_size(shape)
    stem = path.stem if stem is None else stem
    # torch gives names that are not ASCII to no zip.
    zipped = _Zip(stem.encode() if stem.isascii() else b"archive")
    digest, crc, done = hashlib.sha256(), 0, 0
    with HashedFile(path) as file:
        file.write(_head(zipped, shape))
        for data in rows:
            file.write(data)
            digest.update(data)
            crc = zlib.crc32(data, crc)
            done += memoryview(data).nbytes
        if done != size:
            raise ValueError(f"{path}: {done} bytes of rows for a tensor of {size} bytes")
        file.write(_tail(zipped, crc, size))
        return Written(file.sha256, digest.hexdigest(), file.bytes)


def payload(path: Path) -> Payload:
    """Return where the tensor of a file is. All bytes are compared except those of the tensor.

    Raises BadInput for any other file, and where one of the bytes around the tensor differs.
    """
    with path.open("rb", buffering=0) as file:
        start = file.read(_LONGEST_HEAD)
        for stem, shape in _described(start):
            zipped = _Zip(stem)
            if not start.startswith(_head(zipped, shape)):
                continue
            offset, size = zipped.at, _checked_size(shape)
            file.seek(offset + size)
            end = file.read(_LONGEST_HEAD)
            with suppress(struct.error):
                crc = _DESCRIPTOR.unpack_from(end)[1]
                if end == _tail(zipped, crc, size):
                    return Payload(offset, shape)
            raise BadInput(path, f"{_RULE}: it is cut off or damaged after its {size} bytes")
    raise BadInput(path, _RULE)


def mapped(path: Path, at: Payload | None = None) -> npt.NDArray[np.int32]:
    """Return the tensor, int32 [sequences, seq_len], mapped into memory and read-only.

    path: a file of this form, or one with the tensor `at`. Raises as `payload`.
    """
    offset, shape = at or payload(path)
    return np.memmap(path, dtype="<i4", mode="r", offset=offset, shape=shape)


def hashes(path: Path, at: Payload | None = None) -> tuple[str, str]:
    """Return the hex sha256 of the tensor's bytes, and of the file, both in one pass.

    path: a file of this form, or one with the tensor `at`; read 1 MiB at a time.
    """
    offset, (sequences, seq_len) = at or payload(path)
    tensor, whole = hashlib.sha256(), hashlib.sha256()
    left = sequences * seq_len * 4
    with path.open("rb", buffering=0) as file:
        whole.update(file.read(offset))
        while data := file.read(_READ_BYTES):
            whole.update(data)
            tensor.update(memoryview(data)[:left])
            left -= min(left, len(data))
    return tensor.hexdigest(), whole.hexdigest()


class _Zip:
    """A zip under construction as torch's writer makes it: entries, offsets, checksums."""

    def __init__(self, stem: bytes) -> None:
        self.stem = stem
        self.at = 0
        self._central: list[bytes] = []
        self.checksums: list[int] = []

    def begin(self, name: str) -> bytes:
        """Return the header of the next entry, padded so that its contents are aligned."""
        self._name, self._begin = self.stem + b"/" + name.encode(), self.at
        unpadded = self.at + LOCAL.size + len(self._name) + 4
        padding = -unpadded % _ALIGNMENT
        extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        header = LOCAL.pack(b"PK\3\4", 0, _FLAGS, 0, 0, 0, 0, 0, 0, len(self._name), len(extra))
        self.at = unpadded + padding
        return header + self._name + extra

    def end(self, crc: int, size: int) -> bytes:
        """Return what follows the contents of an entry."""
        self.at += size + _DESCRIPTOR.size
        self.checksums.append(crc)
        self._central.append(
            CENTRAL.pack(
                *(b"PK\1\2", 0, 0, _FLAGS, 0, 0, 0, crc, size, size),
                *(len(self._name), 0, 0, 0, 0, 0, self._begin),
            )
            + self._name
        )
        return _DESCRIPTOR.pack(b"PK\7\x08", crc, size, size)

    def entry(self, name: str, contents: bytes) -> bytes:
        header = self.begin(name)
        return header + contents + self.end(zlib.crc32(contents), len(contents))

    def close(self) -> bytes:
        """Return the central directory and what ends the file."""
        central, count = b"".join(self._central), len(self._central)
        after = self.at + len(central)
        return (
            central
            + _END64.pack(
                *(b"PK\6\6", _END64.size - 12, 0x031E, 45, 0, 0),
                *(count, count, len(central), self.at),
            )
            + _LOCATOR.pack(b"PK\6\7", 0, after, 1)
            + END.pack(b"PK\5\6", 0, 0, count, count, len(central), self.at, 0)
        )


def _head(zipped: _Zip, shape: tuple[int, int]) -> bytes:
    sequences, seq_len = shape
    numbers = tuple(map(_pickled, (sequences * seq_len, sequences, seq_len, seq_len)))
    entries = [zipped.entry("data.pkl", _PICKLE % numbers)]
    entries += [zipped.entry(name, contents) for name, contents in _BEFORE]
    return b"".join([*entries, zipped.begin(_PAYLOAD)])


def _tail(zipped: _Zip, crc: int, size: int) -> bytes:
    """Everything after the payload. crc: of the payload. size: its bytes."""
    after = zipped.end(crc, size) + zipped.entry("version", b"3\n")
    folded = 0
    for each in zipped.checksums:
        folded ^= (each + 0x9E3779B9 + (folded << 6) + (folded >> 2)) & 0xFFFF_FFFF_FFFF_FFFF
    identity = _ID + b"%020d" % folded
    return after + zipped.entry(".data/serialization_id", identity) + zipped.close()


def _pickled(number: int) -> bytes:
    """A number in the shortest form of protocol 2."""
    if number < 1 << 8:
        return struct.pack("<cB", b"K", number)
    if number < 1 << 16:
        return struct.pack("<cH", b"M", number)
    return struct.pack("<ci", b"J", number)


def _checked_size(shape: tuple[int, int]) -> int:
    """Bytes of a tensor. Raises ValueError for a shape that no file may have."""
    sequences, seq_len = shape
    if sequences < 1 or seq_len < 1 or sequences * seq_len > MOST_TOKENS:
        raise ValueError(f"a shard of {sequences} sequences of {seq_len} tokens: from 1 to 2**29")
    return sequences * seq_len * 4


def _described(start: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Yield the stem and the shape that the start of a file names, if it does."""
    with suppress(struct.error):
        length = LOCAL.unpack_from(start)[9]
        name = start[LOCAL.size : LOCAL.size + length]
        found = PICKLED.search(start)
        if found is not None and name.endswith(b"/data.pkl"):
            numbers = [int.from_bytes(number[1:], "little") for number in found.groups()]
            shape = (numbers[1], numbers[2])
            with suppress(ValueError):
                _checked_size(shape)
                yield name.removesuffix(b"/data.pkl"), shape
