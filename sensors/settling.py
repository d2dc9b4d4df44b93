"""When a raw drop has arrived: what one look at an inbox tells, given the look before.

Plain functions over folders and a small state; Dagster comes in `raw_drops`.
A look lists names, sizes and times and never reads a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gristmill import keys

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

    settled, refused: signature by key. resume: the key to go on with, where a
    look ran out of time.
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
        if not self.endings:
            return None if entry.is_dir() else "a drop is a folder: put the files into one"
        if not (entry.is_file() and entry.name.endswith(self.endings)):
            return f"only files that end in {' or '.join(self.endings)} belong here"
        if self.key_in is not None and self.key_in(entry.name) is None:
            return "its name does not say which partition it is"
        return None


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
    entries = _by_key(inbox, shape)
    _forget(state, set(entries))
    for name in _from(sorted(entries), state.resume):
        if time.monotonic() > deadline or len(found.arrivals) >= most:
            state.resume = name
            return found
        if reason := _ambiguous(entries[name]):
            _refuse(state, found, name, reason, reason)
            continue
        try:
            _look_at(name, entries[name][0], shape, state, refuse, found)
        except FileNotFoundError:
            # Removed between the listing and the look: the next one sees what is left.
            found.arriving.append(name)
        except OSError as error:
            # One drop that cannot be read must not hold up all the others.
            _refuse(state, found, name, "unreadable", _unreadable(error))
    state.resume = ""
    return found


def at_hand(inbox: Path, refuse: Callable[[Path], str | None], shape: Shape = FOLDER) -> Look:
    """All drops that lie in `inbox` now, taken as complete because a person says so."""
    found = Look()
    for key, entries in sorted(_by_key(inbox, shape).items()):
        entry, path = entries[0], Path(entries[0].path)
        try:
            reason = shape.refusal(entry) or keys.refusal(key) or _ambiguous(entries)
            if reason is None:
                reason = refuse(path)
            if reason is not None:
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
    entry: os.DirEntry[str],
    shape: Shape,
    state: State,
    refuse: Callable[[Path], str | None],
    found: Look,
) -> None:
    path = Path(entry.path)
    if reason := shape.refusal(entry) or keys.refusal(key):
        _refuse(state, found, key, "name", reason)
        return
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


def _forget(state: State, present: set[str]) -> None:
    """Drop what is gone from the inbox: if it comes back, it arrives anew."""
    for known in (state.waiting, state.settled, state.refused):
        for key in set(known) - present:
            del known[key]  # type: ignore[attr-defined]


def _from(names: list[str], start: str) -> Iterator[str]:
    """All names once, beginning with the first that is not before `start`."""
    yield from (name for name in names if name >= start)
    yield from (name for name in names if name < start)


def _by_key(inbox: Path, shape: Shape) -> dict[str, list[os.DirEntry[str]]]:
    found: dict[str, list[os.DirEntry[str]]] = {}
    for entry in sorted(_entries(inbox), key=lambda item: item.name):
        found.setdefault(shape.key(entry), []).append(entry)
    return found


def _ambiguous(entries: list[os.DirEntry[str]]) -> str | None:
    """Why a key cannot be built: more than one drop has it."""
    if len(entries) == 1:
        return None
    return f"{', '.join(entry.name for entry in entries)} are the same partition: leave one of them"


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
    text = "\n".join(sorted(lines)).encode(errors="surrogateescape")
    return _Seen(hashlib.sha256(text).hexdigest()[:16], len(lines), size, unfinished)


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
