"""Marks of a drop: what whoever brings it says of it, in files of these names.

`.incomplete` and `.done` say whether the copy is complete, `SHA256SUMS` lists the sums of the
files, `.sample` lists which files Gristmill generated. No generated file may be read beside files
of a person: what the mark lists and what has these bytes is the sample's; every other file is
real, also one with the name of a sample's file. Each listing of the files that a family reads
asks `not_samples`. Source: docs/drops.md#marks, docs/drops.md#samples.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.hashing import sha256_of
from gristmill.printable import printable
from gristmill.untrusted.files import open_file, read_file

INCOMPLETE: Final = ".incomplete"
DONE: Final = ".done"
SUMS: Final = "SHA256SUMS"
SAMPLE: Final = ".sample"
_LINE: Final = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *]([^\n]+)")
_TAGGED: Final = re.compile(rb"(\\?)SHA256 \(([^\n]+)\) = ([0-9a-fA-F]{64})")
_MOST_SUMS: Final = 256 << 20
FORGOTTEN: Final = "forgotten.jsonl"
"""A file of a drop that names rows which are not built; no list of sums has it."""
_BESIDE: Final = {
    **{".incomplete": INCOMPLETE, ".done": DONE, ".sha256": SUMS, SAMPLE: SAMPLE},
    f".{FORGOTTEN}": FORGOTTEN,
}
SETTINGS: Final = "gristmill.toml"
"""A file of a sample that is no part of its contents."""
LEFT_OUT: Final = "sample: real files are here"
"""Why a sample's own file is not read."""
_MOST_MARK: Final = 1 << 20
_MOST_FILE: Final = 16 << 20
"""Bytes of a sample's file at most; a mark may come with a drop, and must not make us hash more."""


@dataclass(frozen=True)
class Settling:
    """What an inbox waits for before it takes a drop.

    seconds: for how long a drop without marks must stay unchanged; default 0: for two looks.
    require_done: whether a drop without `.done` or `SHA256SUMS` waits whatever its age;
        default False.
    """

    seconds: float = 0.0
    require_done: bool = False


AT_ONCE: Final = Settling()
"""Two equal looks are enough."""


@dataclass(frozen=True)
class Marks:
    """The marks of one drop, and what they say against the times of its files.

    names: of the marks that are there, by `INCOMPLETE`, `DONE`, `SUMS` and `SAMPLE`.
    newest_ns: when the newest file of the drop changed, by the inode; 0 without files.
    done_ns, done_bytes: when `.done` came, and its bytes; 0 without it.
    """

    place: Path = Path()
    names: Mapping[str, str] = field(default_factory=dict)
    signature: str = ""
    newest_ns: int = 0
    newest_name: str = ""
    done_ns: int = 0
    done_bytes: int = 0

    def path(self, kind: str) -> Path:
        """The path of a mark that is there. It is made when asked: a look at a drop rarely asks."""
        return self.place / self.names[kind]

    @property
    def says_complete(self) -> bool:
        """Whether a list or a `.done` that is no older than the files says so.

        A folder that is copied together with a `.done` may have it before its other files.
        """
        return SUMS in self.names or (DONE in self.names and self.done_ns >= self.newest_ns)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a mark says that nobody reads: releases up to 0.9 compared the number of files."""
        if not self.done_bytes:
            return ()
        return (f"{self.names[DONE]} is read as an empty file: its number is not compared",)

    def missing(self) -> str:
        """Why a drop that needs a mark does not have one that counts."""
        if DONE in self.names:
            return (
                f"{self.newest_name} changed after {DONE} came: `touch` {DONE} when the copy is "
                "complete"
            )
        return (
            f"has no {DONE} and no {SUMS}, and require_done is true in gristmill.toml: bring one "
            "of them as the last file"
        )


def marks_of(
    found: Mapping[str, os.stat_result], place: Path, newest: tuple[int, str], beside: str = ""
) -> Marks:
    """Returns the marks of a drop."""
    if not found:
        return Marks(place, newest_ns=newest[0], newest_name=newest[1])
    kinds = {name: _BESIDE[name.removeprefix(beside)] if beside else name for name in found}
    lines = [
        f"{kinds[name]} {stat_.st_size} {stat_.st_mtime_ns} {stat_.st_ctime_ns}"
        for name, stat_ in sorted(found.items())
    ]
    done = next(
        ((s.st_ctime_ns, s.st_size) for name, s in found.items() if kinds[name] == DONE), (0, 0)
    )
    return Marks(
        place, {kind: name for name, kind in kinds.items()}, ";".join(lines), *newest, *done
    )


def is_mark(name: str) -> bool:
    """Whether a file of a drop that is a folder is one of its marks, or its tombstones."""
    return name in _BESIDE.values()


def marked_file(name: str, ending_of: Callable[[str], str]) -> str | None:
    """Returns the name of the file that an entry of an inbox is a mark of; None for no mark."""
    for ending in _BESIDE:
        file = name.removesuffix(ending)
        if file != name and ending_of(file):
            return file
    return None


def stats_beside(path: Path) -> dict[str, os.stat_result]:
    """Returns the stat of each mark of a file, by the name of the mark."""
    found = {}
    for ending in _BESIDE:
        name = path.name + ending
        with suppress(FileNotFoundError):
            found[name] = (path.parent / name).lstat()
    return found


def listed_sums(mark: Path, drop: Path, most: int = _MOST_SUMS) -> dict[str, str]:
    """Returns the sha256 of each file that a list names.

    Raises BadInput for a line that is none, and for a list without a file.
    """
    octets = read_file(mark, root=mark.parent, most=most)
    is_folder = drop.is_dir()
    listed: dict[str, str] = {}
    for number, line in enumerate(octets.split(b"\n"), 1):
        if not line.strip():
            continue
        name, digest = _entry(mark, number, line.removesuffix(b"\r"))
        if is_folder and is_mark(name):
            continue
        if not is_folder and name != drop.name:
            raise BadInput(mark, f"line {number}: names {printable(name)!r}, not {drop.name}")
        if listed.setdefault(name, digest) != digest:
            raise BadInput(mark, f"line {number}: {printable(name)!r} has two sums: leave one")
    if not listed:
        raise BadInput(mark, "lists no file: write it with `sha256sum * > SHA256SUMS`")
    return listed


def _entry(mark: Path, number: int, line: bytes) -> tuple[str, str]:
    if found := _LINE.fullmatch(line):
        escaped, digest, name = found.groups()
    elif found := _TAGGED.fullmatch(line):
        escaped, name, digest = found.groups()
    else:
        raise BadInput(
            mark,
            f"line {number}: must be 64 hex digits, two spaces and a name, as sha256sum has it",
        )
    if escaped:
        name = re.sub(
            rb"\\([\\nr])", lambda one: {b"n": b"\n", b"r": b"\r"}.get(one[1], b"\\"), name
        )
    text = name.decode(errors="surrogateescape").removeprefix("./")
    if text.startswith("/") or "\0" in text or {"", ".", ".."} & set(text.split("/")):
        raise BadInput(mark, f"line {number}: {printable(text)!r} must be a path in the drop")
    return text, digest.decode().lower()


def written_sums(sums: Mapping[str, str]) -> bytes:
    """Returns a list as sha256sum writes it."""
    lines = []
    for name, digest in sorted(sums.items()):
        escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n")
    return "".join(lines).encode(errors="surrogateescape")


def not_samples(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns the sample's own files, with the reason to leave them out, where others are there."""
    named = set(names)
    own = own_files(root) & named if named else named
    return {} if own == named else dict.fromkeys(sorted(own), LEFT_OUT)


def real_paths(paths: Iterable[Path]) -> list[Path]:
    """Returns files, each a drop of the same place, without samples where another one is there."""
    every = list(paths)
    real = [path for path in every if not _is_sample(path)] if len(every) > 1 else every
    return real or every


def left_out_of(drop: Path, taken: Iterable[str]) -> dict[str, str]:
    """Returns what an account says of the sample's own files, which real ones took the place of.

    Raises BadInput for a mark that cannot be read.
    """
    own, read = own_files(drop), set(taken)
    return {} if read <= own else dict.fromkeys(sorted(own - read - {SETTINGS}), LEFT_OUT)


def samples_beside(drop: Path, place_of: Callable[[str], object]) -> dict[str, str]:
    """Returns what an account of a real file says of samples that it took the place of.

    `place_of` takes the name of a drop, and returns its place, as the month of chess. Raises
    BadInput for a mark that cannot be read.
    """
    if own_files(drop):
        return {}
    files = sorted(path.with_suffix("") for path in drop.parent.glob(f"[!.]*{SAMPLE}"))
    place = place_of(drop.name)
    beside = [path for path in files if path != drop and place_of(path.name) == place]
    return {path.name: LEFT_OUT for path in beside if own_files(path)}


def is_left_out(file: Path) -> bool:
    """Returns whether real files took the place of a sample that a small file beside them is of.

    file: in the drop itself, as its settings. A real file has an ending that a sample's file has.

    Raises BadInput for a mark that cannot be read.
    """
    endings = {Path(name).suffix for name in sums_of(file.parent)}
    names = [path.name for path in file.parent.glob("[!.]*") if path.suffix in endings]
    return bool(endings) and file.name in not_samples(file.parent, {*names} - {FORGOTTEN})


def own_files(drop: Path) -> set[str]:
    """Returns the names of a sample's own files that are there as the mark lists them.

    The name of a drop that is a file is its own. Raises BadInput for a mark that cannot be read.
    """
    return own_of(drop, sums_of(drop))


def own_of(drop: Path, sums: Mapping[str, str]) -> set[str]:
    """Returns the names of files of a drop that have these sums."""
    place = drop if drop.is_dir() else drop.parent
    return {name for name, sha256 in sums.items() if _sha256(place / name) == sha256}


def why_changed(drop: Path) -> str:
    """Returns which of a sample's files was changed, where others are its own still; else "".

    Raises BadInput for a mark that cannot be read.
    """
    sums = sums_of(drop)
    own = own_of(drop, sums) if drop.is_dir() else set()
    changed = sorted(name for name in sums.keys() - own if os.path.lexists(drop / name))
    if not own or not changed:
        return ""
    return (
        f"{changed[0]} is not as {SAMPLE} lists it: a changed file of a sample counts as real, "
        f"and the sample's other files are left out: bring it back, or remove {SAMPLE} to keep all "
        "of them as your own"
    )


def contents(drop: Path) -> set[str]:
    """Returns the names of the files of a drop, without its marks."""
    if not drop.is_dir():
        return {drop.name}
    found = {path.relative_to(drop).as_posix() for path in drop.rglob("*") if not path.is_dir()}
    return {name for name in found if not is_mark(name)}


def is_only_sample(drop: Path) -> bool:
    """Returns whether a drop holds nothing but a sample's own files."""
    own = own_files(drop)
    return bool(own) and own == contents(drop)


def sums_of(drop: Path) -> Mapping[str, str]:
    """Returns what the mark of a drop lists, the sha256 of each file; nothing without a mark.

    Raises BadInput for a mark that cannot be read.
    """
    mark = mark_of(drop)
    try:
        found = mark.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _sums(drop, mark, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def tombstones_of(drop: Path) -> Path:
    """Returns the path of the tombstones of a drop: in a folder, or beside a file."""
    return drop.with_name(f"{drop.name}.{FORGOTTEN}") if drop.is_file() else drop / FORGOTTEN


def is_tombstones(path: str) -> bool:
    """Returns whether a file of a drop, or one beside it, has tombstones, by its path."""
    return f".{path.rpartition('/')[2]}".endswith(f".{FORGOTTEN}")


def mark_of(drop: Path) -> Path:
    """Returns the path of the mark of a drop: in a folder, or beside a file."""
    return drop / SAMPLE if drop.is_dir() else drop.with_name(drop.name + SAMPLE)


def sums_in(drop: Path) -> dict[str, str]:
    """Returns what the mark of a sample lists that was just written."""
    files = [path for path in drop.rglob("*") if path.is_file()] if drop.is_dir() else [drop]
    place = drop if drop.is_dir() else drop.parent
    sums = {path.relative_to(place).as_posix(): _sha256(path) for path in files}
    return {name: sha256 for name, sha256 in sums.items() if sha256 and not is_mark(name)}


def is_newest(done: Path, files: Iterable[Path]) -> bool:
    """Returns whether no file changed after a `.done` came: a sample's says nothing of others."""
    return done.stat().st_ctime_ns >= max((path.lstat().st_ctime_ns for path in files), default=0)


def _is_sample(file: Path) -> bool:
    try:
        return bool(own_files(file))
    except BadInput:
        return False


@lru_cache(maxsize=256)
def _sums(drop: Path, mark: Path, *_stamp: int) -> Mapping[str, str]:
    try:
        return listed_sums(mark, drop, most=_MOST_MARK)
    except BadInput as error:
        rule = f"{error.rule}. It says which files are of a sample: remove it if none is"
        raise BadInput(mark, rule) from error


def _sha256(path: Path) -> str | None:
    """The sha256 of a file that may be a sample's; None for another entry, or none."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_FILE:
        return None
    return _hashed(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@lru_cache(maxsize=4096)
def _hashed(path: Path, *_stamp: int) -> str | None:
    try:
        with open_file(path, root=path.parent, buffering=0) as file:
            return sha256_of(file)
    except FileNotFoundError:
        return None
