"""A collection: a folder in `drops/chess/` of PGNs that anybody made, built beside the months.

Source: docs/formats/chess.md#collections
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.chess.format.folders import SOURCE
from gristmill.chess.raw.archive_config import CollectionConfig
from gristmill.chess.raw.endings import ending_in, packed_otherwise
from gristmill.chess.raw.months import is_month
from gristmill.chess.raw.unpack import begin_notes, check_begin, unpack_pgn
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file, sha256_of
from gristmill.inbox.account import Account
from gristmill.inbox.marks import is_mark
from gristmill.inbox.sample_mark import not_samples
from gristmill.printable import printable
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.walk import list_files

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

    drop: the folder. links: what happens to links; default: they are refused.

    Raises BadInput for a name that is none of a collection, an archive that is not read, a link,
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
            rule = (
                f"is {pgn} when it is unpacked, as {other} is: remove it if its games are the same"
            )
            raise BadInput(drop / name, f"{rule}, else rename it")
    return found, left | samples


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a collection, by its name and the beginning of its text.

    Arguments and errors as `files_of`; BadInput also for a file that does not begin as a PGN.
    """
    found, left = files_of(drop, links)
    notes: list[str] = []
    for name in found:
        head = check_begin(drop / name, links, root=drop)
        notes += begin_notes(name, head)
        if not _is_utf8(head):
            notes.append(f"{name} {_NOT_UTF8}")
    return Account({"": found}, left, notes)


def take_collection(
    drop: Path,
    out: Path,
    config: CollectionConfig,
    *,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
) -> CollectionSummary:
    """Unpack the PGNs of a collection.

    drop: the folder. out: the folder to make. links: what happens to links; default: they are
    refused. progress: gets a stage "unpack" for each file, in bytes.

    Raises BadInput as `files_of`, and for a file that is refused.
    """
    found, _ = files_of(drop, links)
    out.mkdir()
    notes: dict[str, FileNote] = {SOURCE: FileNote(payload=False)}
    entries, archive_bytes, pgn_bytes = [], 0, 0
    for name in found:
        pgn = out / pgn_of(name)
        unpack_pgn(
            drop / name,
            pgn,
            root=drop,
            links=links,
            encoding=config.encoding,
            progress=progress,
        )
        with open_file(drop / name, root=drop, links=links, buffering=0) as file:
            sha256, packed = sha256_of(file), file.tell()
        size, digest = pgn.stat().st_size, sha256_file(pgn)
        notes[pgn.name] = FileNote(sha256=digest, bytes=size)
        entries.append(
            {
                "origin": name,
                "archive": {"bytes": packed, "sha256": sha256},
                "pgn": {"name": pgn.name, "bytes": size, "sha256": digest},
            }
        )
        archive_bytes, pgn_bytes = archive_bytes + packed, pgn_bytes + size
    record = {"collection": drop.name, "encoding": config.encoding, "files": entries}
    (out / SOURCE).write_text(json.dumps(record, indent=2))
    return CollectionSummary(notes, len(found), archive_bytes, pgn_bytes)


def raw_offset(pgn: Path, offset: int) -> int:
    """The byte of a text of one byte a character that is byte `offset` of its UTF-8."""
    return offset - sum(_rest_bytes(pgn, offset))


def _rest_bytes(pgn: Path, offset: int) -> Iterator[int]:
    """How many bytes before an offset continue a character, read by read."""
    with pgn.open("rb") as file:
        while offset > 0 and (data := file.read(min(offset, 1 << 20))):
            offset -= len(data)
            yield sum(0x80 <= byte < 0xC0 for byte in data) if not data.isascii() else 0


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
