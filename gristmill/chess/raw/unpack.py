"""One PGN out of an untrusted `.zip`, `.pgn` or `.pgn.zst`, within limits.

See also `zip_member.py`: which member of a ZIP, and which ZIP is refused.
Rules: docs/formats/chess.md#zip-rules, docs/formats/chess.md#drops
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gristmill.chess.raw.archive_config import Limits
from gristmill.chess.raw.pgn_head import HEAD_BYTES, check_head, other_kind
from gristmill.chess.raw.text_limits import with_short_lines
from gristmill.chess.raw.zip_member import (
    ANY_RATIO_BYTES,
    one_pgn,
    opened_zip,
)
from gristmill.contract import BadInput
from gristmill.hashing import NamedFile
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.unpack import Rules, unpack

_READ_BYTES = 1 << 20
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


def _write(
    reads: Iterable[bytes],
    source: Path,
    target: Path,
    max_bytes: int,
    progress: Progress,
    expected: int | None = None,
) -> int:
    """Write a PGN; refuse an empty one, one of more than `max_bytes`, and one that is no text."""
    total, head = 0, b""
    with (
        NamedFile(target, "wb") as file,
        progress.stage("unpack", unit="bytes", total=expected) as stage,
    ):
        for data in with_short_lines(reads, source):
            if len(head) < HEAD_BYTES:
                head += data[: HEAD_BYTES - len(head)]
                check_head(head, source, whole=len(head) == HEAD_BYTES)
            total += len(data)
            if total > max_bytes:
                raise BadInput(source, f"unpacks to more than {max_bytes} bytes; it is not a month")
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            stage.advance(len(data))
    if total == 0:
        raise BadInput(source, "holds an empty PGN; download it again")
    if total < HEAD_BYTES:
        check_head(head, source, whole=True)
    return total


@contextmanager
def _opened(path: Path, limits: Limits, links: LinkRule) -> Iterator[tuple[BinaryIO, int]]:
    """A file of the inbox and its bytes. Raises BadInput where it is larger than its PGN may be."""
    with open_file(path, root=path.parent, links=links) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size > limits.pgn_bytes:
            raise BadInput(path, f"has {size} bytes, more than {limits.pgn_bytes} bytes")
        yield file, size


def unpack_zip(
    path: Path,
    target: Path,
    limits: Limits = Limits(),
    *,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
) -> int:
    """Unpack the one PGN of a ZIP.

    Returns the bytes of the PGN. Raises BadInput where it is no regular file, and where signature,
    members, CRC or limits are not right; OSError for an error of the machine.
    """
    with (
        _opened(path, limits, links) as (file, packed_bytes),
        opened_zip(file, path) as archive,
    ):
        info = one_pgn(archive, path, packed_bytes, limits)
        known = info.compress_type in _BOUNDED_METHODS
        read_bytes = _READ_BYTES if known else _SMALL_READ_BYTES
        with archive.open(info) as member:
            # zipfile checks the CRC when it reads the end.
            reads = iter(lambda: member.read(read_bytes), b"")
            size = _write(reads, path, target, info.file_size, progress, info.file_size)
    if size != info.file_size:
        raise BadInput(
            path,
            f"unpacks to {size} bytes, its directory names {info.file_size}; download it again",
        )
    return size


def check_zstd_signature(head: bytes, path: Path) -> None:
    """Check that a file begins with a signature of zstd, of a skippable frame too.

    Raises BadInput where it does not.
    """
    skippable = head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F
    if head[:4] != b"\x28\xb5\x2f\xfd" and not skippable:
        raise BadInput(path, f"not zstd (bad signature {head[:4]!r}); {other_kind(head)}")


def unpack_zst(
    path: Path,
    target: Path,
    limits: Limits = Limits(),
    *,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
) -> int:
    """Unpack a `.pgn.zst`.

    Returns the bytes of the PGN. Raises BadInput where it is no regular file, and where signature,
    frames or limits are not right; GristmillError where zstandard is not installed.
    """
    with _opened(path, limits, links) as (file, packed_bytes):
        check_zstd_signature(file.read(512), path)
        file.seek(0)
        ratio_bytes = max(ANY_RATIO_BYTES, limits.ratio * packed_bytes)
        max_bytes = min(limits.pgn_bytes, ratio_bytes)
        return _write(unpack(file, path, "zst", _ZSTD), path, target, max_bytes, progress)


def unpack_pgn(
    path: Path,
    target: Path,
    limits: Limits = Limits(),
    *,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
) -> int:
    """Copy a PGN that is not packed.

    Returns the bytes of the PGN. Raises BadInput where it is no regular file, is no text, is empty
    or is too large.
    """
    with _opened(path, limits, links) as (file, size):
        reads = iter(lambda: file.read(_READ_BYTES), b"")
        return _write(reads, path, target, limits.pgn_bytes, progress, size)
