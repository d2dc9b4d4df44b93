"""Whatever is in the place of a record ends in an error that names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.provenance import record_file


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "record").write_bytes(b"x" * 5000)
    assert record_file.read_bytes(tmp_path / "record") == b"x" * 5000


def test_links_pipes_folders_and_huge_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record"
    path.symlink_to("/dev/zero")
    with pytest.raises(GristmillError, match="record: is a link"):
        record_file.read_bytes(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GristmillError, match="pipe: is not a regular file"):
        record_file.read_bytes(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises((GristmillError, OSError)):
        record_file.read_bytes(tmp_path / "folder")
    monkeypatch.setattr(record_file, "LIMIT", 3)
    (tmp_path / "huge").write_bytes(b"1234")
    with pytest.raises(GristmillError, match="has 4 bytes, at most 3"):
        record_file.read_bytes(tmp_path / "huge")
    (tmp_path / "large").write_bytes(b"123")
    assert record_file.read_bytes(tmp_path / "large") == b"123"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a/b.npy", None),
        ("a/..b", None),
        ("", "is empty"),
        (".", "is empty"),
        ("a\0b", "null byte"),
        ("/etc/passwd", "is absolute"),
        ("a/../../b", "leads out"),
        ("..", "leads out"),
    ],
)
def test_a_path_stays_below_its_folder(path: str, reason: str | None) -> None:
    found = record_file.wrong_path(path)
    assert found is None if reason is None else reason in str(found)
