"""`.pt` files of one int32 matrix: `torch.save({"input_ids": <int32 tensor>}, path)`.

Written are the bytes of torch 2.13. Read is what any version since 1.6 saves, whose zip may have
other entries, padding and versions around the same pickle; nothing is unpickled, and neither needs
torch. Source: `docs/formats/reasoning.md#torch-files`.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zlib
from collections.abc import Iterable
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
_NAME: Final = b"/data.pkl"
_LONGEST_DIRECTORY: Final = 1 << 14
_LONGEST_PICKLE: Final = 1 << 10
_READ_BYTES: Final = 1 << 20
_RULE: Final = "is no file of one int32 matrix `input_ids` as torch saves it"


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
    """Return where the tensor of a file is, a zip of torch without compression.

    The CRC of the tensor's bytes is not compared. Raises BadInput for any other file, and for a
    tensor that is not one contiguous int32 matrix, or does not fill its storage.
    """
    try:
        with path.open("rb", buffering=0) as file:
            return _Entries(file).payload()
    except (ValueError, struct.error) as error:
        raise BadInput(path, f"{_RULE}: {error}") from error


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


class _Entry(NamedTuple):
    """An entry of the central directory: where its local header is, size and CRC of contents."""

    at: int
    size: int
    crc: int


class _Entries:
    """The entries of a zip, by their names. Raises ValueError or struct.error for another file."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._entries: dict[bytes, _Entry] = {}
        end = max(file.seek(0, io.SEEK_END) - END.size, 0)
        mark, disk, first, here, count, size, at, comment = END.unpack(self._bytes(end, END.size))
        if mark != b"PK\5\6" or disk or first or here != count or comment:
            raise ValueError("it does not end as a zip of torch")
        if size > _LONGEST_DIRECTORY:
            raise ValueError("its central directory is too long")
        directory = self._bytes(at, size)
        begin = 0
        for _ in range(count):
            begin = self._add(directory, begin)
        if begin != len(directory):
            raise ValueError("its central directory has bytes that are no entry")

    def _add(self, directory: bytes, begin: int) -> int:
        """Add the entry that begins there; return where the next one begins."""
        fields = CENTRAL.unpack_from(directory, begin)
        mark, flags, method, (crc, packed, size) = fields[0], fields[3], fields[4], fields[7:10]
        name_at = begin + CENTRAL.size
        name = directory[name_at : name_at + fields[10]]
        if mark != b"PK\1\2" or flags & 1 or method or packed != size or name in self._entries:
            raise ValueError(f"its entry {name!r} is damaged, compressed, encrypted or twice there")
        self._entries[name] = _Entry(fields[-1], size, crc)
        return int(name_at + sum(fields[10:13]))

    def payload(self) -> Payload:
        """Return where the tensor is."""
        stems = [name.removesuffix(_NAME) for name in self._entries if name.endswith(_NAME)]
        if len(stems) != 1:
            raise ValueError(f"it has {len(stems)} entries `data.pkl`, not one")
        found = PICKLED.fullmatch(self._contents(stems[0] + _NAME))
        if found is None:
            raise ValueError("its pickle is not that of one contiguous int32 matrix `input_ids`")
        numbers = (int.from_bytes(number[1:], "little") for number in found.groups())
        count, sequences, seq_len, stride = numbers
        if not 1 <= count <= MOST_TOKENS or count != sequences * seq_len:
            raise ValueError(f"it has {count} ids for {sequences} sequences of {seq_len}")
        if sequences > 1 and stride != seq_len:
            raise ValueError(f"its sequences of {seq_len} ids begin {stride} ids apart")
        order = stems[0] + b"/byteorder"
        if order in self._entries and self._contents(order) != b"little":
            raise ValueError("its byte order is not little endian")
        begin, size = self._place(stems[0] + b"/data/0")
        if size != 4 * count:
            raise ValueError(f"its entry `data/0` has {size} bytes for {count} ids")
        return Payload(begin, (sequences, seq_len))

    def _place(self, name: bytes) -> tuple[int, int]:
        """Where the contents of an entry begin, and their size."""
        if name not in self._entries:
            raise ValueError(f"it has no entry {name!r}")
        at, size, crc = self._entries[name]
        mark, _, flags, *_, named, extra = LOCAL.unpack(self._bytes(at, LOCAL.size))
        begin = at + LOCAL.size + named + extra
        if mark != b"PK\3\4" or self._bytes(at + LOCAL.size, named) != name:
            raise ValueError(f"its entry {name!r} is not where its directory says")
        after = self._bytes(begin + size, 12)
        described = struct.pack("<4sII", b"PK\7\x08", crc, size)
        if after != described if flags & 8 else not after.startswith((b"PK\1\2", b"PK\3\4")):
            raise ValueError(f"its entry {name!r} does not end where its directory says")
        return begin, size

    def _contents(self, name: bytes) -> bytes:
        """The contents of a small entry."""
        begin, size = self._place(name)
        contents = self._bytes(begin, min(size, _LONGEST_PICKLE + 1))
        if size > _LONGEST_PICKLE or zlib.crc32(contents) != self._entries[name].crc:
            raise ValueError(f"its entry {name!r} is too long, or damaged")
        return contents

    def _bytes(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)
