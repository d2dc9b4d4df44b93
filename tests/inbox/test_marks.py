"""Marks: a drop says itself whether it is complete; a clock decides about one that does not."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.inbox import TOML, Look, Settling, Shape, State, look, present_drops
from gristmill.inbox.listing import Survey, survey
from gristmill.untrusted.files import LinkRule
from tests.toy_inbox import asked

MINUTE = Settling(60.0)


class Clock:
    """An inbox with looks every 15 seconds of a clock that the test moves."""

    def __init__(
        self, folder: Path, settling: Settling = MINUTE, shape: Shape | None = None
    ) -> None:
        self.folder, self.settling, self.shape = folder, settling, shape or Shape()
        self.state, self.passed = State(), 0.0

    def now_ns(self) -> int:
        return time.time_ns() + int(self.passed * 1e9)

    def look(self, after: float = 15.0) -> Look:
        self.passed += after
        self.state = State.read(self.state.write())
        return look(
            self.folder,
            self.state,
            asked(settling=self.settling),
            20,
            60.0,
            self.shape,
            now_ns=self.now_ns,
        )

    def taken(self, after: float = 15.0) -> list[str]:
        return [arrival.key for arrival in self.look(after).arrivals]


def games(folder: Path, numbers: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (folder / f"{number:02}.jsonl.gz").write_text("game")


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    return tmp_path / "drops/d6"


def test_a_copy_that_stalls_for_fifty_seconds_is_not_taken_before_it_is_whole(drop, monkeypatch):
    inbox, changed = Clock(drop.parent), [0]

    def surveyed(path: Path, links: LinkRule) -> Survey:
        """Files change at the time of the test's clock, which no call can set."""
        seen = survey(path, links)
        return replace(seen, marks=replace(seen.marks, newest_ns=changed[0]))

    monkeypatch.setattr("gristmill.inbox.judging.survey", surveyed)
    for part in (range(7), range(7, 20)):
        games(drop, part)
        changed[0] = inbox.now_ns()
        assert [inbox.taken(after=10) for _ in range(5)] == [[]] * 5
    (arrival,) = inbox.look(after=10).arrivals
    assert arrival.files == 20


def test_a_drop_that_says_that_it_is_done_is_taken_at_the_second_look(drop):
    inbox = Clock(drop.parent)
    games(drop, range(3))
    (drop / ".done").touch()
    assert [inbox.taken(), inbox.taken()] == [[], ["d6"]]


def test_an_empty_done_that_was_copied_before_the_files_does_not_count(drop):
    inbox = Clock(drop.parent)
    drop.mkdir(parents=True)
    (drop / ".done").touch()
    time.sleep(0.02)
    games(drop, range(3))
    assert [inbox.taken(), inbox.taken()] == [[], []]
    needing = Clock(drop.parent, Settling(0.0, require_done=True))
    needing.look()
    (standing,) = needing.look().standing
    assert standing.reason.startswith("02.jsonl.gz changed after .done came: `touch` .done")
    (drop / ".done").touch()
    needing.look()
    assert needing.taken() == ["d6"]


def test_a_folder_that_is_moved_in_as_a_whole_does_not_wait_for_its_age(drop, tmp_path):
    games(tmp_path / "made", range(3))
    drop.parent.mkdir()
    shutil.move(tmp_path / "made", drop)
    inbox = Clock(drop.parent)
    assert [inbox.taken(after=100), inbox.taken()] == [[], ["d6"]]


def test_times_in_the_future_do_not_make_a_drop_old(drop):
    inbox = Clock(drop.parent)
    games(drop, range(3))
    os.utime(drop / "00.jsonl.gz", ns=(1, 1))
    assert inbox.look(after=-3_600).arriving == ["d6"]
    assert [inbox.taken() for _ in range(4)] == [[], [], [], ["d6"]]


def test_an_empty_folder_is_refused_after_the_seconds_and_taken_when_it_has_files(drop):
    inbox = Clock(drop.parent)
    drop.mkdir(parents=True)
    assert [inbox.look().arriving for _ in range(4)] == [["d6"]] * 4
    (refusal,) = inbox.look().refusals
    assert refusal.is_new
    assert refusal.reason == (
        "the folder holds no file: copy the files of the drop into it, or remove it"
    )
    assert not inbox.look().refusals[0].is_new
    games(drop, range(1))
    assert [inbox.taken(), inbox.taken()] == [[], ["d6"]]


def test_marks_are_no_part_of_the_contents(drop):
    games(drop, range(2))
    bare = survey(drop)
    (drop / ".done").write_text("2")
    (drop / "SHA256SUMS").write_text("x")
    marked = survey(drop)
    assert (marked.signature, marked.files, marked.bytes) == (bare.signature, 2, 8)
    assert bare.form == bare.signature != marked.form
    (drop / "inner").mkdir()
    (drop / "inner/SHA256SUMS").write_text("x")
    assert survey(drop).files == 3


def test_marks_that_come_later_do_not_build_a_drop_again(drop):
    inbox = Clock(drop.parent, Settling(0.0))
    games(drop, range(2))
    inbox.look()
    assert inbox.taken() == ["d6"]
    (drop / "SHA256SUMS").write_text("whatever")
    assert [inbox.look(), inbox.look()] == [Look(), Look()]


def test_a_file_has_its_marks_beside_it(tmp_path):
    inbox = Clock(tmp_path, Settling(0.0), TOML)
    (tmp_path / "p.toml.incomplete").touch()
    (standing,) = inbox.look().standing
    assert (standing.key, standing.reason) == (
        "p.toml.incomplete",
        "is the mark of p.toml, which is not there",
    )
    (tmp_path / "p.toml").write_text("x = 1")
    for _ in range(3):
        (standing,) = inbox.look().standing
        assert (standing.key, standing.state) == ("p", "arriving")
        assert standing.reason.startswith("p.toml.incomplete says")
    (tmp_path / "p.toml.incomplete").unlink()
    (tmp_path / "p.toml.done").write_text("5")
    inbox.look()
    (arrival,) = inbox.look().arrivals
    assert (arrival.files, arrival.bytes) == (1, 5)
    assert inbox.look().refusals == []


def test_a_list_that_is_a_link_is_refused(drop, tmp_path):
    games(drop, range(2))
    (drop / "SHA256SUMS").symlink_to("/etc/passwd")
    (refusal,) = present_drops(drop.parent, asked()).refusals
    assert refusal.reason.startswith(f"{drop / 'SHA256SUMS'}: is a link")


def test_since_is_the_first_look_that_saw_the_drop(drop):
    inbox = Clock(drop.parent)
    games(drop, range(1))
    first = inbox.look().standing[0].since
    games(drop, range(2))
    (second,) = inbox.look().standing
    assert second.since == first


@pytest.mark.parametrize(
    ("make", "remove"),
    [
        (Path.touch, Path.unlink),
        (Path.mkdir, Path.rmdir),
        (lambda mark: mark.symlink_to("nowhere"), Path.unlink),
    ],
)
def test_a_copy_with_a_mark_of_any_kind_waits_whatever_its_age(drop, make, remove):
    inbox = Clock(drop.parent, Settling(0.0))
    games(drop, range(7))
    make(drop / ".incomplete")
    for _ in range(3):
        (standing,) = inbox.look(after=86_400).standing
        assert (standing.key, standing.state) == ("d6", "arriving")
        assert standing.reason == (
            ".incomplete says that it is not complete: remove that file when it is"
        )
    assert present_drops(drop.parent, asked()).standing[0].reason == standing.reason
    games(drop, range(7, 20))
    remove(drop / ".incomplete")
    assert inbox.taken() == []
    assert inbox.look().arrivals[0].files == 20


def test_a_mark_beside_a_file_may_be_a_link_to_nothing(tmp_path):
    inbox = Clock(tmp_path, Settling(0.0), TOML)
    (tmp_path / "p.toml").write_text("x = 1")
    (tmp_path / "p.toml.incomplete").symlink_to("nowhere")
    for _ in range(3):
        (standing,) = inbox.look().standing
        assert (standing.key, standing.state) == ("p", "arriving")


@pytest.mark.parametrize("mark", ["p.toml.sha256", "p.toml.done"])
def test_a_list_beside_a_file_that_is_a_link_is_refused(tmp_path, mark):
    (tmp_path / "p.toml").write_text("x = 1")
    (tmp_path / mark).symlink_to("/etc/hostname")
    (refusal,) = present_drops(tmp_path, asked(), TOML).refusals
    assert refusal.reason.startswith(f"{tmp_path / mark}: is a link")


def test_a_number_of_files_is_waited_for_while_it_may_still_be_reached(drop):
    inbox = Clock(drop.parent)
    games(drop, range(2))
    (drop / ".done").write_text("3")
    inbox.look(after=1)
    (standing,) = inbox.look(after=1).standing
    assert (standing.state, "says 3 files, but there are 2" in standing.reason) == (
        "arriving",
        True,
    )
    assert len(inbox.look(after=100).refusals) == 1
    (drop / ".done").write_text("1")  # more files cannot make this true
    inbox.look(after=1)
    assert "says 1 files" in inbox.look(after=1).refusals[0].reason
    (drop / ".done").write_text("2")
    inbox.look(after=1)
    assert inbox.taken(after=1) == ["d6"]
