"""The files of a drop, and which shard takes which of them."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.synth.raw import (
    DONE,
    check_columns,
    complete_files,
    files,
    is_complete,
)
from gristmill.synth.samples import write_drop
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.walk import Entry


def test_a_drop_is_complete_at_its_count_or_with_done(tmp_path: Path) -> None:
    paths = write_drop(tmp_path, files=3, rows=1, done=False)
    assert not is_complete(tmp_path)
    with pytest.raises(GristmillError, match="3 Parquet files of 500"):
        complete_files(tmp_path)
    assert complete_files(tmp_path, 3) == paths
    (tmp_path / DONE).touch()
    assert complete_files(tmp_path) == paths


def test_done_alone_is_no_complete_drop(tmp_path: Path) -> None:
    (tmp_path / DONE).touch()
    assert not is_complete(tmp_path)
    with pytest.raises(GristmillError, match="0 Parquet files of 500"):
        complete_files(tmp_path)


def test_files_in_a_subfolder_are_not_waited_for(tmp_path: Path) -> None:
    write_drop(tmp_path / "data", files=4, rows=1)
    with pytest.raises(GristmillError, match=r"into this folder itself, since its subfolders are"):
        complete_files(tmp_path, 4)


def test_more_files_than_expected_are_no_complete_drop(tmp_path: Path) -> None:
    write_drop(tmp_path, files=3, rows=1, done=False)
    assert [is_complete(tmp_path, expected) for expected in (2, 3, 4)] == [False, True, False]


def test_folders_and_other_files_are_no_raw_files(tmp_path: Path) -> None:
    (path,) = write_drop(tmp_path, files=1, rows=1)
    (tmp_path / "a.parquet").mkdir()
    (tmp_path / "notes.txt").touch()
    assert files(tmp_path) == [path]


def test_missing_columns_are_named(tmp_path: Path) -> None:
    check_columns(tmp_path, ["query", "words"], ["query"])
    with pytest.raises(BadInput, match="has no column model, script"):
        check_columns(tmp_path, ["query"], ["query", "model", "script"])


def test_only_regular_files_are_raw_files(tmp_path: Path) -> None:
    drop, outside = tmp_path / "drop", tmp_path / "outside"
    for folder in (drop / "a folder.parquet", outside):
        folder.mkdir(parents=True)
    (outside / "x.parquet").touch()
    (drop / "a.parquet").touch()
    assert files(drop) == [drop / "a.parquet"]
    (drop / "b.parquet").symlink_to(outside / "x.parquet")
    with pytest.raises(BadInput, match=r"b\.parquet: is a link: a drop may hold"):
        files(drop)
    with pytest.raises(BadInput, match=r"b\.parquet: is a link"):
        complete_files(drop, 2)
    rule = LinkRule(True, (str(outside),))
    assert complete_files(drop, 2, rule) == [drop / "a.parquet", drop / "b.parquet"]
    (drop / "b.parquet").unlink()
    os.mkfifo(drop / "b.parquet")
    with pytest.raises(BadInput, match=r"b\.parquet: is a pipe"):
        files(drop)


def test_a_drop_that_is_gone_or_cannot_be_read_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files(tmp_path / "absent") == []

    def refuse(*_: object, **__: object) -> Iterator[Entry]:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr("gristmill.synth.raw.list_files", refuse)
    with pytest.raises(BadInput, match="cannot be read: Permission denied"):
        files(tmp_path)
    gone = Entry("x.parquet", os.stat_result((0,) * 10), None, 0)
    monkeypatch.setattr("gristmill.synth.raw.list_files", lambda *_, **__: iter([gone]))
    assert files(tmp_path) == []
