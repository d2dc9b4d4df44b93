"""The file of verdicts where it cannot be used: broken, locked, read-only, or on a full disk."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from assets.checking import verdict_file
from assets.checking.verdict_file import kept, opened
from assets.checking.verdicts import Verdict
from gristmill.data_root.reports import FILE, Report, Reports, reports
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


def test_a_file_that_stays_locked_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.setattr(verdict_file, "_WAIT_SECONDS", 0)
    with opened(tmp_path) as verdicts:
        verdicts.register_all(ASSET, {})
        verdicts.keep(ASSET, "intact", FOUND)
    with locked(tmp_path):
        (line,) = keep(tmp_path)
        assert "locked" in line
    with opened(tmp_path) as verdicts:
        assert not verdicts.knows(ASSET)
        assert verdicts.of(ASSET, "intact") == []
    assert keep(tmp_path) == []


def test_a_file_of_0_9_keeps_its_verdicts_and_what_was_reported_is_asked_of_events(tmp_path):
    (tmp_path / WORK).mkdir()
    with closing(sqlite3.connect(tmp_path / WORK / FILE)) as old, old:
        old.execute("create table assets (asset text primary key)")
        old.execute(
            "create table verdicts (asset text, name text, subject text, data_version text, "
            "problem text, cure text, primary key (asset, name, subject))"
        )
        old.execute("insert into assets values (?)", (ASSET,))
        old.execute("insert into verdicts values (?, 'lawful', 'b', '', 'odd', '')", (ASSET,))
        old.execute("insert into verdicts values (?, 'lawful', 'c', 'v', 'odd', '')", (ASSET,))
    assert reports(tmp_path) == Reports()
    with opened(tmp_path) as verdicts:
        assert not verdicts.knows(ASSET)
        assert [one.problem for one in verdicts.of(ASSET, "lawful")] == ["odd", "odd"]
        red = {"b": (("lawful", ""),), "c": (("lawful", "v"),)}
        known = {(ASSET, key): Report(red=each) for key, each in red.items()}
        assert reports(tmp_path) == Reports(frozenset(), known)
        assert reports(tmp_path).differs(ASSET, "b", "v") == "the check lawful found an error"
        assert reports(tmp_path).differs(ASSET, "c", "of a later build") == ""
        verdicts.register_all(ASSET, {})
    with opened(tmp_path) as verdicts:
        assert verdicts.knows(ASSET)
    assert reports(tmp_path) == Reports(frozenset([ASSET]), known)
    assert reports(tmp_path).differs(ASSET, "", "v").startswith("not reported to Dagster")


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
    assert not (tmp_path / WORK / FILE).exists()


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
