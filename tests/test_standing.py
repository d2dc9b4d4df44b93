"""Answers that are given again: what a stamp stands for, and what becomes of a note."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill import standing
from gristmill.layout import WORK


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with a folder, a file, links out of it and into it, and a lock."""
    root, other = tmp_path / "data", tmp_path / "other"
    for folder in (
        root / "drops/one",
        root / WORK / "locks",
        root / WORK / "slots",
        other / "deep",
    ):
        folder.mkdir(parents=True)
    for file in (root / "drops/one/a", root / WORK / "locks/one", other / "deep/far", other / "b"):
        file.write_bytes(b"text")
    (root / "far").symlink_to(other / "deep")
    (root / "drops/b").symlink_to(other / "b")
    (root / "again").symlink_to(root / "drops")
    (root / "loop").symlink_to(root / "loop")
    return root


def _damage(file: Path) -> None:
    """Write other bytes into a file, with its size and time."""
    found = file.stat()
    file.write_bytes(b"x" * found.st_size)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "bytes": lambda root: _damage(root / "drops/one/a"),
    "time": lambda root: os.utime(root / "drops/one/a"),
    "new file": lambda root: (root / "drops/one/c").touch(),
    "new folder": lambda root: (root / "drops/two").mkdir(),
    "file gone": lambda root: (root / "drops/one/a").unlink(),
    "rights": lambda root: (root / "drops/one").chmod(0o500),
    "verdicts": lambda root: (root / WORK / "verdicts.db-wal").write_bytes(b"x"),
    "work left": lambda root: (root / WORK / "slots/one").mkdir(),
    "target of a link": lambda root: _damage(root.parent / "other/b"),
    "below the target of a link": lambda root: (root.parent / "other/deep/new").touch(),
    "target gone": lambda root: (root.parent / "other/b").unlink(),
    "root gone": lambda root: root.rename(root.parent / "gone"),
}
NO_CHANGES: dict[str, Callable[[Path], object]] = {
    "reading": lambda root: (root / "drops/one/a").read_bytes(),
    "lock": lambda root: (root / WORK / "locks/two").touch(),
    "readers of SQLite": lambda root: (root / WORK / "verdicts.db-wal").touch(),
    "compiled": lambda root: (root / "__pycache__").mkdir(),
    "answer": lambda root: (root / WORK / standing.ANSWERS).mkdir(),
}


@pytest.mark.parametrize("name", [*CHANGES, *NO_CHANGES])
def test_a_stamp_is_another_one_after_each_change_of_what_counts(root, name):
    before = standing.stamp(root, "question")
    assert before == standing.stamp(root, "question")
    (CHANGES | NO_CHANGES)[name](root)
    assert (standing.stamp(root, "question") != before) == (name in CHANGES)


def test_a_stamp_stands_for_question_code_packages_day_and_more(root, monkeypatch, tmp_path):
    packages, code, more = tmp_path / "site-packages", tmp_path / "code", tmp_path / "index.db"
    packages.mkdir(), (code / "deep").mkdir(parents=True)
    monkeypatch.setattr(standing, "_CODE", code)
    monkeypatch.syspath_prepend(packages)

    def stamped(question: str = "question") -> str | None:
        return standing.stamp(root, question, [more])

    found = [stamped(), stamped("another")]
    for change in (
        (code / "deep/module.py").touch,
        (packages / "other-1.0.dist-info").mkdir,
        more.touch,
        lambda: more.write_bytes(b"event"),
        lambda: monkeypatch.setenv("GRISTMILL_ELITE_ARCHIVE", "another"),
        lambda: monkeypatch.setattr(os, "geteuid", lambda: 12345),
        lambda: monkeypatch.setattr(standing, "datetime", _Tomorrow),
    ):
        change()
        found.append(stamped())
    assert None not in found and len(set(found)) == len(found)


class _Tomorrow(standing.datetime):
    @classmethod
    def now(cls, tz: object = None) -> standing.datetime:
        return standing.datetime(2100, 1, 1, tzinfo=standing.UTC)


def test_what_changes_within_a_tick_of_the_clock_changes_the_stamp(root, monkeypatch):
    slept: list[float] = []
    now = (root / "drops/one/a").stat().st_ctime_ns
    monkeypatch.setattr(standing, "_CODE", root)
    monkeypatch.setattr(time, "sleep", slept.append)
    newest = max(path.lstat().st_ctime_ns for path in root.parent.rglob("*"))
    monkeypatch.setattr(time, "time_ns", lambda: newest + 5_000_000)
    assert standing.stamp(root, "question") is not None
    assert slept == [0.015]
    monkeypatch.setattr(time, "time_ns", lambda: now - 1)  # the clock of another machine
    assert standing.stamp(root, "question") is None


def test_no_stamp_stands_for_a_whole_disk(root, monkeypatch):
    monkeypatch.setattr(standing, "_CODE", root)
    assert standing.stamp(root, "question") is not None
    for room, outside in ((9, 1), (9, 20)):
        monkeypatch.setattr(standing, "_MOST", room)
        monkeypatch.setattr(standing, "_OUTSIDE", outside)
        assert standing.stamp(root, "question") is None


def test_a_note_gives_its_answer_for_its_stamp_alone(tmp_path):
    note = standing.note_of(tmp_path, ("root", ()))
    assert note != standing.note_of(tmp_path, ("root", ("macroxue/pack",)))
    assert standing.kept(note, "stamp") is None
    standing.keep(note, "stamp", {"lines": ["ü"]})
    assert standing.kept(note, "stamp") == {"lines": ["ü"]}
    assert standing.kept(note, "other") is None
    for damaged in (b"", b"{", b"[]", b"\xff", b'{"stamp": "stamp"}'):
        note.write_bytes(damaged)
        assert standing.kept(note, "stamp") is None
    standing.keep(tmp_path / "gone/below/note", "stamp", "answer")  # nowhere to keep it
    assert [path.name for path in note.parent.iterdir()] == [note.name]
