"""What the file system of a data root gives: each ability is tried once, in a folder of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.publish import atomic_fs

_PREFIX: Final = ".gristmill-probe-"
_ABANDONED_SECONDS: Final = 3600


@dataclass(frozen=True)
class Abilities:
    """What one file system gives: None for an ability that is there, else why it is not.

    place: rename to a name that is free, and only there (`RENAME_NOREPLACE`).
    exchange: swap two folders in one step (`RENAME_EXCHANGE`).
    locks: a lock that a second holder is refused (flock).
    case: names that differ in case alone are two names.
    """

    place: str | None
    exchange: str | None
    rename_over: str | None
    hard_links: str | None
    locks: str | None
    flush_files: str | None
    flush_folders: str | None
    links: str | None
    case: str | None


@dataclass(frozen=True)
class State:
    """What changes from minute to minute.

    free_bytes: room that this user may fill.
    free_inodes: files that this user may still make, None where there is no limit.
    longest_name: bytes of the longest name of a file.
    ahead_seconds: how far the file system's clock is ahead of this machine's; negative: behind.
    """

    free_bytes: int
    free_inodes: int | None
    longest_name: int
    ahead_seconds: float


@dataclass(frozen=True)
class Mount:
    """Where a file system is mounted."""

    kind: str
    point: str
    options: frozenset[str]


_known: dict[int, Abilities] = {}
_trying = threading.Lock()


def abilities(folder: Path) -> Abilities:
    """The abilities of the file system of `folder`, tried once a process by a folder made in it."""
    device = folder.stat().st_dev
    with _trying:
        if device not in _known:
            _known[device] = _tried_in(folder)
        return _known[device]


def state(folder: Path) -> State:
    """Free room and clock of the file system of `folder`, as they are now.

    Raises OSError where nothing can be written there.
    """
    room = os.statvfs(folder)
    place = _new_folder(folder)
    try:
        before = time.time_ns()
        (place / "now").write_bytes(b"x")
        after = time.time_ns()
        ahead = (place / "now").stat().st_mtime_ns - (before + after) // 2
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return State(
        free_bytes=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,
        longest_name=room.f_namemax,
        ahead_seconds=ahead / 1e9,
    )


def mount(folder: Path, table: Path = Path("/proc/self/mountinfo")) -> Mount | None:
    """The mount that `folder` is on, None where the kernel does not say."""
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    here = folder.resolve()
    found: Mount | None = None
    for line in lines:
        left, _, right = line.partition(" - ")
        words, more = left.split(), right.split()
        if len(words) < 6 or not more:
            continue
        point = words[4].replace("\\040", " ")
        # A later mount at the same place hides an earlier one.
        deeper = found is None or len(point) >= len(found.point)
        if deeper and (here == Path(point) or Path(point) in here.parents):
            options = {*words[5].split(","), *(more[2].split(",") if len(more) > 2 else ())}
            found = Mount(more[0], point, frozenset(options))
    return found


def _new_folder(folder: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
    now = place.stat().st_mtime
    for left in folder.glob(f"{_PREFIX}*"):  # of a process that was killed
        try:
            if now - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        except FileNotFoundError:
            continue
    return place


def _tried_in(folder: Path) -> Abilities:
    place = _new_folder(folder)
    try:
        return Abilities(
            place=_refusal(_place, place / "place"),
            exchange=_refusal(_exchange, place / "exchange"),
            rename_over=_refusal(_rename_over, place / "rename"),
            hard_links=_refusal(_hard_link, place / "link"),
            locks=_refusal(_lock, place / "lock"),
            flush_files=_refusal(_flush_file, place / "file"),
            flush_folders=_refusal(atomic_fs.flush, place / "folder"),
            links=_refusal(_symbolic_link, place / "symlink"),
            case=_refusal(_case, place / "case"),
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _refusal(attempt: Callable[[Path], None], place: Path) -> str | None:
    """Why an attempt in the new folder `place` fails, None where it does not."""
    try:
        place.mkdir()
        attempt(place)
    except OSError as error:
        return error.strerror or str(error)
    except GristmillError as error:
        # atomic_fs has a text for a build; its cause is one of a few that mean the same.
        return "refused by renameat2" if "renameat2" in str(error) else str(error)
    return None


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise GristmillError(otherwise)


def _two_folders(place: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        (place / name).mkdir()
        (place / name / name).write_bytes(b"")
    return place / "a", place / "b"


def _place(place: Path) -> None:
    left, right = _two_folders(place)
    try:
        atomic_fs.place(left, right)
    except FileExistsError:
        pass
    else:
        raise GristmillError("a name that is taken is overwritten")
    atomic_fs.place(left, place / "c")
    _must((place / "c" / "a").exists() and not left.exists(), "the folder is not at its new name")


def _exchange(place: Path) -> None:
    left, right = _two_folders(place)
    atomic_fs.exchange(left, right)
    _must((left / "b").exists() and (right / "a").exists(), "the folders are not swapped")


def _rename_over(place: Path) -> None:
    (place / "old").write_bytes(b"old")
    (place / "new").write_bytes(b"new")
    (place / "new").replace(place / "old")
    _must((place / "old").read_bytes() == b"new", "the old file is still there")


def _hard_link(place: Path) -> None:
    (place / "one").write_bytes(b"x")
    os.link(place / "one", place / "two")
    one, two = (place / "one").stat(), (place / "two").stat()
    _must((one.st_dev, one.st_ino) == (two.st_dev, two.st_ino), "two names are two files")


def _lock(place: Path) -> None:
    path = place / "lock"
    first = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    second = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        raise GristmillError("a second holder gets the lock, too")
    finally:
        os.close(first)
        os.close(second)


def _flush_file(place: Path) -> None:
    (place / "file").write_bytes(b"x")
    atomic_fs.flush(place / "file")


def _symbolic_link(place: Path) -> None:
    (place / "link").symlink_to("target")
    _must((place / "link").readlink() == Path("target"), "the link has another target")


def _case(place: Path) -> None:
    (place / "name").write_bytes(b"")
    _must(not (place / "NAME").exists(), "`name` and `NAME` are one file")
