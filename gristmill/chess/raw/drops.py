"""Drops of chess: a file of a month, or a folder of PGNs that anybody made; the PGNs out of both.

A folder is a collection, which is built beside the months. A PGN comes out of an untrusted `.pgn`,
`.zip`, `.pgn.zst`, `.pgn.gz` or `.pgn.bz2`, within limits; names of members are checked and never
used as paths. Source: docs/formats/chess.md#drops, docs/formats/chess.md#collections and
docs/formats/chess.md#zip-rules
"""

from __future__ import annotations

import codecs
import errno
import json
import lzma
import os
import re
import stat
import struct
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, cast

from gristmill.chess.config import CollectionConfig, Limits
from gristmill.chess.raw.pgn_text import (
    ENDINGS,
    HEAD_BYTES,
    MONTH_ENDINGS,
    check_head,
    ending_in,
    ending_of,
    has_ended,
    has_game_text,
    is_month,
    month_in,
    other_kind,
    packed_otherwise,
    unread_tag,
    with_short_lines,
)
from gristmill.contract import BadInput, FileNote, Summary, is_of_machine
from gristmill.data_root import DataRoot
from gristmill.families import Forgets, Unit
from gristmill.hashing import HashedFile, sha256_of
from gristmill.inbox.listing import Account, ColumnState
from gristmill.inbox.marks import is_mark, not_samples, real_paths, samples_beside
from gristmill.printable import printable
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.lines import lines, reads
from gristmill.untrusted.walk import Rules, list_files, unpack, visible_files

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


@contextmanager
def opened_zip(file: BinaryIO, path: Path) -> Iterator[zipfile.ZipFile]:
    """A ZIP by its directory."""
    head = file.read(512)
    if head[:4] not in _ZIP_MAGIC:
        raise BadInput(path, f"not a ZIP (bad signature {head[:4]!r}), {other_kind(head)}")
    bounded = cast(IO[bytes], BoundedReads(file, path))
    with damage_as_bad_input(path), zipfile.ZipFile(bounded) as archive:
        yield archive


def one_pgn(
    archive: zipfile.ZipFile, path: Path, packed_bytes: int, limits: Limits
) -> zipfile.ZipInfo:
    """The one PGN among the members of a ZIP. Raises BadInput for a ZIP that is refused."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        rule = f"has {len(members)} members, more than {_MAX_MEMBERS}; pack the PGN alone"
        raise BadInput(path, rule)
    for info in members:
        name = PurePosixPath(info.filename.replace("\\", "/"))
        rule = "is a symbolic link" if stat.S_ISLNK(info.external_attr >> 16) else ""
        if name.is_absolute() or ".." in name.parts or ":" in info.filename:
            rule = "names a path outside the archive"
        if rule:
            shown = info.filename[:_SHOWN]
            raise BadInput(path, f"member {shown!r} {rule}; the archive is not trusted")
    pgns = [info for info in members if not why_left_out(info.filename)]
    if len(pgns) != 1:
        # Without a PGN, what is there instead.
        named = (pgns or _files(members))[:_NAMED]
        names = ", ".join(repr(info.filename[:_SHOWN]) for info in named)
        there = f" ({names})" if pgns else f" but {names}" if names else ""
        cure = "pack one PGN, or unpack it into a folder, which is a collection"
        rule = f"has {len(pgns)} PGN files{there}, expected exactly one; {cure}"
        raise BadInput(path, rule)
    info = pgns[0]
    if info.flag_bits & 1:
        rule = "is encrypted; pack it without a password"
        raise BadInput(path, f"member {info.filename[:_SHOWN]!r} {rule}")
    if info.compress_type not in _METHODS:
        number = info.compress_type
        method = "Deflate64" if number == _DEFLATE64 else f"method {number}"
        rule = f"compresses its PGN by {method}, which is not read; pack it again with Deflate"
        raise BadInput(path, rule)
    size, packed = info.file_size, info.compress_size
    most = max(ANY_RATIO_BYTES, limits.ratio * max(packed, 1))
    for is_broken, rule in (
        (packed > packed_bytes, f"names {packed} packed bytes, and has {packed_bytes} in all"),
        (
            size > limits.pgn_bytes,
            f"names {size} bytes of PGN, over the limit of {limits.pgn_bytes}",
        ),
        (size > most, f"names over {limits.ratio} times its size of PGN; it looks like a ZIP bomb"),
    ):
        if is_broken:
            raise BadInput(path, rule)
    return info


@contextmanager
def damage_as_bad_input(path: Path) -> Iterator[None]:
    """Raise the errors of a damaged archive as BadInput that names it."""
    try:
        yield
    except MemoryError as error:
        raise BadInput(path, "needs more memory to unpack than there is; pack it again") from error
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and (is_of_machine(error) or error.errno in _MACHINE_ERRORS):
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
            head = file.read(512)
            file.seek(0)
            skippable = head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F
            if ending == ".pgn.zst" and head[:4] != b"\x28\xb5\x2f\xfd" and not skippable:
                rule = f"not zstd (bad signature {head[:4]!r}); {other_kind(head)}"
                raise BadInput(path, rule)
            most = min(limits.pgn_bytes, max(ANY_RATIO_BYTES, limits.ratio * size))
            rules = _ZSTD if ending == ".pgn.zst" else Rules()
            reads = unpack(file, path, ending.rpartition(".")[2], rules)
            yield Packed(reads, most, None, path.name)


def check_begin(
    path: Path, links: LinkRule = REFUSE_LINKS, *, root: Path | None = None, month: str = ""
) -> bytes:
    """Check that a file begins as a PGN, and return the first bytes of its text, one at least.

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
) -> FileNote:
    """Write the text of a PGN, as it is or packed, to a new file; returns the note of the file.

    encoding: of its text: `utf-8` (default: its bytes stay), or one of one byte a character, which
        is written as UTF-8, with U+FFFD for a byte that it does not have.
    """
    with opened_pgn(path, limits, root=root, links=links, ending=ending) as packed:
        _refuse_other_month(packed.name, path, month)
        gone = links.forgotten.get(path, ())
        size, note = _write(packed, path, target, encoding, gone, progress)
    if packed.expected == packed.most != size:  # of a ZIP
        rule = f"unpacks to {size} bytes, its directory names {packed.expected}; download it again"
        raise BadInput(path, rule)
    return note


def _refuse_other_month(name: str, path: Path, month: str) -> None:
    found = month_in(PurePosixPath(name).name)
    if month and found not in (None, month):
        rule = f"is the archive of {month}, and holds {name!r}, the PGN of {found}: give it the "
        raise BadInput(path, f"{rule}month of its games, or download {month} again")


def _write(
    packed: Packed,
    source: Path,
    target: Path,
    encoding: str,
    forgotten: Collection[int],
    progress: Progress,
) -> tuple[int, FileNote]:
    """Write a PGN: bytes of its text, and the note of the file.

    An empty one, one that is too large, and one that is no text are refused.

    forgotten: numbers of games, from 1, that are written as blanks, so that places stay.
    """
    total, head = 0, b""
    found = games(source) if forgotten else ()
    cuts = [place for number, (place, _) in enumerate(found, 1) if number in forgotten]
    with (
        HashedFile(target) as file,
        progress.stage("unpack", unit="bytes", total=packed.expected) as stage,
    ):
        for data in with_short_lines(packed.reads, source):
            if len(head) < HEAD_BYTES:
                head += data[: HEAD_BYTES - len(head)]
                check_head(head, source, whole=len(head) == HEAD_BYTES)
            shown = _blanked(data, total, cuts) if cuts else data
            total += len(data)
            if total > packed.most:
                rule = f"unpacks to more than {packed.most} bytes; bring the .pgn itself"
                raise BadInput(source, rule)
            is_same = encoding == "utf-8"
            file.write(shown if is_same else shown.decode(encoding, "replace").encode())
            stage.advance(len(data))
    if total == 0:
        raise BadInput(source, EMPTY)
    if total < HEAD_BYTES:
        check_head(head, source, whole=True)
    return total, FileNote(sha256=file.sha256, bytes=file.bytes)


def _blanked(data: bytes, at: int, cuts: Sequence[tuple[int, int]]) -> bytes:
    """A part of a text, which begins at a byte, with long lines of blanks for its cuts."""
    made = bytearray(data)
    for low, high in cuts:
        begin, end = max(low - at, 0), min(high - at, len(made))
        if begin < end:
            made[begin:end] = b" " * (end - begin)
            for newline in (*range(-(at + begin) % _BLANKS + begin, end, _BLANKS), high - at - 1):
                made[newline : newline + 1] = b"\n" if newline < end else b""
    return bytes(made)


_BLANKS: Final = 1 << 16
_MONTH_FOLDER: Final = "elite_"
_LONGEST: Final = 200
_NOT_UTF8: Final = (
    "holds bytes that are not UTF-8, which become U+FFFD where gristmill.toml of the drop does not "
    'say `encoding = "latin-1"`, or "cp1252" of Windows, under [chess.collection]'
)


@dataclass(frozen=True)
class CollectionSummary(Summary):
    """The facts of a collection: bytes of its files as they came, and of their text."""

    pgns: int
    archive_bytes: int
    pgn_bytes: int


def folder_of(key: str) -> str:
    """What the folders of a month or a collection begin with: `elite_2024-01`, or its key."""
    return f"{_MONTH_FOLDER}{key}" if is_month(key) else key


def pgn_of(file: str) -> str:
    """The name in the artifact of a file of the drop: `a/b.zip` becomes `a__b.pgn`."""
    return f"{file[: len(file) - len(ending_in(file))].replace('/', '__')}.pgn"


def files_of(drop: Path, links: LinkRule = REFUSE_LINKS) -> tuple[list[str], dict[str, str]]:
    """The files of a collection that are read, sorted, and why each other one is not.

    Raises BadInput for a name that no collection may have, an archive that is not read, a link,
    two files with the PGN of one name, and a folder without a PGN; OSError where it cannot be
    read.
    """
    if is_month(drop.name.removeprefix(_MONTH_FOLDER)):
        rule = "is the name of a month: name the folder after its games, as twic_2024"
        raise BadInput(drop, rule)
    found: list[str] = []
    left: dict[str, str] = {}
    for entry in list_files(drop, root=drop, links=links):
        name = entry.name
        if any(part.startswith(".") for part in name.split("/")) or is_mark(name) or name == FILE:
            continue
        if rule := packed_otherwise(name) if not ending_in(name) else entry.refusal or "":
            raise BadInput(drop / name, rule)
        if "__MACOSX" in name.split("/") or not ending_in(name):
            left[name] = "no PGN"
        elif entry.stat.st_mode:
            found.append(name)
    samples = not_samples(drop, found)
    found = sorted(name for name in found if name not in samples)
    if not found:
        raise BadInput(drop, "has no file that ends in .pgn, .pgn.gz, .pgn.bz2, .pgn.zst or .zip")
    by_pgn: dict[str, str] = {}
    for name in found:
        pgn = pgn_of(name)
        if len(pgn.encode("utf-8", "surrogateescape")) > _LONGEST or printable(pgn) != pgn:
            raise BadInput(drop / name, "has a name that is too long or not printable: rename it")
        if (other := by_pgn.setdefault(pgn.lower(), name)) != name:
            rule = f"is {pgn} when it is unpacked, as {other} is: remove it if its games are the "
            raise BadInput(drop / name, f"{rule}same, else rename it")
    return found, left | samples


def take_collection(
    drop: Path,
    out: Path,
    config: CollectionConfig,
    *,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
) -> CollectionSummary:
    """Unpack the PGNs of a collection. Raises BadInput for a file that is refused."""
    from gristmill.chess.format.folders import SOURCE  # loads NumPy

    found, _ = files_of(drop, links)
    out.mkdir()
    notes: dict[str, FileNote] = {SOURCE: FileNote(payload=False)}
    entries, archive_bytes, pgn_bytes = [], 0, 0
    for name in found:
        pgn = out / pgn_of(name)
        note = unpack_pgn(
            drop / name,
            pgn,
            root=drop,
            links=links,
            encoding=config.encoding,
            progress=progress,
        )
        with open_file(drop / name, root=drop, links=links, buffering=0) as file:
            sha256, packed = sha256_of(file), file.tell()
        notes[pgn.name] = note
        entries.append(
            {
                "origin": name,
                "archive": {"bytes": packed, "sha256": sha256},
                "pgn": {"name": pgn.name, "bytes": note.bytes, "sha256": note.sha256},
            }
        )
        archive_bytes, pgn_bytes = archive_bytes + packed, pgn_bytes + (note.bytes or 0)
    record = {"collection": drop.name, "encoding": config.encoding, "files": entries}
    (out / SOURCE).write_text(json.dumps(record, indent=2))
    return CollectionSummary(notes, len(found), archive_bytes, pgn_bytes)


def raw_offset(pgn: Path, offset: int) -> int:
    """The byte of a text of one byte a character that is byte `offset` of its UTF-8."""
    left, continued = offset, 0
    with pgn.open("rb") as file:
        while left > 0 and (data := file.read(min(left, 1 << 20))):
            left -= len(data)
            continued += 0 if data.isascii() else sum(0x80 <= byte < 0xC0 for byte in data)
    return offset - continued


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of a drop, and of the members of a ZIP, by its first bytes or its directory.

    drop: the file of a month, or the folder of a collection.
    links: what happens to links; default: they are refused.

    Raises BadInput for a drop that is refused; OSError where it cannot be read.
    """
    if not ending_in(drop.name, MONTH_ENDINGS) and drop.is_dir():
        found, left = files_of(drop, links)
        noted: list[str] = []
        for name in found:
            head = check_begin(drop / name, links, root=drop)
            noted += begin_notes(name, head)
            if not _is_utf8(head):
                noted.append(f"{name} {_NOT_UTF8}")
        return Account({"": found}, left, noted)
    month = month_in(drop.name)
    if month is None or not has_ended(month, datetime.now(UTC)):
        raise BadInput(
            drop,
            f"{month or drop.name} is not a month that has ended, from 2020-06 on: put the month "
            "into the file's name, as lichess_elite_2024-01.zip, or put the games into a folder, "
            "which is a collection",
        )
    ending = ending_of(drop)
    left_out: dict[str, str] = {}
    if ending == ".zip":
        with (
            open_file(drop, root=drop.parent, links=links) as file,
            opened_zip(file, drop) as archive,
        ):
            size = os.fstat(file.fileno()).st_size
            taken = one_pgn(archive, drop, size, Limits())
            others = [info.filename for info in _files(archive.infolist()) if info is not taken]
        left_out = {f"{drop.name}/{name}": why_left_out(name) for name in others}
    notes = begin_notes(drop.name, check_begin(drop, links, month=month))
    return Account({"": [drop.name]}, left_out | samples_beside(drop, month_in), notes)


def drop_of(root: DataRoot, month: str) -> Path | None:
    """The drop of a month, None where there is none; BadInput if several files have the month."""
    inbox = root.inbox("chess")
    files = sorted(
        real_paths(
            path
            for path in (sorted(inbox.iterdir()) if inbox.is_dir() else [])
            if path.name.lower().endswith(MONTH_ENDINGS)
            and not path.name.startswith(".")
            and month_in(path.name) == month
        )
    )
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise BadInput(inbox, f"{len(files)} files have the month {month}: {names}: keep one")
    return files[0] if files else None


def available(root: DataRoot) -> list[str]:
    """The months and collections that need no download, sorted: with a drop, or a built PGN.

    A month whose drop is refused is one of them if its PGN is built: it fails, and the inbox says
    why of the others.
    """
    built = {item.folder.name for item in root.artifacts("chess/raw")}
    return sorted({*root.taken("chess"), *built})


_TAG: Final = re.compile(rb'^\[(\w+) +"([^"\r\n]*)"\]', re.MULTILINE)
_LOOKED_AT: Final = 1 << 18


def column_states(
    drop: Path, links: LinkRule, account: Account, _counts: Mapping[str, float]
) -> list[ColumnState]:
    """What becomes of the tags of games, by the first games of a file: `headers` has them all."""
    from gristmill.corpora.account import Head, states_of

    is_folder = drop.is_dir()
    games: list[dict[str, str]] = []
    for name in account.taken.get("", ())[:1]:
        path = drop / name if is_folder else drop
        with opened_pgn(path, root=drop if is_folder else None, links=links) as packed:
            head = next(packed.reads, b"")[:_LOOKED_AT]
        for tag, value in _TAG.findall(head):
            if not games or tag.decode() in games[-1]:
                games.append({})
            games[-1][tag.decode()] = value.decode("utf-8", "replace")
    names = {name: "headers" for game in games for name in game}
    return states_of([Head("", games)], names)


_TAG_VALUE: Final = re.compile(r'\[(\w+)\s+"((?:[^"\\]|\\.)*)"\]')
_BEGINS: Final = re.compile(rb'\[(\w+)\s+"')
"""A line of a tag; others that begin with a bracket are of comments."""


def forgets() -> Forgets:
    """How games are forgotten."""
    return Forgets(_units, places=lambda file: [place for place, _ in games(file)])


def _units(_: Path, drop: Path) -> Iterator[Unit]:
    files = {drop.name: drop} if drop.is_file() else {at: drop / at for at in visible_files(drop)}
    for name, path in files.items():
        found = games(path) if ending_in(name, ENDINGS) else ()
        for number, (_place, text) in enumerate(found, 1):
            head, _blank, moves = text.partition("\n\n")
            tags = dict(_TAG_VALUE.findall(head))
            yield Unit(name, number, tags.get("Site", ""), {**tags, "moves": moves.strip()})


def games(path: Path) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield begin and end of each game in the unpacked text of a file, and its text."""
    if path.suffix.lower() == ".zip":
        raise BadInput(path, "is a ZIP, in which no game can be erased: unpack it into the drop")
    with open_file(path, root=path.parent) as file:
        ending = path.suffix.lower().removeprefix(".")
        texts = reads(file) if ending == "pgn" else unpack(file, path, ending)
        begin, at, has_moves, held, names = 0, 0, False, list[bytes](), set[bytes]()
        for line in chain(lines(texts, path), [b""]):
            tag = _BEGINS.match(line if at else line.removeprefix(BOM_UTF8))
            # Of a game without moves the names of its tags come again.
            if (has_moves or (tag[1] in names if tag else names)) and (tag or not line):
                yield (begin, at), b"".join(held).decode("utf-8", "replace").replace("\r\n", "\n")
                begin, has_moves, held, names = at, False, [], set()
            has_moves = has_moves or not (tag or line.isspace())
            names |= {tag[1]} if tag else set()
            held.append(line)
            at += len(line)
