"""One PGN out of an untrusted file: bounded, checked, never a path of the sender's choosing.

`.zip` with exactly one PGN, `.pgn`, and `.pgn.zst`. Member names are looked at,
but never written to: the PGN goes where the caller says.
"""

from __future__ import annotations

import errno
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from gristmill.chess.config import Limits
from gristmill.contract import BadInput, GristmillError

_CHUNK = 1 << 20
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A byte of zstd can stand for 32 KiB; so small bites bound what one bite yields.
_ZSTD_BITE = 1 << 10
_MOST_MEMBERS = 1000
_RATIO_FROM = 16 << 20
# What zipfile and its decompressors raise for bytes that are no good archive.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,  # names that do not decode, places before the file's begin
)
# bzip2 says that its data is bad, and a place that cannot be is sought, by an
# OSError; these are those that speak of the machine, whatever the archive holds.
_OF_THE_MACHINE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES),
    *(errno.EPERM, errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}


def snippet(head: bytes) -> str:
    """The first 200 bytes of something unexpected, white space collapsed, for an error."""
    return " ".join(head[:200].decode("utf-8", "replace").split())


def check_zip_signature(path: Path) -> None:
    """Raise BadInput if the file does not begin as a ZIP does."""
    with path.open("rb") as file:
        head = file.read(512)
    if head[:4] not in _ZIP_MAGIC:
        raise BadInput(
            path,
            f"not a ZIP (bad signature {head[:4]!r}), likely HTML/error page: {snippet(head)!r}; "
            "download it again",
        )


def _write(pieces: Iterable[bytes], source: Path, target: Path, most: int) -> int:
    """Write pieces to the target, refusing none, more than `most` bytes, and what is not text."""
    total = 0
    with target.open("wb", buffering=0) as file:
        for piece in pieces:
            if total == 0 and piece:
                _check_text(piece[:4096], source)
            total += len(piece)
            if total > most:
                raise BadInput(source, f"unpacks to more than {most} bytes; it is not a month")
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
    if total == 0:
        raise BadInput(source, "holds an empty PGN; fetch it again")
    return total


def _check_text(head: bytes, source: Path) -> None:
    if b"\0" in head or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        raise BadInput(source, f"does not hold PGN text: {snippet(head)!r}")


def _unsafe(info: zipfile.ZipInfo) -> str:
    name = PurePosixPath(info.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in info.filename:
        return "names a path outside the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link"
    return ""


def _one_pgn(archive: zipfile.ZipFile, path: Path, limits: Limits) -> zipfile.ZipInfo:
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise BadInput(path, f"has {len(members)} members, more than {_MOST_MEMBERS}")
    for info in members:
        if wrong := _unsafe(info):
            raise BadInput(path, f"member {info.filename!r} {wrong}; the archive is not trusted")
    pgns = [
        info
        for info in members
        if info.filename.lower().endswith(".pgn") and not info.filename.startswith("__MACOSX/")
    ]
    if len(pgns) != 1:
        raise BadInput(path, f"has {len(pgns)} PGN files, expected exactly one")
    info = pgns[0]
    if info.flag_bits & 1:
        raise BadInput(path, f"member {info.filename!r} is encrypted")
    if info.file_size > limits.pgn_bytes:
        raise BadInput(path, f"says it unpacks to {info.file_size} bytes, over the limit")
    if info.file_size > max(_RATIO_FROM, limits.ratio * max(info.compress_size, 1)):
        raise BadInput(
            path, f"says it unpacks to over {limits.ratio} times its size; it looks like a bomb"
        )
    return info


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Whatever is raised because the archive is broken, as a BadInput that names it."""
    try:
        yield
    except _BROKEN as error:
        raise BadInput(path, f"is a broken ZIP ({error}); download it again") from error
    except OSError as error:
        if error.errno in _OF_THE_MACHINE:
            raise
        raise BadInput(path, f"is a broken ZIP ({error}); download it again") from error


def unpack_zip(path: Path, target: Path, limits: Limits = Limits()) -> int:
    """Unpack the one PGN of a ZIP to `target`; returns its bytes.

    Raises BadInput where signature, directory, CRC or limits are not right.
    """
    check_zip_signature(path)
    with _named(path), zipfile.ZipFile(path) as archive:
        info = _one_pgn(archive, path, limits)
        with archive.open(info) as member:
            # The CRC is checked by zipfile when the end is read.
            pieces = iter(lambda: member.read(_CHUNK), b"")
            size = _write(pieces, path, target, info.file_size)
    if size != info.file_size:
        raise BadInput(path, f"unpacks to {size} bytes, its directory says {info.file_size}")
    return size


def _unzstd(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise GristmillError(
            f"{path}: .zst needs zstandard: pip install 'gristmill[chess]'"
        ) from error
    frame = None
    try:
        while bite := file.read(_ZSTD_BITE):
            while bite:
                if frame is None:
                    frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
                yield frame.decompress(bite)
                bite = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    except zstandard.ZstdError as error:
        raise BadInput(path, f"is broken zstd ({error}); fetch it again") from error
    if frame is not None:
        raise BadInput(path, "ends in the middle of a zstd frame; fetch it again")


def unpack_zst(path: Path, target: Path, limits: Limits = Limits()) -> int:
    """Unpack a `.pgn.zst` to `target`; returns its bytes. Raises BadInput as `unpack_zip`."""
    with path.open("rb") as file:
        head = file.read(4)
        # A frame may also be a skippable one (magic 0x184D2A50 to 5F).
        if head != _ZSTD_MAGIC and not (head[1:] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
            raise BadInput(path, f"not zstd (bad signature {head!r})")
        file.seek(0)
        most = min(limits.pgn_bytes, max(_RATIO_FROM, limits.ratio * path.stat().st_size))
        return _write(_unzstd(file, path), path, target, most)


def unpack_pgn(path: Path, target: Path, limits: Limits = Limits()) -> int:
    """Copy a plain PGN to `target`; returns its bytes. Raises BadInput if it is not text."""
    with path.open("rb") as file:
        return _write(iter(lambda: file.read(_CHUNK), b""), path, target, limits.pgn_bytes)
