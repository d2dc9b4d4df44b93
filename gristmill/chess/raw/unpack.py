"""One PGN out of an untrusted `.zip`, `.pgn` or `.pgn.zst`, within limits.

Member names are checked and never used as paths.
Rules: docs/formats/chess.md#zip-rules, docs/formats/chess.md#drops
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

from gristmill.chess.raw.archive_config import Limits
from gristmill.contract import BadInput, GristmillError
from gristmill.run.progress import SILENT, Progress

_READ_BYTES = 1 << 20
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# One byte of zstd can unpack to 32 KiB, so small reads bound what one read unpacks to.
_ZSTD_READ_BYTES = 1 << 10
_ZSTD_WINDOW = 1 << 31
_MAX_MEMBERS = 1000
# Up to this size the limit on the ratio does not apply.
_ANY_RATIO_BYTES = 16 << 20
_HEAD_BYTES = 4096
# What zipfile and its decompressors raise for a damaged archive.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,  # names that do not decode, offsets before the start of the file
)
# A damaged archive can raise OSError too (bad bzip2 data, an impossible offset).
# These numbers are errors of the machine, whatever the archive holds.
_MACHINE_ERRORS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES),
    *(errno.EPERM, errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}


def snippet(head: bytes) -> str:
    """The first 200 bytes of unexpected data as one line of text, for an error.

    head: the data.
    """
    return " ".join(head[:200].decode("utf-8", "replace").split())


def check_zip_signature(path: Path) -> None:
    """Check that a file begins with a signature of ZIP.

    path: the file.

    Raises BadInput where it does not.
    Source: docs/formats/chess.md#zip-rules
    """
    with path.open("rb") as file:
        head = file.read(512)
    if head[:4] not in _ZIP_MAGIC:
        raise BadInput(
            path,
            f"not a ZIP (bad signature {head[:4]!r}), likely HTML/error page: {snippet(head)!r}; "
            "download it again",
        )


def _write(
    reads: Iterable[bytes],
    source: Path,
    target: Path,
    max_bytes: int,
    progress: Progress,
    expected: int | None = None,
) -> int:
    """Write a PGN; refuse an empty one, one of more than `max_bytes`, and one that is no text."""
    total = 0
    with (
        target.open("wb", buffering=0) as file,
        progress.stage("unpack", unit="bytes", total=expected) as stage,
    ):
        for data in reads:
            if total == 0 and data:
                _check_text(data[:_HEAD_BYTES], source)
            total += len(data)
            if total > max_bytes:
                raise BadInput(source, f"unpacks to more than {max_bytes} bytes; it is not a month")
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            stage.advance(len(data))
    if total == 0:
        raise BadInput(source, "holds an empty PGN; download it again")
    return total


def _check_text(head: bytes, source: Path) -> None:
    if b"\0" in head or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        raise BadInput(source, f"does not hold PGN text: {snippet(head)!r}; download it again")


def _unsafe(info: zipfile.ZipInfo) -> str:
    name = PurePosixPath(info.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in info.filename:
        return "names a path outside the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link"
    return ""


def _one_pgn(archive: zipfile.ZipFile, path: Path, limits: Limits) -> zipfile.ZipInfo:
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        raise BadInput(
            path, f"has {len(members)} members, more than {_MAX_MEMBERS}; pack the PGN alone"
        )
    for info in members:
        if rule := _unsafe(info):
            raise BadInput(path, f"member {info.filename!r} {rule}; the archive is not trusted")
    pgns = [
        info
        for info in members
        if info.filename.lower().endswith(".pgn") and not info.filename.startswith("__MACOSX/")
    ]
    if len(pgns) != 1:
        raise BadInput(path, f"has {len(pgns)} PGN files, expected exactly one; pack one PGN")
    info = pgns[0]
    if info.flag_bits & 1:
        raise BadInput(path, f"member {info.filename!r} is encrypted; pack it without a password")
    if info.file_size > limits.pgn_bytes:
        raise BadInput(
            path, f"names {info.file_size} bytes of PGN, over the limit of {limits.pgn_bytes}"
        )
    if info.file_size > max(_ANY_RATIO_BYTES, limits.ratio * max(info.compress_size, 1)):
        raise BadInput(
            path, f"names over {limits.ratio} times its size of PGN; it looks like a ZIP bomb"
        )
    return info


@contextmanager
def _bad_input(path: Path) -> Iterator[None]:
    """Raise the errors of a damaged archive as BadInput that names it."""
    try:
        yield
    except _DAMAGED as error:
        raise BadInput(path, f"is a broken ZIP ({error}); download it again") from error
    except OSError as error:
        if error.errno in _MACHINE_ERRORS:
            raise
        raise BadInput(path, f"is a broken ZIP ({error}); download it again") from error


def unpack_zip(
    path: Path, target: Path, limits: Limits = Limits(), *, progress: Progress = SILENT
) -> int:
    """Unpack the one PGN of a ZIP.

    path: the ZIP.
    target: the PGN file to write.
    limits: how large the PGN may be.
    progress: gets the stage "unpack", in bytes of PGN.

    Returns the bytes of the PGN.
    Raises BadInput where signature, members, CRC or limits are not right, OSError for
    an error of the machine.
    Source: docs/formats/chess.md#zip-rules
    """
    check_zip_signature(path)
    with _bad_input(path), zipfile.ZipFile(path) as archive:
        info = _one_pgn(archive, path, limits)
        with archive.open(info) as member:
            # zipfile checks the CRC when it reads the end.
            reads = iter(lambda: member.read(_READ_BYTES), b"")
            size = _write(reads, path, target, info.file_size, progress, info.file_size)
    if size != info.file_size:
        raise BadInput(
            path,
            f"unpacks to {size} bytes, its directory names {info.file_size}; download it again",
        )
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
        while data := file.read(_ZSTD_READ_BYTES):
            while data:
                if frame is None:
                    packer = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
                    frame = packer.decompressobj()
                yield frame.decompress(data)
                data = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    except zstandard.ZstdError as error:
        raise BadInput(path, f"is broken zstd ({error}); download it again") from error
    if frame is not None:
        raise BadInput(path, "ends in the middle of a zstd frame; download it again")


def unpack_zst(
    path: Path, target: Path, limits: Limits = Limits(), *, progress: Progress = SILENT
) -> int:
    """Unpack a `.pgn.zst`.

    path: one or more zstd frames.
    target: the PGN file to write.
    limits: how large the PGN may be.
    progress: gets the stage "unpack", in bytes of PGN.

    Returns the bytes of the PGN.
    Raises BadInput where signature, frames or limits are not right, GristmillError
    where zstandard is not installed.
    Source: docs/formats/chess.md#drops
    """
    with path.open("rb") as file:
        head = file.read(4)
        # A frame may also be a skippable one (magic 0x184D2A50 to 5F).
        if head != _ZSTD_MAGIC and not (head[1:] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
            raise BadInput(path, f"not zstd (bad signature {head!r}); download it again")
        file.seek(0)
        ratio_bytes = max(_ANY_RATIO_BYTES, limits.ratio * path.stat().st_size)
        max_bytes = min(limits.pgn_bytes, ratio_bytes)
        return _write(_unzstd(file, path), path, target, max_bytes, progress)


def unpack_pgn(
    path: Path, target: Path, limits: Limits = Limits(), *, progress: Progress = SILENT
) -> int:
    """Copy a PGN that is not packed.

    path: the PGN.
    target: the PGN file to write.
    limits: how large the PGN may be.
    progress: gets the stage "unpack", in bytes of PGN.

    Returns the bytes of the PGN.
    Raises BadInput where it is no text, is empty or is too large.
    Source: docs/formats/chess.md#drops
    """
    with path.open("rb") as file:
        reads = iter(lambda: file.read(_READ_BYTES), b"")
        return _write(reads, path, target, limits.pgn_bytes, progress, path.stat().st_size)
