"""Notes of stamps are whole, whoever else writes them or was killed while it did."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from gristmill.provenance import raw_inputs
from gristmill.provenance.raw_inputs import Stamp

ONE: dict[str, Stamp] = {"a": (1, 2, 3, 4, 5)}
TWO: dict[str, Stamp] = {"b": (6, 7, 8, 9, 10)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stamps/source.json"


def test_notes_are_replaced(file: Path) -> None:
    raw_inputs.write_stamps(file, ONE)
    raw_inputs.write_stamps(file, TWO)
    assert raw_inputs.read_stamps(file) == TWO
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    "notes",
    [
        *(b"", b"[]", b"{", b'{"a": 1}', b'{"a": [1]}', b"[" * 9999, b"9" * 9),
        *(b'{"a": [1, 2, "3", 4, 5]}', b'{"a": [1e400]}', b'{"a": [1, 2, 3, 4, 1e400]}'),
    ],
)
def test_notes_that_cannot_be_read_are_none_and_are_replaced(file: Path, notes: bytes) -> None:
    assert raw_inputs.read_stamps(file) == {}
    file.parent.mkdir()
    file.write_bytes(notes)
    assert raw_inputs.read_stamps(file) == {}
    raw_inputs.write_stamps(file, ONE)
    assert raw_inputs.read_stamps(file) == ONE


def test_what_a_killed_process_left_is_written_over(file: Path) -> None:
    file.parent.mkdir()
    file.with_name("source.json.new").write_bytes(b'{"a": [1, 2' + b" " * 100)
    raw_inputs.write_stamps(file, ONE)
    assert raw_inputs.read_stamps(file) == ONE
    assert list(file.parent.iterdir()) == [file]


def test_notes_that_another_process_writes_are_left_to_it(file: Path) -> None:
    raw_inputs.write_stamps(file, ONE)
    new = file.with_name("source.json.new")
    with new.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("half")
        other.flush()
        raw_inputs.write_stamps(file, TWO)
        assert new.read_text() == "half"
    assert raw_inputs.read_stamps(file) == ONE


def test_notes_that_were_renamed_meanwhile_are_left(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def late(target: int, kind: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        raw_inputs.write_stamps(file, ONE)  # by another process: it renames what is opened here
        file.with_name("source.json.new").touch()
        lock(target, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    raw_inputs.write_stamps(file, TWO)
    assert raw_inputs.read_stamps(file) == ONE


def test_a_failed_write_leaves_the_notes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError("no")

    raw_inputs.write_stamps(file, ONE)
    monkeypatch.setattr(Path, "replace", refuse)
    raw_inputs.write_stamps(file, TWO)
    assert raw_inputs.read_stamps(file) == ONE
    assert list(file.parent.iterdir()) == [file]
