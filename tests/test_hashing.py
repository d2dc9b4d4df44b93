"""sha256 of files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gristmill.hashing import sha256_file, sha256_of


def test_a_file_is_hashed_in_reads_that_are_counted(tmp_path: Path) -> None:
    octets = os.urandom((1 << 20) + 5)
    file = tmp_path / "file"
    file.write_bytes(octets)
    counts: list[int] = []
    assert sha256_file(file, counts.append) == hashlib.sha256(octets).hexdigest()
    assert counts == [1 << 20, 5]
    with file.open("rb") as opened:
        opened.seek(7)
        assert sha256_of(opened) == hashlib.sha256(octets[7:]).hexdigest()


def test_what_may_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="no regular file") as raised:
            sha256_file(path)
        assert raised.value.filename == str(path)
