"""`.pt` files of one int32 matrix `input_ids`, saved by any version of torch since 1.6.

Nothing is unpickled. `pt_file.py` compares every byte of the form that Gristmill writes; here the
zip may have other entries, padding and versions around the same pickle.
Source: `docs/formats/reasoning.md#torch-files`.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.reasoning.format import pt_file
from gristmill.reasoning.format.pt_file import CENTRAL, END, LOCAL, PICKLED, Payload
from gristmill.reasoning.format.shards import MOST_TOKENS

_PICKLE: Final = b"/data.pkl"
_LONGEST_DIRECTORY: Final = 1 << 14
_LONGEST_PICKLE: Final = 1 << 10


def payload(path: Path) -> Payload:
    """Return where the tensor of a file is.

    path: a file of the form of `pt_file`, or another zip of torch without compression.

    The CRC of the tensor's bytes is not compared. Raises BadInput for any other file, and for a
    tensor that is not one contiguous int32 matrix, or does not fill its storage.
    """
    try:
        return pt_file.payload(path)
    except BadInput as error:
        rule = error.rule
    try:
        with path.open("rb", buffering=0) as file:
            return _Zip(file).payload()
    except (ValueError, struct.error) as error:
        raise BadInput(path, f"{rule}, nor as another version does: {error}") from error


def mapped(path: Path) -> npt.NDArray[np.int32]:
    """Return the tensor, int32 [sequences, seq_len], mapped into memory and read-only."""
    return pt_file.mapped(path, payload(path))


def hashes(path: Path) -> tuple[str, str]:
    """Return the hex sha256 of the tensor's bytes, and of the file, both in one pass."""
    return pt_file.hashes(path, payload(path))


class _Entry(NamedTuple):
    """An entry of the central directory: where its local header is, size and CRC of contents."""

    at: int
    size: int
    crc: int


class _Zip:
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
        stems = [name.removesuffix(_PICKLE) for name in self._entries if name.endswith(_PICKLE)]
        if len(stems) != 1:
            raise ValueError(f"it has {len(stems)} entries `data.pkl`, not one")
        found = PICKLED.fullmatch(self._contents(stems[0] + _PICKLE))
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
