"""What the file system of a data root gives, and publishing on one that exchanges no folders.

Each ability is tried once, in a folder of its own. In the link form an artifact's folder is a link
to a version, and a rename of a link commits: for file systems that cannot exchange two folders, as
NFS, since to rename over a link is atomic on every POSIX file system. Source:
docs/publishing-details.md#the-link-form.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.layout import VERSIONS, WORK
from gristmill.provenance import inventory
from gristmill.publish import atomic_fs
from gristmill.run import locks

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


VARIABLE: Final = "GRISTMILL_PUBLISH_FORM"
"""The environment variable that chooses the form: `auto` (the default), `exchange` or `link`."""

_NEXT: Final = "next"
_CONVERTING: Final = "converting"
_VERSION: Final = re.compile("[0-9a-f]{32}")

_exchanges: dict[int, bool] = {}


def setting() -> str:
    """The form that `VARIABLE` asks for; GristmillError where it is not known."""
    form = os.environ.get(VARIABLE) or "auto"
    if form not in ("auto", "exchange", "link"):
        raise GristmillError(f"{VARIABLE} is {form!r}: it is `auto`, `exchange` or `link`")
    return form


def is_used(work: Path) -> bool:
    """Whether commits on the file system of `work` take the link form.

    work: a folder that belongs to the caller alone, such as its slot. Without a setting, an
        exchange is tried there once in a process for each file system.

    Raises GristmillError for a setting that is not known, OSError where the trial fails.
    """
    form = setting()
    if form != "auto":
        return form == "link"
    device = work.stat().st_dev
    with _trying:
        if device not in _exchanges:
            _exchanges[device] = atomic_fs.can_exchange(work / "trial")
        return not _exchanges[device]


def store_of(folder: Path) -> Path:
    """Where the versions of an artifact's folder are, which need not exist."""
    return folder.parent / WORK / VERSIONS / folder.name


def version_of(folder: Path) -> Path | None:
    """The version that the link `folder` names, None where it is no link of this form."""
    try:
        target = str(folder.readlink())
    except OSError:
        return None
    above, _, name = target.rpartition("/")
    if above != f"{WORK}/{VERSIONS}/{folder.name}" or not _VERSION.fullmatch(name):
        return None
    return folder.parent / target


def flip(staged: Path, folder: Path) -> None:
    """Make the flushed folder `staged` what `folder` names, by one rename over the link.

    The caller holds the lock of `folder`, and flushes the folder above it afterwards. A real
    folder at `folder` is first made a version; between two renames nothing is there, and `mend`
    ends that after a kill.

    Raises locks.LostLock, and flips nothing, where another may hold the lock by now.
    """
    store = store_of(folder)
    store.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not folder.is_symlink():
        _convert(folder, store)
    version = store / uuid.uuid4().hex
    staged.rename(version)
    link = store / _NEXT
    _link(folder, version, link)
    atomic_fs.flush_upwards(store, folder.parent)
    locks.confirm()
    link.rename(folder)


def _convert(folder: Path, store: Path) -> None:
    """Replace a real folder by a link to the standing version."""
    version = store / uuid.uuid4().hex
    _link(folder, version, store / _CONVERTING)
    atomic_fs.flush_upwards(store, folder.parent)
    locks.confirm()
    folder.rename(version)
    (store / _CONVERTING).rename(folder)
    atomic_fs.flush_all([store, folder.parent])


def _link(folder: Path, version: Path, link: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(version.relative_to(folder.parent))


def mend(folder: Path) -> None:
    """End a conversion that was killed between its two renames: the old version stands again.

    The caller holds the lock of `folder`.
    """
    converting = store_of(folder) / _CONVERTING
    if not converting.is_symlink():
        return
    version = folder.parent / converting.readlink()
    if not os.path.lexists(folder) and version.is_dir():
        converting.rename(folder)
        atomic_fs.flush(folder.parent)


def renamed_from(folder: Path) -> Path | None:
    """The folder beside `folder` whose version it names; None but for a link that was renamed."""
    try:
        target = folder.parent / folder.readlink()
    except OSError:
        return None
    owner = folder.parent / target.parent.name
    is_version = target.parent == store_of(owner) and _VERSION.fullmatch(target.name)
    return owner if is_version and owner != folder else None


def unnamed(folder: Path) -> list[Path]:
    """The versions of `folder` that no link names, and what a killed commit left beside them.

    A link beside `folder` counts, too: a person may have renamed an artifact.
    """
    store = store_of(folder)
    if not store.is_dir():
        return []
    current = version_of(folder)
    left = [entry for entry in store.iterdir() if entry != current]
    renamed = _named_beside(folder) if left else set()
    return [entry for entry in left if entry not in renamed]


def sweep(folder: Path, root: Path | None) -> None:
    """Remove what `unnamed` finds. The caller holds the lock of `folder`.

    root: the data root, whose inventory is settled first; None where none is known.
    """
    store = store_of(folder)
    if not store.is_dir() or locks.is_lost():
        return  # nothing to do, or it belongs to the holder that followed
    mend(folder)
    left = unnamed(folder)
    if left and root is not None:
        inventory.settle_folder(root, folder)
    for entry in left:
        atomic_fs.remove_tree(entry)
    if not any(store.iterdir()):
        store.rmdir()


def _named_beside(folder: Path) -> set[Path]:
    """The versions of `folder` that links in the folder above it name."""
    own = f"{WORK}/{VERSIONS}/{folder.name}/"
    targets = []
    with os.scandir(folder.parent) as entries:
        for entry in entries:
            if entry.is_symlink():
                with suppress(OSError):  # another process removed it meanwhile
                    targets.append(str(Path(entry.path).readlink()))
    return {folder.parent / target for target in targets if target.startswith(own)}
