"""What is in an inbox: its entries sorted into drops and others, and one drop's files.

A listing takes names, sizes and times and never reads a file. When a drop has
arrived is decided in `gristmill.inbox`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill import keys

_NAMED = 10
# Names that copying and downloading tools give to files they have not finished.
_UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".download")


@dataclass(frozen=True)
class Shape:
    """What one drop is in an inbox: a folder, or a file with one of these endings.

    endings: of file names; none where a drop is a folder.
    key_in: finds the key in a file's name, or returns None, and the file is
        refused. Default None: the key is the name without its ending.
    """

    endings: tuple[str, ...] = ()
    key_in: Callable[[str], str | None] | None = None

    @property
    def settles(self) -> str:
        """When a drop of this shape has arrived, in words."""
        if not self.endings:
            return "A folder whose files keep their names, sizes and times for two looks in a row"
        named = " or ".join(self.endings)
        return f"A {named} file that keeps its size and time for two looks in a row"

    def key(self, entry: os.DirEntry[str]) -> str:
        """The partition key of an entry."""
        if self.key_in is not None:
            return self.key_in(entry.name) or entry.name
        ending = next((end for end in self.endings if entry.name.endswith(end)), "")
        return entry.name.removesuffix(ending)

    def refusal(self, entry: os.DirEntry[str]) -> str | None:
        """Why this entry is no drop, whatever it contains; None where it is one.

        Raises OSError where its kind cannot be read.
        """
        if not self.endings:
            if not entry.is_dir():
                return "a drop is a folder: put the files into one"
        elif not (entry.is_file() and entry.name.endswith(self.endings)):
            return f"only files that end in {' or '.join(self.endings)} belong here"
        elif self.key_in is not None and self.key_in(entry.name) is None:
            return "its name does not say which partition it is"
        return keys.refusal(self.key(entry))


FOLDER = Shape()
TOML = Shape((".toml",))


@dataclass(frozen=True)
class Loose:
    """An entry of an inbox that is no drop.

    changed_ns: when it changed or came. This is the inode's time, which a rename
        sets too and copying tools cannot set back.
    reason: why it is no drop.
    """

    changed_ns: int
    reason: str


@dataclass(frozen=True)
class Survey:
    """One drop's files at one moment.

    signature: 16 hex digits over names, sizes and times.
    files, bytes: how many.
    unfinished: whether a name marks a file as unfinished.
    """

    signature: str
    files: int
    bytes: int
    unfinished: bool


def list_inbox(
    inbox: Path, shape: Shape
) -> tuple[dict[str, list[os.DirEntry[str]]], dict[str, Loose]]:
    """(entries that are drops by key, all others by name); hidden entries are left out."""
    drops: dict[str, list[os.DirEntry[str]]] = {}
    loose: dict[str, Loose] = {}
    for entry in sorted(_entries(inbox), key=lambda item: item.name):
        try:
            reason = shape.refusal(entry)
        except OSError as error:
            reason = unreadable(error)
        if reason is None:
            drops.setdefault(shape.key(entry), []).append(entry)
            continue
        try:
            loose[entry.name] = Loose(entry.stat(follow_symlinks=False).st_ctime_ns, reason)
        except FileNotFoundError:
            continue  # removed after it was listed
    return drops, loose


def survey(path: Path) -> Survey:
    """Names, sizes and times of a drop's files. Raises OSError where one cannot be read."""
    lines: list[str] = []
    size = 0
    unfinished = False
    files = _walk(path, "") if path.is_dir() else [("", path.stat())]
    for name, stat in files:
        lines.append(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}")
        size += stat.st_size
        unfinished |= name.endswith(_UNFINISHED)
    return Survey(short_digest("\n".join(sorted(lines))), len(lines), size, unfinished)


def ambiguous(entries: Sequence[os.DirEntry[str]]) -> str | None:
    """Why a key cannot be built: more than one drop has it. None where one has."""
    if len(entries) == 1:
        return None
    named = named_few([entry.name for entry in entries])
    return f"{named} are the same partition: leave one of them"


def unreadable(error: OSError) -> str:
    """Why a drop is refused that could not be read."""
    return f"{error.filename}: cannot be read: {error.strerror}"


def named_few(names: Sequence[str], separator: str = ", ") -> str:
    """The first ten names, and how many more there are."""
    more = len(names) - _NAMED
    return separator.join(names[:_NAMED]) + (f"{separator}and {more:,} more" if more > 0 else "")


def short_digest(text: str) -> str:
    """16 hex digits of the sha256 of a text, which may hold names that are not UTF-8."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _entries(inbox: Path) -> list[os.DirEntry[str]]:
    """Entries of the inbox without hidden ones, which tools use while they copy."""
    if not inbox.is_dir():
        return []
    with os.scandir(inbox) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def _walk(folder: str | Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(entry.path, f"{prefix}{entry.name}/")
                else:
                    yield prefix + entry.name, entry.stat()
            except OSError as error:
                if entry.is_symlink():
                    # A link without a target keeps its own times; the family decides about it.
                    yield prefix + entry.name, entry.stat(follow_symlinks=False)
                    continue
                if not isinstance(error, FileNotFoundError):
                    raise
                # Renamed or removed after it was listed: the drop is still arriving.
                yield f"{prefix}{entry.name}.tmp", os.stat_result((0,) * 10)
