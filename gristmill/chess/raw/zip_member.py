"""The one PGN of an untrusted ZIP: its signature, its directory, its limits, its damage.

Member names are checked and never used as paths. See also `unpack.py`: writing the PGN.
Source: docs/formats/chess.md#zip-rules
"""

from __future__ import annotations

import errno
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from gristmill.chess.raw.archive_config import Limits
from gristmill.chess.raw.pgn_head import other_kind
from gristmill.contract import BadInput, is_of_machine

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_MAX_MEMBERS = 1000
_DIRECTORY_BYTES = 1 << 20
_SHOWN, _NAMED = 100, 3
_DEFLATE64 = 9
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
# Up to this size the limit on the ratio does not apply.
ANY_RATIO_BYTES = 1 << 20
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
    *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}


def check_zip_signature(file: BinaryIO, path: Path) -> None:
    """Check that a file begins with a signature of ZIP. Raises BadInput where it does not."""
    head = file.read(512)
    if head[:4] not in _ZIP_MAGIC:
        raise BadInput(
            path,
            f"not a ZIP (bad signature {head[:4]!r}), {other_kind(head)}",
        )


def _unsafe(info: zipfile.ZipInfo) -> str:
    name = PurePosixPath(info.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in info.filename:
        return "names a path outside the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link"
    return ""


class BoundedReads:
    """An open ZIP; zipfile reads its directory, whose size the archive names, in one piece."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """As `file.read`. Raises BadInput where it would return more than 1 MiB."""
        most = _DIRECTORY_BYTES + 1
        data = self._file.read(most if size < 0 else min(size, most))
        if len(data) > _DIRECTORY_BYTES:
            rule = f"has a directory of more than {_DIRECTORY_BYTES} bytes; pack the PGN alone"
            raise BadInput(self._path, rule)
        return data


def why_left_out(name: str) -> str:
    """Why a member of a ZIP is not read; empty for a PGN."""
    path = PurePosixPath(name.replace("\\", "/"))
    if "__MACOSX" in path.parts or path.name.startswith("._"):
        return "what macOS keeps beside a file"
    return "" if name.lower().endswith(".pgn") else "no PGN"


def left_out_of(archive: zipfile.ZipFile, taken: zipfile.ZipInfo) -> dict[str, str]:
    """Why each member of a ZIP but one is not read, by name; folders are none.

    archive: the ZIP.
    taken: its PGN.
    """
    others = [info for info in archive.infolist() if info is not taken and not info.is_dir()]
    return {info.filename: why_left_out(info.filename) for info in others}


@contextmanager
def opened_zip(file: BinaryIO, path: Path) -> Iterator[zipfile.ZipFile]:
    """A ZIP by its directory.

    file: the file, at its start.
    path: its path, for errors.

    Raises BadInput for another kind of file, and for damage.
    """
    check_zip_signature(file, path)
    bounded = cast(IO[bytes], BoundedReads(file, path))
    with damage_as_bad_input(path), zipfile.ZipFile(bounded) as archive:
        yield archive


def one_pgn(
    archive: zipfile.ZipFile, path: Path, packed_bytes: int, limits: Limits
) -> zipfile.ZipInfo:
    """The one PGN among the members of a ZIP.

    archive: the ZIP.
    path: its path, for errors.
    packed_bytes: its bytes.
    limits: how large the PGN may be.

    Raises BadInput for a ZIP that is refused.
    """
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        raise BadInput(
            path, f"has {len(members)} members, more than {_MAX_MEMBERS}; pack the PGN alone"
        )
    for info in members:
        if rule := _unsafe(info):
            name = info.filename[:_SHOWN]
            raise BadInput(path, f"member {name!r} {rule}; the archive is not trusted")
    pgns = [info for info in members if not why_left_out(info.filename)]
    if len(pgns) != 1:
        names = ", ".join(repr(info.filename[:_SHOWN]) for info in pgns[:_NAMED])
        found = f"{len(pgns)} PGN files{f' ({names})' if names else ''}"
        raise BadInput(path, f"has {found}, expected exactly one; pack one PGN")
    info = pgns[0]
    if info.flag_bits & 1:
        name = info.filename[:_SHOWN]
        raise BadInput(path, f"member {name!r} is encrypted; pack it without a password")
    if info.compress_type not in _METHODS:
        number = info.compress_type
        method = "Deflate64" if number == _DEFLATE64 else f"method {number}"
        rule = f"compresses its PGN by {method}, which is not read; pack it again with Deflate"
        raise BadInput(path, rule)
    if info.compress_size > packed_bytes:
        raise BadInput(
            path, f"names {info.compress_size} packed bytes, and has {packed_bytes} in all"
        )
    if info.file_size > limits.pgn_bytes:
        raise BadInput(
            path, f"names {info.file_size} bytes of PGN, over the limit of {limits.pgn_bytes}"
        )
    if info.file_size > max(ANY_RATIO_BYTES, limits.ratio * max(info.compress_size, 1)):
        raise BadInput(
            path, f"names over {limits.ratio} times its size of PGN; it looks like a ZIP bomb"
        )
    return info


@contextmanager
def damage_as_bad_input(path: Path) -> Iterator[None]:
    """Raise the errors of a damaged archive as BadInput that names it."""
    try:
        yield
    except MemoryError as error:
        raise BadInput(path, "needs more memory to unpack than there is; pack it again") from error
    except _DAMAGED as error:
        raise BadInput(path, f"is a broken ZIP ({error}); download it again") from error
    except OSError as error:
        if is_of_machine(error) or error.errno in _MACHINE_ERRORS:
            raise
        raise BadInput(path, f"is a broken ZIP ({error}); download it again") from error
