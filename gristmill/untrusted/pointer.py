"""Pointers of Git LFS: small texts that a clone without git-lfs leaves in place of large files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gristmill.contract import BadInput

HEAD_BYTES: Final = 64
"""Bytes at the beginning of a file that show a pointer."""
_BEGINS: Final = b"version https://git-lfs.github.com/spec/"


def refuse_pointer(head: bytes, path: Path) -> None:
    """Raise BadInput for a file that is a pointer of Git LFS.

    head: its first bytes, `HEAD_BYTES` or more where it has them.
    path: the file, for the error.
    """
    if head.startswith(_BEGINS):
        rule = "is a Git LFS pointer and not the data: run `git lfs pull` where it was cloned, and"
        raise BadInput(path, f"{rule} copy the file from there")
