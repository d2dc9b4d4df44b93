"""The link form: an artifact's folder is a link to a version, and a rename of a link commits.

For file systems that cannot exchange two folders, as NFS: to rename over a link is atomic on every
POSIX file system. Source: docs/publishing-details.md#the-link-form.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.layout import VERSIONS, WORK
from gristmill.publish import atomic_fs, inventory, locks

VARIABLE: Final = "GRISTMILL_PUBLISH_FORM"
"""The environment variable that chooses the form: `auto` (the default), `exchange` or `link`."""

_NEXT: Final = "next"
_CONVERTING: Final = "converting"
_VERSION: Final = re.compile("[0-9a-f]{32}")

_exchanges: dict[int, bool] = {}
_trying = threading.Lock()


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
    """Put a link to the standing version in the place of a real folder."""
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
