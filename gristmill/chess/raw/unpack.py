"""A PGN out of an untrusted `.pgn`, `.zip`, `.pgn.zst`, `.pgn.gz` or `.pgn.bz2`, within limits.

Member names are checked and never used as paths. Source: docs/formats/chess.md#zip-rules
"""

from __future__ import annotations

import errno
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from gristmill.chess.raw.archive_config import Limits
from gristmill.chess.raw.endings import ENDINGS, ending_of
from gristmill.chess.raw.months import month_in
from gristmill.chess.raw.text_limits import (
    HEAD_BYTES,
    check_head,
    has_game_text,
    other_kind,
    unread_tag,
    with_short_lines,
)
from gristmill.contract import BadInput, is_of_machine
from gristmill.hashing import NamedFile
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.walk import Rules, unpack

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


def _files(members: Sequence[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Members that are no folders; `ZipInfo.is_dir` fails on one without a name."""
    return [info for info in members if not info.filename.endswith("/")]


def left_out_of(archive: zipfile.ZipFile, taken: zipfile.ZipInfo) -> dict[str, str]:
    """Why each member of a ZIP but one is not read, by name; folders are none."""
    others = [info for info in _files(archive.infolist()) if info is not taken]
    return {info.filename: why_left_out(info.filename) for info in others}


@contextmanager
def opened_zip(file: BinaryIO, path: Path) -> Iterator[zipfile.ZipFile]:
    """A ZIP by its directory."""
    check_zip_signature(file, path)
    bounded = cast(IO[bytes], BoundedReads(file, path))
    with damage_as_bad_input(path), zipfile.ZipFile(bounded) as archive:
        yield archive


def one_pgn(
    archive: zipfile.ZipFile, path: Path, packed_bytes: int, limits: Limits
) -> zipfile.ZipInfo:
    """The one PGN among the members of a ZIP. Raises BadInput for a ZIP that is refused."""
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
        # Without a PGN, what is there instead.
        shown = pgns or _files(members)
        names = ", ".join(repr(info.filename[:_SHOWN]) for info in shown[:_NAMED])
        found = (
            f"{len(pgns)} PGN files{f' ({names})' if pgns else f' but {names}' if names else ''}"
        )
        cure = "pack one PGN, or unpack it into a folder, which is a collection"
        raise BadInput(path, f"has {found}, expected exactly one; {cure}")
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


EMPTY = "holds an empty PGN; download it again"
_READ_BYTES = 1 << 20
_LOOK_BYTES = 1 << 14
# bzip2 and LZMA unpack all that one read gives, 20 KB for each byte at most.
_SMALL_READ_BYTES = 1 << 12
_BROKEN = "is broken {name} ({error}); download it again"
_ZSTD = Rules(
    many="has more than {most} {parts}; pack it again",
    memory="needs a longer window than can be unpacked here ({error}); pack it again without "
    "--long, or bring the .pgn",
    dictionary=_BROKEN,
    broken=_BROKEN,
    cut="ends in the middle of a {name} frame; download it again",
    behind="",
    package="'gristmill[chess]'",
)
_BOUNDED_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Packed:
    """An opened PGN.

    reads: its text, in parts. most: its bytes at most. expected: its bytes by what holds it; None
    where that does not say. name: of the member of a ZIP, else of the file.
    """

    reads: Iterator[bytes]
    most: int
    expected: int | None
    name: str


@contextmanager
def opened_pgn(
    path: Path,
    limits: Limits = Limits(),
    *,
    root: Path | None = None,
    links: LinkRule = REFUSE_LINKS,
    ending: str = "",
    read_bytes: int = _READ_BYTES,
) -> Iterator[Packed]:
    """The text of a PGN as it is, or packed.

    root, links: as for `open_file`; default: its folder, and links are refused.
    ending: what it is, of `ENDINGS`; default: by its name. read_bytes: of one read.
    """
    ending = ending or ending_of(path, ENDINGS)
    with open_file(path, root=root or path.parent, links=links) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size > limits.pgn_bytes:
            raise BadInput(path, f"has {size} bytes, more than {limits.pgn_bytes} bytes")
        if ending == ".zip":
            with opened_zip(file, path) as archive:
                info = one_pgn(archive, path, size, limits)
                known = info.compress_type in _BOUNDED_METHODS
                most = read_bytes if known else _SMALL_READ_BYTES
                with archive.open(info) as member:
                    # zipfile checks the CRC when it reads the end.
                    reads = iter(lambda: member.read(most), b"")
                    yield Packed(reads, info.file_size, info.file_size, info.filename)
        elif ending == ".pgn":
            reads = iter(lambda: file.read(read_bytes), b"")
            yield Packed(reads, limits.pgn_bytes, size, path.name)
        else:
            if ending == ".pgn.zst":
                check_zstd_signature(file.read(512), path)
                file.seek(0)
            most = min(limits.pgn_bytes, max(ANY_RATIO_BYTES, limits.ratio * size))
            rules = _ZSTD if ending == ".pgn.zst" else Rules()
            reads = unpack(file, path, ending.rpartition(".")[2], rules)
            yield Packed(reads, most, None, path.name)


def check_zstd_signature(head: bytes, path: Path) -> None:
    """Check that a file begins with a signature of zstd, of a skippable frame too."""
    skippable = head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F
    if head[:4] != b"\x28\xb5\x2f\xfd" and not skippable:
        raise BadInput(path, f"not zstd (bad signature {head[:4]!r}); {other_kind(head)}")


def check_begin(
    path: Path, links: LinkRule = REFUSE_LINKS, *, root: Path | None = None, month: str = ""
) -> bytes:
    """Check that a file begins as a PGN, and return the first bytes of its text, one at least.

    root, links: see `opened_pgn`. month: that its games are of; default: of none.

    Raises BadInput as `opened_pgn`, for a text without a tag or a move in its first `HEAD_BYTES`,
    and for the PGN of another month.
    """
    head, start = b"", 0
    with opened_pgn(path, root=root, links=links, read_bytes=_LOOK_BYTES) as packed:
        _refuse_other_month(packed.name, path, month)
        for data in with_short_lines(packed.reads, path):
            head += data[: HEAD_BYTES - len(head)]
            if len(head) == HEAD_BYTES:
                break
            if len(head) >= _LOOK_BYTES:
                if has_game_text(head[start:]):
                    break
                # No line before the last that holds something becomes game text by what follows.
                start = head.rfind(b"\n", 0, len(head.rstrip()) or len(head)) + 1
    if not head:
        raise BadInput(path, EMPTY)
    check_head(head, path, whole=True)
    return head


def begin_notes(name: str, head: bytes) -> tuple[str, ...]:
    """What an account notes of the beginning of a PGN. head: of `check_begin`."""
    line = unread_tag(head)
    cure = 'write each on a line of its own, as [White "Ann"]'
    return (f"{name} has tags that are not read, such as {line!r}: {cure}",) if line else ()


def unpack_pgn(
    path: Path,
    target: Path,
    limits: Limits = Limits(),
    *,
    root: Path | None = None,
    links: LinkRule = REFUSE_LINKS,
    ending: str = "",
    month: str = "",
    encoding: str = "utf-8",
    progress: Progress = SILENT,
) -> int:
    """Write the text of a PGN, as it is or packed, to a file; returns its bytes as it was packed.

    path, limits, root, links, ending: see `opened_pgn`. month: of its games, None for none.
    encoding: of its text: `utf-8` (default: its bytes stay), or one of one byte a character, which
        is written as UTF-8, with U+FFFD for a byte that it does not have.
    """
    with opened_pgn(path, limits, root=root, links=links, ending=ending) as packed:
        _refuse_other_month(packed.name, path, month)
        size = _write(packed, path, target, encoding, progress)
    if packed.expected == packed.most != size:  # of a ZIP
        rule = f"unpacks to {size} bytes, its directory names {packed.expected}; download it again"
        raise BadInput(path, rule)
    return size


def _refuse_other_month(name: str, path: Path, month: str) -> None:
    found = month_in(PurePosixPath(name).name)
    if month and found not in (None, month):
        rule = f"is the archive of {month}, and holds {name!r}, the PGN of {found}: give it the "
        raise BadInput(path, f"{rule}month of its games, or download {month} again")


def _write(packed: Packed, source: Path, target: Path, encoding: str, progress: Progress) -> int:
    """Write a PGN; refuse an empty one, one that is too large, and one that is no text."""
    total, head = 0, b""
    with (
        NamedFile(target, "wb") as file,
        progress.stage("unpack", unit="bytes", total=packed.expected) as stage,
    ):
        for data in with_short_lines(packed.reads, source):
            if len(head) < HEAD_BYTES:
                head += data[: HEAD_BYTES - len(head)]
                check_head(head, source, whole=len(head) == HEAD_BYTES)
            total += len(data)
            if total > packed.most:
                rule = f"unpacks to more than {packed.most} bytes; bring the .pgn itself"
                raise BadInput(source, rule)
            view = memoryview(
                data if encoding == "utf-8" else data.decode(encoding, "replace").encode()
            )
            while view:
                view = view[file.write(view) :]
            stage.advance(len(data))
    if total == 0:
        raise BadInput(source, EMPTY)
    if total < HEAD_BYTES:
        check_head(head, source, whole=True)
    return total
