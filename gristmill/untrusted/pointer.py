"""Files that are not what their name says, by their first bytes.

A pointer of Git LFS is a small text that a clone without git-lfs leaves in place of a large file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gristmill.contract import BadInput

HEAD_BYTES: Final = 64
"""Bytes at the beginning of a file that show a pointer."""
_PACKED: Final = {
    b"\x1f\x8b": "gzip, and its name does not end in .gz: rename it",
    b"\x28\xb5\x2f\xfd": "zstd, and its name does not end in .zst: rename it",
    b"\xfd7zXZ\0": "xz, and its name does not end in .xz: rename it",
    b"PK\x03\x04": "a ZIP archive: unpack it",
    b"PAR1": "Parquet, and its name does not end in .parquet: rename it",
}
_BEGINS: Final = b"version https://git-lfs.github.com/spec/"


def refuse_pointer(head: bytes, path: Path) -> None:
    """Raise BadInput for a file that is a pointer of Git LFS.

    head: its first bytes, `HEAD_BYTES` or more where it has them.
    """
    if head.startswith(_BEGINS):
        rule = "is a Git LFS pointer and not the data: run `git lfs pull` where it was cloned, and"
        raise BadInput(path, f"{rule} copy the file from there")


def refuse_packed(head: bytes, path: Path, *, is_inner: bool = False) -> None:
    """Raise BadInput for a text that is packed and has no such name, or is in an archive.

    head: its first bytes. path: the file, for the error.
    is_inner: whether it was unpacked already; default False.
    """
    for begin, what in _PACKED.items():
        if head.startswith(begin):
            twice = "is packed twice: unpack it once, and give it the ending of what is in it"
            raise BadInput(path, twice if is_inner else f"is {what}")
