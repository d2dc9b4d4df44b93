"""The text of packed files (gzip, bzip2, xz, zstd), member by member, within limits."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from gristmill.contract import BadInput, GristmillError, is_of_machine

_READ_BYTES: Final = 1 << 18
_TEXT_BYTES: Final = 1 << 20
# One byte of zstd can unpack to 32 KiB, so small reads bound what one read unpacks to.
_ZSTD_READ_BYTES: Final = 1 << 10
# The largest that `zstd --long` packs with. Its memory is taken as far as there is text.
_ZSTD_WINDOW: Final = 1 << 31
_XZ_MEMORY: Final = 256 << 20
_MEMBERS: Final = 100_000
"""Members or frames of one file, at most."""
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


@dataclass(frozen=True)
class Rules:
    """What errors say of a file: {name} is the packing, {error} what its library says.

    many: {most} members or frames are exceeded; {parts} is what the packing calls them.
    memory: it needs too much memory; {repacked} says how to pack it again.
    behind: bytes behind a member are none; empty: the library says so.
    """

    many: str = "has more than {most:,} {parts}: pack it again"
    memory: str = "takes too much memory to unpack ({error}): {repacked}"
    dictionary: str = "needs a dictionary ({error}): pack it again without one"
    broken: str = "is broken {name} ({error}): get it again"
    cut: str = "ends in the middle of its {name} data: get it again"
    behind: str = "has bytes behind its {name} data that are none: pack it again"
    package: str = "zstandard"


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


def _xz() -> Any:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


_PACKINGS: Final[dict[str, tuple[str, Callable[[], Any]]]] = {
    "gz": ("gzip", _Gzip),
    "bz2": ("bzip2", bz2.BZ2Decompressor),
    "xz": ("xz", _xz),
    "zst": ("zstd", _zstd),
}
"""By ending of the file: the name of the packing, and what makes a decompressor of one member."""


def unpack(file: BinaryIO, path: Path, ending: str, rules: Rules = Rules()) -> Iterator[bytes]:
    """Yield the text of all members of a packed file, in parts of 1 MiB or what one read gives.

    Raises BadInput for a damaged file, and for one with too many members; GristmillError where
    `.zst` is read without zstandard.
    """
    name, new = _PACKINGS[ending]
    parts, read_bytes, most = "members", _READ_BYTES, [_TEXT_BYTES]
    errors: tuple[type[Exception], ...] = (zlib.error, OSError, EOFError, lzma.LZMAError)
    if name == "zstd":  # a decompressor of it gives all text of a read
        parts, read_bytes, most = "frames", _ZSTD_READ_BYTES, []
        errors = (_zstd_error(path, rules), MemoryError)
    member, members = None, 0
    try:
        while data := file.read(read_bytes):
            while data:
                if member is None:
                    if members and most:
                        data = data.lstrip(b"\0")  # padding between members
                        if not data:
                            break
                    _check_begin(data, path, name, members, rules)
                    member, members = new(), members + 1
                    if members > _MEMBERS:
                        raise BadInput(path, rules.many.format(most=_MEMBERS, parts=parts))
                yield from _texts(member, data, *most)
                data = b""
                if member.eof:
                    data, member = member.unused_data, None
    except errors as error:
        if is_of_machine(error):
            raise
        raise _broken(path, name, error, rules) from error
    if member is not None or not members:
        raise BadInput(path, rules.cut.format(name=name))


def _texts(member: Any, data: bytes, *most: int) -> Iterator[bytes]:
    """What a member unpacks from `data`, in parts of `most` bytes where that is given."""
    yield member.decompress(data, *most)
    while most and not member.eof and (text := member.decompress(b"", *most)):
        yield text


def _zstd_error(path: Path, rules: Rules) -> type[Exception]:
    try:
        from zstandard import ZstdError
    except ImportError as error:
        rule = f"{path}: .zst needs zstandard: pip install {rules.package}"
        raise GristmillError(rule) from error
    return ZstdError


def _check_begin(data: bytes, path: Path, name: str, members: int, rules: Rules) -> None:
    """Raise BadInput for what does not begin as a member or frame."""
    if any(begin.startswith(data[: len(begin)]) for begin in _BEGINS[name]):
        return
    if not members:
        rule = f"is broken {name}, or none: give it the ending of what it is, or pack it again"
        raise BadInput(path, rule)
    if rules.behind:
        raise BadInput(path, rules.behind.format(name=name))


def _broken(path: Path, name: str, error: BaseException, rules: Rules) -> BadInput:
    """The error for what a decompressor does not take."""
    text = str(error).lower()
    rule = rules.broken
    if "memory" in text:
        rule = rules.memory
    elif "dictionary" in text:
        rule = rules.dictionary
    return BadInput(path, rule.format(name=name, error=error, repacked=_REPACKED.get(name, "")))
