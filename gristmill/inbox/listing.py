"""What is in an inbox: its drops, their entries and files, what becomes of each file and column."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gristmill import keys
from gristmill.contract import BadInput, NothingToBuild
from gristmill.inbox.marks import (
    FORGOTTEN,
    INCOMPLETE,
    SAMPLE,
    Marks,
    is_mark,
    marked_file,
    marks_of,
    real_paths,
    stats_beside,
)
from gristmill.printable import cut, printable
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, kind_refusal, real_path, stat_file
from gristmill.untrusted.limits import unreadable
from gristmill.untrusted.walk import Entry, hard_links, list_files

READ, FACT, IGNORED, UNREAD = "read", "fact", "ignored", "unread"
"""The states of a column."""
_MOST: Final = 12
_LONGEST: Final = 80
_SAID: Final = {
    READ: "read",
    UNREAD: "not read",
    FACT: "facts of the rows, not read",
    IGNORED: "ignored, as the recipe says",
}


@dataclass(frozen=True)
class ColumnState:
    """What becomes of one column.

    name: of the column, of a place `a.b` in it, or `a[].b` for a key of its messages.
    state: `read`, `fact`, `ignored` or `unread`.
    what: the key of the recipe that reads it, the fact that it is, or an example; empty where no
        row that was looked at has a value.
    rows: in how many rows it is that nothing reads, as a build counts; 0 (default): nobody did.
    values: of a column that may divide or judge the rows, its values with their numbers; default
        none. keep: the rule of a recipe that takes the rows that are right, or of one split.
    is_split: whether these values say the split of a row, and not whether the row is right.
    """

    name: str
    state: str
    what: str = ""
    rows: int = 0
    values: str = ""
    keep: str = ""
    is_split: bool = False

    def __str__(self) -> str:
        counted = f"in {self.rows:,} row{'' if self.rows == 1 else 's'}" if self.rows else ""
        said = self.what or counted
        name = printable(cut(self.name, _LONGEST)) or "a column without a name"
        return f"{name} ({said})" if said and self.state != IGNORED else name


def column_lines(states: Sequence[ColumnState]) -> list[str]:
    """One line for each state, then one for each column that may divide or judge the rows."""
    rules = [each for each in states if each.keep]
    tests = [each.keep.removeprefix("keep = [").removesuffix("]") for each in rules]
    every = [f"several of these in one recipe: keep = [{', '.join(tests)}]"]
    lines = []
    for state, said in _SAID.items():
        if found := [each for each in states if each.state == state]:
            more = f" and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
            lines.append(f"{said}: {', '.join(map(str, found[:_MOST]))}{more}")
    return [*lines, *map(_rule, rules), *(every if len(rules) > 1 else [])]


def _rule(column: ColumnState) -> str:
    name = printable(cut(column.name, _LONGEST))
    if column.is_split:
        said = f"rows name their split in {name}: {column.values}, and would be mixed"
        return f"{said}: write a file for each, or take one by {column.keep}"
    said = f"{name} has two values, {column.values}: if it says which rows are right"
    return f"{said}, {column.keep}"


_NAMED = 10
_MOST_FILES = 2_000_000
# Names that copying and downloading tools give to files they have not finished.
UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".download")
_COPY: Final = re.compile(
    r"^(.*?)(?: ?\(\d+\)|[ _-]+copy(?: ?\(?\d+\)?)?)(\.[^/]*)$", re.IGNORECASE
)


def copied_from(name: str, names: Collection[str]) -> str | None:
    """The file of which another one is a copy, by the name that a browser or a desktop gave it."""
    match = _COPY.match(name)
    return match[1] + match[2] if match and match[1] + match[2] in names else None


def unfit_name(names: Collection[str]) -> tuple[str, str] | None:
    """The first file that nobody means to bring, by its name, and why; None where there is none."""
    for name in sorted(names):
        if name.lower().endswith(UNFINISHED):
            rule = (
                "has a name that tools give to files they have not finished: let the copy end, or "
            )
            return name, f"{rule}remove it"
        if (first := copied_from(name, names)) is not None:
            rule = f"is named as a copy of {printable(first)}, whose contents would count twice"
            return name, f"{rule}: remove it, or rename it if it holds others"
    return None


@dataclass(frozen=True)
class Shape:
    """What one drop is in an inbox: a folder, or a file with one of these endings.

    endings: of file names; none where a drop is a folder.
    folders: whether a folder is a drop, too, where there are endings; its key is its name.
        Default False.
    key_in: finds the key in a file's name, or returns None, and the file is
        refused. Default None: the key is the name without its ending.
    any_case: whether endings may have capitals; default False.
    reserved: names of entries that are no drops and are left out, as folders that a family has
        in its inbox for other files.
    """

    endings: tuple[str, ...] = ()
    key_in: Callable[[str], str | None] | None = None
    any_case: bool = False
    reserved: tuple[str, ...] = ()
    folders: bool = False

    @property
    def settles(self) -> str:
        """When a drop of this shape has arrived, in words."""
        folder = (
            "A folder whose files keep names, sizes and times for settle_seconds, or for two "
            "looks if it holds .done or SHA256SUMS,"
        )
        if not self.endings:
            return folder
        named = " or ".join(self.endings)
        file = (
            f"A {named} file that keeps size and time for settle_seconds, or for two looks if "
            "NAME.done or NAME.sha256 is beside it,"
        )
        return f"{file} or {folder[0].lower()}{folder[1:]}" if self.folders else file

    def key_of(self, name: str) -> str:
        """The partition key of an entry by its name."""
        if self.folders and not self.ending_of(name):
            return name
        if self.key_in is not None:
            return self.key_in(name) or name
        return name[: len(name) - len(self.ending_of(name))]

    def keys_in(self, text: str, name: str) -> list[str]:
        """The keys in a list: one a line, or the name of a drop or a link to it.

        text: empty lines and lines that begin with `#` are skipped. name: of the list, for errors.

        Raises BadInput for a line that names none, and for a list without keys.
        """
        found: dict[str, None] = {}
        for number, line in enumerate(text.splitlines(), 1):
            entry = line.strip()
            if not entry or entry.startswith("#"):
                continue
            key = self.key_of(entry.partition("?")[0].rpartition("/")[2])
            if reason := keys.refusal(key):
                raise BadInput(name, f"{reason}: write one partition a line", number)
            found[key] = None
        if not found:
            raise BadInput(name, "has no partition: write one a line")
        return list(found)

    def ending_of(self, name: str) -> str:
        """The ending of a name as it is written; empty for one that is not in `endings`."""
        known = name.lower() if self.any_case else name
        ending = next((each for each in self.endings if known.endswith(each)), "")
        return name[len(name) - len(ending) :]

    def refusal(self, entry: os.DirEntry[str], links: LinkRule = REFUSE_LINKS) -> str | None:
        """Why this entry is no drop, whatever it contains; None where it is one.

        links: what happens to an entry that is a link; default: it is refused.

        Raises OSError where its kind cannot be read.
        """
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode) and links.follow:
            try:
                path = Path(entry.path)
                mode = real_path(path, root=path.parent, links=links).lstat().st_mode
            except BadInput as error:
                return error.rule
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return kind_refusal(mode)
        if not self.endings:
            if not stat.S_ISDIR(mode):
                return "a drop is a folder: put the files into one"
        elif self.folders and stat.S_ISDIR(mode):
            if ending := self.ending_of(entry.name):
                return f"is a folder, and its name ends in {ending}: give it another name"
        elif not (stat.S_ISREG(mode) and self.ending_of(entry.name)):
            return f"only files that end in {' or '.join(self.endings)} belong here"
        elif self.key_in is not None and self.key_in(entry.name) is None:
            return "its name does not say which partition it is"
        return keys.refusal(self.key_of(entry.name))


FOLDER = Shape()
TOML = Shape((".toml",))


@dataclass(frozen=True)
class Loose:
    """An entry of an inbox that is no drop.

    changed_ns: when it changed or came. This is the inode's time, which a rename
        sets too and copying tools cannot set back.
    """

    changed_ns: int
    reason: str
    is_mark: bool = False


@dataclass(frozen=True)
class Survey:
    """One drop's files at one moment.

    signature: 16 hex digits over names, sizes and times, without the marks.
    refusal: names the first entry that a drop may not hold, and why; None without one.
    """

    signature: str
    files: int
    bytes: int
    unfinished: str
    refusal: str | None = None
    notes: tuple[str, ...] = ()
    marks: Marks = Marks()  # noqa: RUF009  it is frozen
    lines: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """Names this form of the drop, marks included: its signature where it has none."""
        if not self.marks.signature:
            return self.signature
        return short_digest(f"{self.signature};{self.marks.signature}")

    def names(self, drop: Path) -> set[str]:
        """Returns each file by its path in the drop, or the name of a drop that is a file."""
        return {line.partition("\0")[0] or drop.name for line in self.lines}


def list_inbox(
    inbox: Path, shape: Shape, links: LinkRule = REFUSE_LINKS
) -> tuple[dict[str, list[os.DirEntry[str]]], dict[str, Loose]]:
    """(entries that are drops by key, all others by name).

    Hidden and reserved entries are left out, and samples beside other drops of their key.
    """
    drops: dict[str, list[os.DirEntry[str]]] = {}
    loose: dict[str, Loose] = {}
    for entry in sorted(_entries(inbox), key=lambda item: item.name):
        if entry.name in shape.reserved:
            continue
        try:
            reason = shape.refusal(entry, links)
        except OSError as error:
            reason = unreadable(error)
        if reason is None:
            drops.setdefault(shape.key_of(entry.name), []).append(entry)
            continue
        try:
            changed = entry.stat(follow_symlinks=False).st_ctime_ns
        except FileNotFoundError:
            continue  # removed after it was listed
        file = marked_file(entry.name, shape.ending_of)
        if file is None:
            loose[entry.name] = Loose(changed, reason)
        elif not (inbox / file).exists() and not entry.name.endswith(SAMPLE):
            loose[entry.name] = Loose(changed, f"is the mark of {file}, which is not there", True)
    for key, entries in drops.items():
        real = set(real_paths(Path(entry.path) for entry in entries))
        drops[key] = [entry for entry in entries if Path(entry.path) in real]
    return drops, loose


def refused_place(inbox: Path, name: str, shape: Shape, links: LinkRule, *, is_folder: bool) -> str:
    """Why a copy may not become the drop of a name in an inbox; empty where it may."""
    apart = ", or bring all of its files in one folder" if shape.folders else ""
    key = stem = name.removesuffix("" if is_folder else shape.ending_of(name))
    if shape.key_in is not None and not is_folder:
        if (found := shape.key_in(name)) is None:
            own = ", or put it into a folder with a name of its own" if shape.folders else ""
            return (
                f"{name}: its name does not say which partition it is: put that into the "
                f"name, or give one by --name, as --name 2024-05 for a month{own}"
            )
        key = found
    if reason := keys.refusal(key) or keys.refusal(stem):
        return f"{reason}: choose another with --name"
    if name in shape.reserved:
        return f"{name}: is a folder of its own in drops/{inbox.name}/"
    there = list_inbox(inbox, shape, links)[0].get(key, [])
    if other := next((each.name for each in there if each.name != name), None):
        rule = f"is the same partition {key}: move it away first{apart}"
        return f"{inbox / other} {rule}, or choose another name with --name"
    return ""


def survey(path: Path, links: LinkRule = REFUSE_LINKS) -> Survey:
    """Names, sizes and times of a drop's files, without following links.

    Raises BadInput for a drop that cannot be walked, OSError where one of its folders cannot be
    read.
    """
    lines: list[str] = []
    unusual: list[Entry] = []
    marks: dict[str, os.stat_result] = {}
    size, unfinished, newest = 0, "", (0, "")
    # Entries named as the mark that are no files: a folder or a link of this name says the same.
    others: list[str] = []

    def enter(name: str) -> bool:
        if name == INCOMPLETE:
            others.append(name)
        return True

    entries, beside = _entries_of(path, links, enter)
    for entry in entries:
        found = entry.stat
        if is_mark(entry.name) and entry.name != FORGOTTEN:
            if entry.refusal is None:
                marks[entry.name] = found
                continue
            enter(entry.name)
        if len(lines) == _MOST_FILES:
            raise BadInput(path, f"has more than {_MOST_FILES:,} files: split the drop")
        if entry.refusal is not None or found.st_nlink > 1:
            unusual.append(entry)
        # Renamed or removed after it was listed: the drop is still arriving.
        name = entry.name if found.st_ino else f"{entry.name}.tmp"
        lines.append(f"{name}\0{found.st_size}\0{found.st_mtime_ns}")
        size += found.st_size
        if name != FORGOTTEN:  # it may come to a drop that is complete
            newest = max(newest, (found.st_ctime_ns, name or path.name))
        if name.endswith(UNFINISHED):
            unfinished = min(unfinished or name, name)
    refused, linked = hard_links(unusual) if unusual else ({}, [])
    refused |= {entry.name: entry.refusal for entry in unusual if entry.refusal is not None}
    if beside:
        marks = stats_beside(path)
    elif others:
        with suppress(FileNotFoundError):
            marks[INCOMPLETE] = os.lstat(f"{path}/{INCOMPLETE}")
    return Survey(
        short_digest("\n".join(sorted(lines))),
        len(lines),
        size,
        unfinished,
        _first_of(refused, path),
        (_other_names(linked, path),) if linked else (),
        marks_of(marks, path.parent if beside else path, newest, beside),
        tuple(lines),
    )


def _entries_of(
    path: Path, links: LinkRule, enter: Callable[[str], bool]
) -> tuple[Iterable[Entry], str]:
    """The entries of a drop, and its name if it is a file; `enter` is as for `list_files`."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        mode = real_path(path, root=path.parent, links=links).lstat().st_mode
    if stat.S_ISDIR(mode):
        return list_files(path, root=path.parent, links=links, enter=enter), ""
    found = stat_file(path, root=path.parent, links=links)
    return [Entry("", found, None, path.parent.stat().st_uid)], path.name


def _first_of(refused: dict[str, str], drop: Path) -> str | None:
    if not refused:
        return None
    name = min(refused)
    more = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
    return f"{drop / name}: {refused[name]}{more}"


def _other_names(names: Sequence[str], drop: Path) -> str:
    shown = named_few(sorted(name or drop.name for name in names))
    return f"{printable(shown)}: other names (hard links) of the same files are outside of the drop"


def ambiguous(entries: Sequence[os.DirEntry[str]]) -> str | None:
    """Why a key cannot be built: more than one drop has it. None where one has."""
    if len(entries) < 2:
        return None
    named = named_few([entry.name for entry in entries])
    return f"{named} are the same partition: leave one of them"


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


_MOST_NAMED: Final = 5


class Waits(NothingToBuild):
    """A drop is whole, and nothing can be built from it before something else is there."""


class Unread(NothingToBuild):
    """A drop is whole, and nothing reads it; the text says what to write so that something does."""


@dataclass(frozen=True)
class Account:
    """What becomes of each file of a drop. Marks and files whose name begins with a dot have none.

    taken: the files that are read, by split; the key is empty where a drop has no splits. Names are
        POSIX paths relative to the drop, or the name of a drop that is a file.
    left_out: why each other file is not read, by its name; a folder of which nothing is read ends
        in `/`.
    """

    taken: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """One line a split, or one for a drop without splits: files taken, files left out.

        Then a line for each note.
        """
        left = _left_out(self.left_out)
        if set(self.taken) <= {""}:
            return [_joined(_counted(self.taken.get("", ())), left), *self.notes]
        lines = [f"{split}: {_counted(names)}" for split, names in self.taken.items()]
        return [*lines, *([left] if left else []), *self.notes]

    def of(self, split: str) -> Account:
        """The account of one split: its files, and what is left out of the drop."""
        return Account({"": self.taken.get(split, ())}, self.left_out, self.notes)


def _counted(names: Sequence[str]) -> str:
    return f"{len(names):,} file{'' if len(names) == 1 else 's'} taken"


def _left_out(left: Mapping[str, str]) -> str:
    if not left:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(left.items()):
        by_reason.setdefault(reason, []).append(printable(name))
    parts = []
    for reason, names in by_reason.items():
        more = len(names) - _MOST_NAMED
        named = ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        parts.append(f"{named} ({reason})")
    return f"{len(left):,} left out: {'; '.join(parts)}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


IsThere = Callable[[str, str], bool]
"""Takes an inbox and the name of a drop in it; returns whether that drop is whole."""


@dataclass(frozen=True)
class DropKind:
    """The drops of one inbox.

    account: takes a drop and what happens to links in it; returns what becomes of its files.
        Raises GristmillError for a drop that is refused.
    shape: a drop is a folder (default), or a file with one of certain endings.
    needs: takes a drop that is not refused, the data root, and what tells whether other drops are
        whole. Raises Waits or Unread where nothing can be built from it now. Default: never.
    column_states: takes a drop that is not refused, what happens to links, the files to look at,
        and the counts of a record that was built from them, or none; returns what becomes of each
        column, by the first rows. Default: nothing is known of columns.
    """

    account: Callable[[Path, LinkRule], Account]
    shape: Shape = FOLDER
    needs: Callable[[Path, Path, IsThere], None] = lambda _drop, _root, _is_there: None
    column_states: Callable[..., Sequence[ColumnState]] = lambda *_: ()
