"""When a raw drop has arrived: what one look at an inbox tells, given the look before.

Plain functions over folders and a small state; Dagster comes in `raw_drops`.
A look lists names, sizes and times and never reads a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gristmill import keys

# The one key under which all loose entries are remembered; no drop can have it.
_LOOSE = ""
_NAMED = 10
# Names that copying and downloading tools give to files they have not finished.
_UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".download")


@dataclass(frozen=True)
class Waiting:
    """A drop seen once with this signature; `since` (ms) tells arrivals apart."""

    signature: str
    since: int


@dataclass
class State:
    """What one look hands to the next: some bytes for each drop, whatever it holds.

    settled, refused: signature by key; what is no drop by its name or kind
    shares one entry of `refused`, however much of it there is. resume: the key to
    go on with, where a look ran out of time.
    """

    waiting: dict[str, Waiting] = field(default_factory=dict)
    settled: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    resume: str = ""

    @staticmethod
    def read(cursor: str | None) -> State:
        raw = json.loads(cursor) if cursor else {}
        waiting = {key: Waiting(*seen) for key, seen in raw.get("waiting", {}).items()}
        return State(waiting, raw.get("settled", {}), raw.get("refused", {}), raw.get("resume", ""))

    def write(self) -> str:
        waiting = {key: [seen.signature, seen.since] for key, seen in self.waiting.items()}
        return json.dumps(
            {
                "waiting": waiting,
                "settled": self.settled,
                "refused": self.refused,
                "resume": self.resume,
            },
            separators=(",", ":"),
        )


@dataclass(frozen=True)
class Arrival:
    """A drop that has settled and is to be built. `run_key` names this very arrival."""

    key: str
    path: Path
    signature: str
    files: int
    bytes: int
    run_key: str


@dataclass(frozen=True)
class Refusal:
    """A drop that will not be built until it changes, and why."""

    key: str
    reason: str
    is_new: bool


@dataclass
class Look:
    """What a look at the inbox found."""

    arrivals: list[Arrival] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    arriving: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Shape:
    """What one drop is in an inbox: a folder, or a file with one of these endings.

    The key is the name without the ending, or the part of the name that
    `key_in` finds; a file in whose name it finds none is refused.
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
        if self.key_in is not None:
            return self.key_in(entry.name) or entry.name
        ending = next((end for end in self.endings if entry.name.endswith(end)), "")
        return entry.name.removesuffix(ending)

    def refusal(self, entry: os.DirEntry[str]) -> str | None:
        """Why this entry is no drop, whatever it holds; OSError where it cannot be told."""
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
class _Seen:
    signature: str
    files: int
    bytes: int
    unfinished: str | None


def look(
    inbox: Path,
    state: State,
    refuse: Callable[[Path], str | None],
    most: int,
    seconds: float,
    shape: Shape = FOLDER,
) -> Look:
    """Compare the drops in `inbox` with `state`, and bring `state` up to date.

    A drop settles when two looks in a row find the same names, sizes and
    times in it and no file that a tool marks as unfinished. A settled drop that
    changes arrives anew.

    refuse: the family's word at the door, why a settled drop cannot be built, or
        None. It is asked again at each look until the drop is taken.
    most: arrivals in one look; the others come in the next.
    seconds: after this long the look stops, and the next one goes on from there.
    """
    found = Look()
    deadline = time.monotonic() + seconds
    entries, loose = _sorted_out(inbox, shape)
    # What cannot be read just now may still be the drop that settled.
    _forget(state, {*entries, *loose, _LOOSE})
    _refuse_loose(state, found, loose)
    for name in _from(sorted(entries), state.resume):
        if time.monotonic() > deadline or len(found.arrivals) >= most:
            state.resume = name
            return found
        if reason := _ambiguous(entries[name]):
            named = "\n".join(entry.name for entry in entries[name])
            _refuse(state, found, name, _digest(named), reason)
            continue
        try:
            _look_at(name, Path(entries[name][0].path), state, refuse, found)
        except FileNotFoundError:
            # Removed between the listing and the look: the next one sees what is left.
            found.arriving.append(name)
        except OSError as error:
            # One drop that cannot be read must not hold up all the others.
            _refuse(state, found, name, "unreadable", _unreadable(error))
    state.resume = ""
    return found


def present_drops(inbox: Path, refuse: Callable[[Path], str | None], shape: Shape = FOLDER) -> Look:
    """All drops that lie in `inbox` now, taken as complete because a person says so."""
    by_key, loose = _sorted_out(inbox, shape)
    found = Look(refusals=[Refusal(key, said, is_new=True) for key, (_, said) in loose.items()])
    for key, entries in sorted(by_key.items()):
        path = Path(entries[0].path)
        try:
            if (reason := _ambiguous(entries) or refuse(path)) is not None:
                found.refusals.append(Refusal(key, reason, is_new=True))
                continue
            seen = _survey(path)
        except OSError as error:
            found.refusals.append(Refusal(key, _unreadable(error), is_new=True))
            continue
        found.arrivals.append(
            Arrival(key, path, seen.signature, seen.files, seen.bytes, run_key="")
        )
    return found


def _look_at(
    key: str,
    path: Path,
    state: State,
    refuse: Callable[[Path], str | None],
    found: Look,
) -> None:
    seen = _survey(path)
    if state.settled.get(key) == seen.signature:
        return
    before = state.waiting.get(key)
    if seen.files == 0 or seen.unfinished or before is None or before.signature != seen.signature:
        if before is None or before.signature != seen.signature:
            state.waiting[key] = Waiting(seen.signature, time.time_ns() // 1_000_000)
        found.arriving.append(key)
        return
    if reason := refuse(path):
        _refuse(state, found, key, seen.signature, reason)
        return
    del state.waiting[key]
    state.refused.pop(key, None)
    state.settled[key] = seen.signature
    run_key = f"{key}:{seen.signature}:{before.since}"
    found.arrivals.append(Arrival(key, path, seen.signature, seen.files, seen.bytes, run_key))


def _unreadable(error: OSError) -> str:
    return f"{error.filename}: cannot be read: {error.strerror}"


def _refuse(state: State, found: Look, key: str, signature: str, reason: str) -> None:
    is_new = state.refused.get(key) != signature
    state.refused[key] = signature
    found.refusals.append(Refusal(key, reason, is_new))


def _refuse_loose(state: State, found: Look, loose: dict[str, tuple[int, str]]) -> None:
    """Refuse what is no drop. Of all of it only the newest time is remembered."""
    for key in loose:
        state.refused.pop(key, None)
    if not loose:
        state.refused.pop(_LOOSE, None)
        return
    told = int(state.refused.get(_LOOSE, "-1"))
    for key, (changed, reason) in sorted(loose.items()):
        found.refusals.append(Refusal(key, reason, is_new=changed > told))
    state.refused[_LOOSE] = str(max(told, *(changed for changed, _ in loose.values())))


def _forget(state: State, present: set[str]) -> None:
    """Drop what is gone from the inbox: if it comes back, it arrives anew."""
    for known in (state.waiting, state.settled, state.refused):
        for key in set(known) - present:
            del known[key]


def _from(names: list[str], start: str) -> Iterator[str]:
    """All names once, beginning with the first that is not before `start`."""
    yield from (name for name in names if name >= start)
    yield from (name for name in names if name < start)


def _sorted_out(
    inbox: Path, shape: Shape
) -> tuple[dict[str, list[os.DirEntry[str]]], dict[str, tuple[int, str]]]:
    """Drops by key; and by name what is none: when it changed or came (ns), and the reason.

    That time is the inode's, which a rename sets too and copying tools cannot set back.
    """
    drops: dict[str, list[os.DirEntry[str]]] = {}
    loose: dict[str, tuple[int, str]] = {}
    for entry in sorted(_entries(inbox), key=lambda item: item.name):
        try:
            reason = shape.refusal(entry)
        except OSError as error:
            reason = _unreadable(error)
        if reason is None:
            drops.setdefault(shape.key(entry), []).append(entry)
            continue
        try:
            loose[entry.name] = entry.stat(follow_symlinks=False).st_ctime_ns, reason
        except FileNotFoundError:
            # Removed between the listing and the look.
            continue
    return drops, loose


def _ambiguous(entries: list[os.DirEntry[str]]) -> str | None:
    """Why a key cannot be built: more than one drop has it."""
    if len(entries) == 1:
        return None
    named = named_few([entry.name for entry in entries])
    return f"{named} are the same partition: leave one of them"


def named_few(names: Sequence[str], separator: str = ", ") -> str:
    """The first ten of these, and how many there are more."""
    more = len(names) - _NAMED
    return separator.join(names[:_NAMED]) + (f"{separator}and {more:,} more" if more > 0 else "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _entries(inbox: Path) -> list[os.DirEntry[str]]:
    """What lies in the inbox; hidden names are a tool's own business."""
    if not inbox.is_dir():
        return []
    with os.scandir(inbox) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def _survey(path: Path) -> _Seen:
    """Names, sizes and times of a drop's files, as one signature of 16 hex digits."""
    lines: list[str] = []
    size = 0
    unfinished = None
    files = _walk(path, "") if path.is_dir() else [("", path.stat())]
    for name, stat in files:
        lines.append(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}")
        size += stat.st_size
        if name.endswith(_UNFINISHED):
            unfinished = name
    return _Seen(_digest("\n".join(sorted(lines))), len(lines), size, unfinished)


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
                    # A link that leads nowhere stays so; what it is for is the family's business.
                    yield prefix + entry.name, entry.stat(follow_symlinks=False)
                    continue
                if not isinstance(error, FileNotFoundError):
                    raise
                # Renamed or removed between the listing and the look: still arriving.
                yield f"{prefix}{entry.name}.tmp", os.stat_result((0,) * 10)
