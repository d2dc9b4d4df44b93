"""Files of a data root that are committed to a dataset repository, and git's id of their bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from gristmill.mirror.layout import sha256_of
from gristmill.mirror.published import damaged


@dataclass(frozen=True)
class SourceFile:
    """A file of an artifact: a path that opens it, its path for messages, and what it should be."""

    opened: Path
    shown: Path
    size: int
    sha256: str

    def compare(self, sha256: str) -> None:
        """Raise BadInput where a file with this sha256 is not the one in the record."""
        if sha256 != self.sha256:
            raise damaged(self.shown)

    def read(self) -> bytes:
        """Its bytes, if they are those of the record."""
        with self.opened.open("rb") as file:
            data = file.read(self.size + 1)
        self.compare(sha256_of(data))
        return data


def git_id(data: bytes) -> str:
    """Git's id of contents."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
