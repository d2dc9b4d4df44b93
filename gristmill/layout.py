"""Where things lie: the data root, and folders beside artifacts that hold what is not published."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError

DROPS = "drops"

WORK = ".gristmill"

INVENTORY: Final = "inventory"
"""Name of the folder of the inventory, in `.gristmill` of the data root."""

SLOTS = "slots"

PARTS = "parts"

STAMPS = "stamps"

VERSIONS = "versions"

PULLED = "pulled"

UNLISTED = "unlisted"

HISTORY: Final = "history"
"""Name of the folder of older versions, in `.gristmill` of the data root."""


def root_of(checkout: Path, named: str = "") -> Path:
    """The data root: that of a name, else of the variable GRISTMILL_DATA, else of the checkout."""
    return Path(named or os.environ.get("GRISTMILL_DATA") or checkout / "data").absolute()


def refuse_missing_root(root: Path) -> None:
    """Raise GristmillError where a data root is not there, before anything is made below it.

    root: the data root. A wrong name, or a disk that is not mounted, must not become a new tree.
    """
    try:
        if root.is_dir():
            return
        what = "is no folder" if os.path.lexists(root) else "is not there"
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
    named = shlex.quote(str(root))
    raise GristmillError(
        f"{root}: the data root {what}: correct its name, mount its disk, or begin a new one with "
        f"`mkdir -p {named}` or `gristmill samples {named}`"
    )


def without_dots(path: Path) -> Path:
    """Returns an absolute path without `..`, as the file system reads it.

    path: of an artifact, or of what is above one. A link at its end stays: it may be the artifact,
        in the link form or moved to another disk.
    """
    if ".." not in path.parts:
        return path.absolute()
    return path.resolve() if path.name == ".." else path.parent.resolve() / path.name


def published_path(path: Path) -> Path:
    """Returns the resolved path of what is at or below an artifact, under the artifact's own name.

    path: as `Path.resolve` takes it. In the link form an artifact resolves to a version in
        `.gristmill/versions`, which has a name of that build alone.
    """
    parts = path.resolve().parts
    for at in range(len(parts) - 3):
        if parts[at : at + 2] == (WORK, VERSIONS):
            return Path(*parts[:at], parts[at + 2], *parts[at + 4 :])
    return Path(*parts)
