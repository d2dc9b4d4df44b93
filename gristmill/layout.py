"""Names of the folders beside artifacts that hold what is not published."""

from __future__ import annotations

from pathlib import Path

WORK = ".gristmill"

PARTS = "parts"

STAMPS = "stamps"

VERSIONS = "versions"

PULLED = "pulled"

UNLISTED = "unlisted"


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
