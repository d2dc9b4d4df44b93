"""Lists that a drop brings: what a look compares with them, without a hash of its own."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gristmill.hashing import sha256_file
from gristmill.inbox import TOML, Look, Shape, State, look, present_drops
from gristmill.inbox.listing import survey
from gristmill.inbox.lists import HashOf, verdict
from tests.toy_inbox import asked


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drops/d6"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.gz").write_text("one")
    (folder / "inner/b.gz").write_text("two")
    return folder


SUMS = f"{digest('one')}  a.gz\n{digest('two')} *./inner/b.gz\n"


def known(drop: Path) -> HashOf:
    """The sums of all files, as where each was hashed before as it is now."""
    return lambda name: sha256_file(drop / name if drop.is_dir() else drop)


def present(drop: Path) -> Look:
    return present_drops(drop.parent, asked(hash_of=known), TOML if drop.suffix else Shape())


def refused(drop: Path) -> str:
    found = present(drop)
    assert found.arrivals == []
    return found.refusals[0].reason


def test_a_drop_that_is_as_listed_is_taken(drop):
    lines = [f"{digest('one').upper()} *a.gz\r\n", f"{digest('one')}  ./a.gz\r\n", "\r\n"]
    lines += [f"{digest('two')} *inner/b.gz\r\n"]  # as other tools write them
    for text in (SUMS + "\r\n", "".join(lines)):
        (drop / "SHA256SUMS").write_bytes(text.encode())
        (arrival,) = present(drop).arrivals
        assert (arrival.files, arrival.notes) == (2, ())
    (drop / "SHA256SUMS").write_text(f"SHA256 (a.gz) = {digest('one').upper()}\n")
    (arrival,) = present(drop).arrivals
    assert arrival.notes == ("not in SHA256SUMS, so not verified: inner/b.gz",)


def test_a_file_with_another_sum_is_refused_with_its_name(drop):
    (drop / "SHA256SUMS").write_text(SUMS)
    (drop / "inner/b.gz").write_text("2wo")
    assert refused(drop) == (
        f"{drop / 'inner/b.gz'}: its sha256 is {digest('2wo')[:12]}…, but SHA256SUMS has "
        f"{digest('two')[:12]}…: copy the file again"
    )


def test_a_recipe_with_another_sum_may_be_one_that_was_changed_here(drop):
    (drop / "own.toml").write_text("a = 1\n")
    (drop / "SHA256SUMS").write_text(f"{SUMS}{digest('a = 0')}  own.toml\n")
    cure = "copy the file again, or take its line out of SHA256SUMS if you changed it here"
    assert refused(drop).endswith(cure)
    (drop / "SHA256SUMS").write_text(SUMS)
    assert present(drop).arrivals


def test_a_listed_file_that_is_not_there_is_refused_with_its_name(drop):
    (drop / "SHA256SUMS").write_text(SUMS + f"{digest('x')}  z\n{digest('y')}  y\n")
    assert refused(drop) == (
        f"{drop / 'SHA256SUMS'}: y is listed and not in the drop (and 1 more): bring it, or take "
        "its line out"
    )


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("hello", "line 1: must be 64 hex digits"),
        (f"{digest('one')} a.gz", "line 1: must be 64 hex digits"),
        (f"{digest('one')[1:]}  a.gz", "line 1: must be 64 hex digits"),
        (f"{digest('one')}  /etc/passwd", "must be a path in the drop"),
        (f"{digest('one')}  ../d6/a.gz", "must be a path in the drop"),
        (f"{digest('one')}  inner//b.gz", "must be a path in the drop"),
        (f"{digest('one')}  a.gz\n{digest('two')}  a.gz", "line 2: 'a.gz' has two sums"),
        ("\n \n", "lists no file"),
        (f"{digest('one')}  SHA256SUMS", "lists no file"),
    ],
)
def test_a_list_that_is_none_is_refused_with_file_line_and_rule(drop, line, rule):
    (drop / "SHA256SUMS").write_text(line)
    reason = refused(drop)
    assert reason.startswith(f"{drop / 'SHA256SUMS'}: ")
    assert rule in reason


def test_names_that_sha256sum_escapes_are_found(drop):
    name = os.fsdecode(b"new\nline\\\xff")
    (drop / name).write_text("three")
    escaped = rb"\%s  new\nline\\" % digest("three").encode() + b"\xff\n"
    (drop / "SHA256SUMS").write_bytes(escaped)
    (arrival,) = present(drop).arrivals
    assert arrival.files == 3
    (drop / name).write_text("four")
    assert "its sha256 is" in refused(drop)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("3", "says 3 files, but there are 2: copy the drop again"),
        ("1", "says 1 files, but there are 2"),
        ("soon", "must be empty or hold the number of files, not 'soon'"),
        ("-2", "must be empty or hold the number of files"),
        ("9" * 40, "has more than 32 bytes"),
    ],
)
def test_another_number_of_files_is_refused(drop, text, rule):
    (drop / ".done").write_text(text)
    assert rule in refused(drop)
    (drop / ".done").write_text(" 2\n")
    assert present(drop).arriving == []
    assert len(present(drop).arrivals) == 1


def test_a_file_is_verified_by_what_is_beside_it(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text("one")
    (tmp_path / "p.toml.sha256").write_text(f"{digest('one')}  p.toml\n")
    assert len(present(file).arrivals) == 1
    (tmp_path / "p.toml.sha256").write_text(f"{digest('two')}  p.toml\n")
    assert "its sha256 is" in refused(file)
    (tmp_path / "p.toml.sha256").write_text(f"{digest('one')}  q.toml\n")
    assert "line 1: names 'q.toml', not p.toml" in refused(file)
    (tmp_path / "p.toml.sha256").unlink()
    (tmp_path / "p.toml.done").write_text("4")
    assert "says 4 bytes, but there are 3" in refused(file)


def test_a_sum_that_nobody_knows_refuses_no_drop(drop):
    (drop / "SHA256SUMS").write_text(SUMS)
    (drop / "inner/b.gz").write_text("2wo")
    assert len(present_drops(drop.parent, asked()).arrivals) == 1
    only_a = asked(hash_of=lambda each: lambda name: known(each)(name) if name == "a.gz" else None)
    assert len(present_drops(drop.parent, only_a).arrivals) == 1
    (drop / "a.gz").write_text("1ne")
    (refusal,) = present_drops(drop.parent, only_a).refusals
    assert refusal.reason.startswith(f"{drop / 'a.gz'}: its sha256 is {digest('1ne')[:12]}…")


def test_a_look_opens_no_file_of_a_drop_but_its_lists(drop, monkeypatch):
    (drop / "SHA256SUMS").write_text(SUMS)
    (drop / ".done").write_text("2")
    opened: list[str] = []
    real = os.open

    def spy(path: str, flags: int, *rest: int, **options: int | None) -> int:
        if not flags & os.O_DIRECTORY:
            opened.append(Path(path).name)
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", spy)
    state = State()
    look(drop.parent, state, asked(), 20, 60.0)
    assert opened == []
    assert len(look(drop.parent, state, asked(), 20, 60.0).arrivals) == 1
    assert sorted(opened) == [".done", "SHA256SUMS"]
    opened.clear()
    assert look(drop.parent, state, asked(), 20, 60.0) == Look()
    assert opened == []


def test_a_number_for_a_file_that_may_still_grow_says_that_it_is_missing(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text("one")
    found = {}
    for number in (2, 3, 4):
        (tmp_path / "p.toml.done").write_text(str(number))
        seen = survey(file)
        said = verdict(file, seen.marks, seen.sizes(file), known(file))
        found[number] = (said.reason is None, said.missing)
    assert found == {2: (False, False), 3: (True, False), 4: (False, True)}
