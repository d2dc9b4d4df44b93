"""The file of verdicts where it cannot be used: broken, locked, read-only, or on a full disk."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from assets.checking import verdict_file
from assets.checking.verdict_file import FILE, LOST, kept, opened
from assets.checking.verdicts import Verdict
from gristmill.layout import WORK

ASSET = "test/tiny"
FOUND = [Verdict("a", "")]


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the file as another process that is in the middle of a change."""
    with closing(sqlite3.connect(root / WORK / FILE, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield


def of(root: Path) -> list[Verdict]:
    with opened(root) as verdicts:
        return verdicts.of(ASSET, "lawful")


def keep(root: Path) -> list[str]:
    """Keep a verdict; the lines that say why it is lost."""
    lines: list[str] = []
    with kept(root, lines.append) as file:
        file.do(lambda verdicts: verdicts.keep(ASSET, "lawful", FOUND))
        assert file.do(lambda verdicts: verdicts.of(ASSET, "lawful")) == FOUND
        assert file.is_lost is bool(lines)
    return lines


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_database_is_replaced(tmp_path, content):
    (tmp_path / WORK).mkdir()
    (tmp_path / WORK / FILE).write_bytes(content)
    assert keep(tmp_path) == []
    assert of(tmp_path) == FOUND


def test_a_data_root_that_cannot_be_written_to_keeps_nothing(tmp_path):
    with opened(Path(os.devnull)) as kept:
        kept.keep(ASSET, "lawful", FOUND)
        assert kept.of(ASSET, "lawful") == FOUND
    assert of(Path(os.devnull)) == []


def test_what_a_locked_file_does_not_take_is_noted_and_the_file_is_not_trusted(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(verdict_file, "_WAIT_SECONDS", 0)
    with opened(tmp_path) as verdicts:
        verdicts.register_all(ASSET, {})
        verdicts.keep(ASSET, "intact", FOUND)
    with locked(tmp_path):
        (line,) = keep(tmp_path)
        assert "locked" in line
        assert (tmp_path / WORK / LOST).exists()
        assert len(keep(tmp_path)) == 1  # the mark cannot be taken into account, and stays
        assert (tmp_path / WORK / LOST).exists()
    with opened(tmp_path) as verdicts:
        assert not verdicts.knows(ASSET)
        assert verdicts.of(ASSET, "intact") == FOUND
        verdicts.register_all(ASSET, {})
    assert not (tmp_path / WORK / LOST).exists()
    with opened(tmp_path) as verdicts:
        assert verdicts.knows(ASSET)


def test_on_a_full_disk_the_work_goes_on_in_memory(tmp_path, monkeypatch):
    prepared = verdict_file._prepared

    def full(path: Path | str) -> sqlite3.Connection:
        connection = prepared(path)
        if path != ":memory:":
            connection.execute("pragma max_page_count = 1")
        return connection

    monkeypatch.setattr(verdict_file, "_prepared", full)
    long = [Verdict(f"k{n}", "", "x" * 1000) for n in range(100)]
    lines: list[str] = []
    with kept(tmp_path, lines.append) as file:
        file.do(lambda verdicts: verdicts.keep(ASSET, "lawful", long))
        assert len(file.do(lambda verdicts: verdicts.of(ASSET, "lawful"))) == 100
    assert "full" in lines[0]
    assert (tmp_path / WORK / LOST).exists()
    assert (tmp_path / WORK / FILE).exists()


def test_where_nothing_can_be_noted_the_file_goes(tmp_path, monkeypatch):
    keep(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "touch", refuse)
    verdict_file.note_loss(tmp_path, OSError(28, "No space left on device"))
    assert not any((tmp_path / WORK).glob("verdicts*"))


def test_a_file_that_breaks_while_it_is_used_is_begun_again(tmp_path):
    with opened(tmp_path) as verdicts:
        verdicts.keep(ASSET, "lawful", [Verdict(f"k{n}", "", "x" * 1000) for n in range(20)])
    path = tmp_path / WORK / FILE
    octets = path.read_bytes()
    path.write_bytes(octets[:8192] + b"\xff" * (len(octets) - 8192))
    lines: list[str] = []
    with kept(tmp_path, lines.append) as file:
        assert file.do(lambda verdicts: verdicts.of(ASSET, "lawful")) == []
    assert "malformed" in lines[0]
    assert not path.exists()
    assert keep(tmp_path) == []


def test_a_file_with_tables_of_others_is_begun_again(tmp_path):
    (tmp_path / WORK).mkdir()
    with closing(sqlite3.connect(tmp_path / WORK / FILE)) as other:
        other.execute("create table verdicts (asset text)")
    assert "no such column" in " ".join(keep(tmp_path)) or of(tmp_path) == []
    assert keep(tmp_path) == []
    assert of(tmp_path) == FOUND


def test_an_error_of_the_work_itself_is_raised(tmp_path):
    def work(_: object) -> None:
        raise sqlite3.ProgrammingError("no error of the file")

    with kept(tmp_path, lambda _: None) as file, pytest.raises(sqlite3.ProgrammingError):
        file.do(work)


def test_a_data_root_that_is_gone_is_not_made(tmp_path: Path) -> None:
    lines: list[str] = []
    with kept(tmp_path / "gone", lines.append) as file:
        assert file.is_lost
    assert not (tmp_path / "gone").exists()
    assert "No such file or directory" in lines[0]
