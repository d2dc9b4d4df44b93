"""The mark of a sample drop, and which files of a drop are a sample's own.

Gristmill generates samples, so no file of one may be read beside files of a person. The mark lists
the sample's own files, as `sha256sum` writes them. What it lists and what has these bytes is the
sample's; every other file is real, also one with the name of a sample's file. Each listing of the
files that a family reads asks `not_samples`. Source: docs/drops.md#samples.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.hashing import sha256_of
from gristmill.inbox.lists import listed_sums
from gristmill.inbox.marks import SAMPLE, is_mark
from gristmill.untrusted.files import open_file

SETTINGS: Final = "gristmill.toml"
"""A file of a sample that is no part of its contents."""
LEFT_OUT: Final = "sample: real files are here"
"""Why a sample's own file is not read."""
_MOST_MARK: Final = 1 << 20
_MOST_FILE: Final = 16 << 20
"""Bytes of a sample's file at most; a mark may come with a drop, and must not make us hash more."""


def not_samples(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns the sample's own files, with the reason to leave them out, where others are there.

    names: of the files that would be read, POSIX paths relative to `root`.
    """
    named = set(names)
    own = own_files(root) & named if named else named
    return {} if own == named else dict.fromkeys(sorted(own), LEFT_OUT)


def real_paths(paths: Iterable[Path]) -> list[Path]:
    """Returns files, each a drop of the same place, without samples where another one is there.

    paths: in any order, which is kept. A file whose mark cannot be read is no sample.
    """
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
    return bool(endings) and file.name in not_samples(file.parent, names)


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
