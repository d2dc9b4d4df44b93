"""The bytes of a data file of a drop, unpacked within limits.

See also `rows.py`: the rows in these bytes. Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from gristmill.contract import BadInput, GristmillError, is_of_machine
from gristmill.reasoning.raw.drops import kind
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS, Limits, bounded
from gristmill.untrusted.lines import reads
from gristmill.untrusted.pointer import HEAD_BYTES, refuse_pointer

_READ_BYTES: Final = 1 << 18
_TEXT_BYTES: Final = 1 << 20
# One byte of zstd can unpack to 32 KiB, so small reads bound what one read unpacks to.
_ZSTD_READ_BYTES: Final = 1 << 10
# The largest that `zstd --long` packs with. Its memory is taken as far as there is text.
_ZSTD_WINDOW: Final = 1 << 31
_XZ_MEMORY: Final = 256 << 20
_BEGINS: Final = {
    "gzip": (b"\x1f\x8b",),
    "bzip2": (b"BZh",),
    "xz": (b"\xfd7zXZ\0",),
    # A frame, or one that is skipped.
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes([at]) + b"\x2a\x4d\x18" for at in range(0x50, 0x60))),
}
_REPACKED: Final = {
    "xz": "pack it again with a smaller dictionary, as `xz -d | xz -6` does",
    "zstd": "pack it again with a smaller window, as `zstd -d --long=31 | zstd` does",
}
_MEMBERS: Final = 100_000
"""Members or frames of one file, at most."""


@contextmanager
def unpacked(
    path: Path, links: LinkRule = REFUSE_LINKS, limits: Limits = LIMITS
) -> Iterator[Iterator[bytes]]:
    """Open a data file that is no Parquet; gives its text in parts, 1 MiB at most for most formats.

    path: the file, in its drop.
    links: what happens if it is a link; default: it is refused.
    limits: `bytes`, `text_bytes`, `ratio` and `any_ratio_bytes` count.

    Raises BadInput for what is no regular file, is damaged, or breaks a limit; GristmillError
    where `.zst` is read without zstandard.
    """
    _, packing = kind(path.name) or ("", "")
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size > limits.bytes:
            raise BadInput(path, f"has more than {limits.bytes:,} bytes")
        refuse_pointer(file.read(HEAD_BYTES), path)
        file.seek(0)
        if not packing:
            yield reads(file)
            return
        texts = _UNPACKERS[packing](file, path)
        yield bounded(texts, path, limits.unpacked(size))


class _Gzip:
    """A decompressor of one gzip member, with the face of those of bz2 and lzma."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


def _bz2() -> Any:
    return bz2.BZ2Decompressor()


def _xz() -> Any:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _check_begin(data: bytes, path: Path, name: str, members: int) -> None:
    """Raise BadInput for what does not begin as a member or frame."""
    begins = _BEGINS[name]
    if any(begin.startswith(data[: len(begin)]) for begin in begins):
        return
    if members:
        raise BadInput(path, f"has bytes behind its {name} data that are none: pack it again")
    rule = f"is broken {name}, or none: give it the ending of what it is, or pack it again"
    raise BadInput(path, rule)


def _broken(path: Path, name: str, error: Exception) -> BadInput:
    """The error for what an unpacker does not take."""
    text = str(error).lower()
    if "memory" in text:
        rule = f"takes too much memory to unpack ({error})"
        return BadInput(path, f"{rule}: {_REPACKED[name]}")
    if "dictionary" in text:
        return BadInput(path, f"needs a dictionary ({error}): pack it again without one")
    return BadInput(path, f"is broken {name} ({error}): get it again")


def _members(file: BinaryIO, path: Path, new: Callable[[], Any], name: str) -> Iterator[bytes]:
    """The text of all members of a file."""
    member, members = None, 0
    try:
        while data := file.read(_READ_BYTES):
            while data:
                if member is None:
                    data = data.lstrip(b"\0") if members else data  # padding between members
                    if not data:
                        break
                    _check_begin(data, path, name, members)
                    member, members = new(), members + 1
                    if members > _MEMBERS:
                        raise BadInput(path, f"has more than {_MEMBERS:,} members: pack it again")
                yield member.decompress(data, _TEXT_BYTES)
                while not member.eof and (text := member.decompress(b"", _TEXT_BYTES)):
                    yield text
                data = b""
                if member.eof:
                    data, member = member.unused_data, None
    except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
        if is_of_machine(error):
            raise
        raise _broken(path, name, error) from error
    if member is not None or not members:
        raise BadInput(path, f"ends in the middle of its {name} data: get it again")


def _gunzip(file: BinaryIO, path: Path) -> Iterator[bytes]:
    return _members(file, path, _Gzip, "gzip")


def _bunzip(file: BinaryIO, path: Path) -> Iterator[bytes]:
    return _members(file, path, _bz2, "bzip2")


def _unxz(file: BinaryIO, path: Path) -> Iterator[bytes]:
    return _members(file, path, _xz, "xz")


def _unzstd(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise GristmillError(f"{path}: .zst needs zstandard: pip install zstandard") from error
    frame, frames = None, 0
    try:
        while data := file.read(_ZSTD_READ_BYTES):
            while data:
                if frame is None:
                    _check_begin(data, path, "zstd", frames)
                    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
                    frame, frames = unpacker.decompressobj(), frames + 1
                    if frames > _MEMBERS:
                        raise BadInput(path, f"has more than {_MEMBERS:,} frames: pack it again")
                yield frame.decompress(data)
                data = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    except zstandard.ZstdError as error:
        raise _broken(path, "zstd", error) from error
    if frame is not None or not frames:
        raise BadInput(path, "ends in the middle of its zstd data: get it again")


_UNPACKERS: Final[dict[str, Callable[[BinaryIO, Path], Iterator[bytes]]]] = {
    "gz": _gunzip,
    "bz2": _bunzip,
    "xz": _unxz,
    "zst": _unzstd,
}
