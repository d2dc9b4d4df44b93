"""When a drop has arrived, and when it has not."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.inbox import FOLDER, TOML, Arrival, Look, Shape, State, look, present_drops
from gristmill.untrusted.files import LinkRule
from tests.toy_inbox import asked


class Inbox:
    """An inbox that is looked at as the sensor does: state goes through the cursor each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cursor: str | None = None
        self.refusing: str | None = None

    def look(self, most: int = 20, seconds: float = 60.0) -> Look:
        state = State.read(self.cursor)
        found = look(self.folder, state, asked(lambda _: self.refusing), most, seconds)
        self.cursor = state.write()
        return found

    def arrivals(self) -> list[str]:
        return [arrival.key for arrival in self.look().arrivals]

    def settled(self, key: str) -> Arrival:
        """A drop arrives, and two looks see it."""
        self.drop(key)
        self.look()
        return self.look().arrivals[0]

    def drop(self, key: str, files: int = 2, text: str = "grist") -> Path:
        folder = self.folder / key
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(files):
            (folder / f"{number:05}.txt").write_text(text)
        return folder


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "drops")


def test_a_drop_settles_on_the_second_equal_look_and_only_once(inbox):
    inbox.drop("one")
    assert inbox.arrivals() == []
    assert inbox.arrivals() == ["one"]
    assert inbox.arrivals() == []


def test_an_inbox_that_does_not_exist_is_empty(inbox):
    assert inbox.look() == Look()


def test_a_slow_writer_is_waited_for(inbox):
    folder = inbox.drop("slow", files=1)
    for step in range(6):
        with (folder / "00000.txt").open("a") as file:
            file.write(f"line {step}\n")
        assert inbox.look().arriving == ["slow"]
    assert inbox.arrivals() == ["slow"]


def test_a_growing_number_of_files_is_waited_for(inbox):
    for count in range(1, 5):
        inbox.drop("more", files=count)
        assert inbox.arrivals() == []
    assert inbox.arrivals() == ["more"]


@pytest.mark.parametrize("name", ["game.jsonl.gz.part", "x.tmp", "y.crdownload"])
def test_a_file_that_a_tool_marks_as_unfinished_holds_the_drop_back(inbox, name):
    folder = inbox.drop("copying")
    (folder / name).write_text("half")
    assert [inbox.arrivals() for _ in range(3)] == [[], [], []]
    (folder / name).unlink()
    assert [inbox.arrivals() for _ in range(3)] == [[], ["copying"], []]


def test_a_replaced_drop_arrives_again_with_another_run_key(inbox):
    first = inbox.settled("d6")
    inbox.drop("d6", text="other")
    assert inbox.arrivals() == []
    second = inbox.look().arrivals[0]
    assert (first.key, second.key) == ("d6", "d6")
    assert first.signature != second.signature
    assert first.run_key != second.run_key


def test_same_size_and_another_time_is_a_replaced_drop(inbox):
    folder = inbox.drop("d6")
    inbox.look(), inbox.look()
    os.utime(folder / "00000.txt", ns=(1, 1))
    assert [inbox.arrivals(), inbox.arrivals()] == [[], ["d6"]]


def test_a_drop_that_goes_and_comes_back_unchanged_gets_a_run_of_its_own(inbox, tmp_path):
    first = inbox.settled("d6")
    shutil.move(inbox.folder / "d6", tmp_path / "away")
    assert inbox.arrivals() == []
    time.sleep(0.002)
    shutil.move(tmp_path / "away", inbox.folder / "d6")
    inbox.look()
    second = inbox.look().arrivals[0]
    assert first.signature == second.signature
    assert first.run_key != second.run_key  # Dagster would drop a run key it has seen


def test_a_look_whose_cursor_was_lost_asks_for_the_same_run(inbox):
    inbox.drop("d6")
    inbox.look()
    before = inbox.cursor
    first = inbox.look().arrivals[0]
    inbox.cursor = before  # the daemon died before it stored the new cursor
    assert inbox.look().arrivals[0].run_key == first.run_key


@pytest.mark.parametrize("name", ["a b", "a..b", "ü", "a,b", "a|b", "x" * 101, "a."])
def test_a_name_that_cannot_be_a_key_is_refused_with_the_reason(inbox, name):
    inbox.drop(name)
    first, second = inbox.look().refusals[0], inbox.look().refusals[0]
    assert "the name" in first.reason
    assert (first.is_new, second.is_new) == (True, False)


def test_a_file_in_the_inbox_is_refused(inbox):
    inbox.folder.mkdir()
    (inbox.folder / "d6.tar").write_text("")
    assert "a drop is a folder" in inbox.look().refusals[0].reason


def test_a_refused_drop_arrives_when_it_is_repaired(inbox):
    inbox.refusing = "no *.meta.json in it"
    inbox.drop("d6")
    inbox.look()
    refusal = inbox.look().refusals[0]
    assert (refusal.key, refusal.reason) == ("d6", "no *.meta.json in it")
    inbox.refusing = None
    assert inbox.arrivals() == ["d6"]


def test_arrivals_are_bounded_and_none_is_forgotten(inbox):
    names = [f"d{number:02}" for number in range(10)]
    for name in names:
        inbox.drop(name, files=1)
    inbox.look(most=3)
    seen: list[str] = []
    for _ in range(12):
        found = inbox.look(most=3)
        assert len(found.arrivals) <= 3
        seen += [arrival.key for arrival in found.arrivals]
    assert sorted(seen) == names


def test_a_look_out_of_time_goes_on_where_it_stopped(inbox):
    names = [f"d{number}" for number in range(4)]
    for name in names:
        inbox.drop(name, files=1)
    seen: list[str] = []
    for _ in range(30):
        # No time at all: nothing is looked at, and the place is kept.
        assert inbox.look(seconds=-1.0).arrivals == []
        seen += [arrival.key for arrival in inbox.look(most=1).arrivals]
    assert sorted(seen) == names


def test_thousands_of_files_make_a_small_cursor(inbox):
    inbox.drop("big", files=2_000, text="")
    inbox.look()
    assert len(inbox.cursor or "") < 200
    arrival = inbox.look().arrivals[0]
    assert arrival.files == 2_000
    assert len(inbox.cursor or "") < 200


@pytest.mark.slow
def test_ten_thousand_drops_settle_in_bounded_looks(inbox):
    for number in range(10_000):
        folder = inbox.folder / f"d{number:05}"
        folder.mkdir(parents=True)
        (folder / "f").touch()
    seen: set[str] = set()
    for _ in range(4):
        seen.update(arrival.key for arrival in inbox.look(most=5_000).arrivals)
    assert len(seen) == 10_000
    assert len(inbox.cursor or "") < 40 * 10_000


def test_a_drop_that_cannot_be_read_does_not_hold_up_the_others(inbox):
    inbox.drop("a_good")
    inbox.drop("z_good")
    (inbox.folder / "m_loop").symlink_to(inbox.folder / "m_loop")
    assert inbox.look().arriving == ["a_good", "z_good"]
    found = inbox.look()
    assert [arrival.key for arrival in found.arrivals] == ["a_good", "z_good"]
    (refusal,) = found.refusals
    assert refusal.key == "m_loop"
    assert "is a link" in refusal.reason
    at_once = present_drops(inbox.folder, asked())
    assert [arrival.key for arrival in at_once.arrivals] == ["a_good", "z_good"]
    assert [item.key for item in at_once.refusals] == ["m_loop"]


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_an_entry_that_is_no_file_or_folder_is_no_drop(tmp_path, kind):
    (tmp_path / "folder").mkdir()
    for ending, shape, good in (("", FOLDER, "good"), (".toml", TOML, "good.toml")):
        inbox = tmp_path / f"inbox{ending}"
        inbox.mkdir()
        path = inbox / f"bad{ending}"
        if kind == "link":
            path.symlink_to(tmp_path / "folder")
        elif kind == "pipe":
            os.mkfifo(path)
        elif os.geteuid() == 0:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        else:
            pytest.skip("only root can make devices")
        (inbox / good).mkdir() if shape is FOLDER else None
        (inbox / good / "file" if shape is FOLDER else inbox / good).write_text("x = 1")
        found = present_drops(inbox, asked(), shape)
        assert [arrival.key for arrival in found.arrivals] == ["good"]
        assert found.refusals[0].reason.startswith(f"is a {kind}")


def test_links_are_followed_into_stated_folders_alone(tmp_path):
    inbox, store = tmp_path / "drops", tmp_path / "store"
    for folder in (inbox / "files", store / "whole", tmp_path / "other"):
        folder.mkdir(parents=True)
    (store / "blob").write_text("blob")
    (store / "whole" / "a").write_text("a")
    (inbox / "files" / "a").symlink_to(store / "blob")
    (inbox / "whole").symlink_to(store / "whole")
    (inbox / "outside").symlink_to(tmp_path / "other")
    links = LinkRule(True, (str(store),))
    found = present_drops(inbox, asked(links=links))
    assert [(arrival.key, arrival.bytes) for arrival in found.arrivals] == [
        ("files", 4),
        ("whole", 1),
    ]
    (refusal,) = found.refusals
    assert "outside" in refusal.key
    assert "in none of the folders" in refusal.reason
    state = State()
    look(inbox, state, asked(links=links), 20, 60.0)
    seen = look(inbox, state, asked(links=links), 20, 60.0)
    assert [arrival.key for arrival in seen.arrivals] == ["files", "whole"]
    (store / "blob").write_text("another")
    assert look(inbox, state, asked(links=links), 20, 60.0).arriving == ["files"]


def test_other_names_of_a_file_are_noted_with_the_arrival(inbox, tmp_path):
    folder = inbox.drop("d6")
    (tmp_path / "copy").hardlink_to(folder / "00001.txt")
    inbox.look()
    (arrival,) = inbox.look().arrivals
    assert arrival.notes == (
        "00001.txt: other names (hard links) of the same files are outside of the drop",
    )
    assert present_drops(inbox.folder, asked()).arrivals[0].notes == arrival.notes


ERRORS = [
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    OverflowError("too large"),
    KeyError("column"),
    BadInput("drops/bad/x", "a rule"),
    TimeoutError("late"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_a_family_raises_for_one_drop_the_others_arrive(inbox, error):
    for name in ("a_good", "bad", "z_good"):
        inbox.drop(name)

    def refuse(path: Path) -> str | None:
        if path.name == "bad":
            raise error
        return None

    state = State()
    look(inbox.folder, state, asked(refuse), 20, 60.0)
    for found in (
        look(inbox.folder, state, asked(refuse), 20, 60.0),
        present_drops(inbox.folder, asked(refuse)),
    ):
        assert [arrival.key for arrival in found.arrivals] == ["a_good", "z_good"]
        (refusal,) = found.refusals
        assert refusal.key == "bad"
        if isinstance(error, BadInput):
            assert (refusal.reason, refusal.trace) == ("drops/bad/x: a rule", "")
        else:
            assert refusal.reason.startswith(f"cannot be read: {type(error).__name__}")
            assert "in refuse" in refusal.trace
        assert refusal.is_new
    assert not look(inbox.folder, state, asked(refuse), 20, 60.0).refusals[0].is_new


def test_loose_files_share_one_entry_and_only_new_ones_are_new(inbox):
    inbox.drop("d6")
    for number in range(1_000):
        (inbox.folder / f"{number:04}.jsonl.gz").touch()
    first = inbox.look()
    assert [item.is_new for item in first.refusals] == [True] * 1_000
    assert len(inbox.cursor or "") < 200
    second = inbox.look()
    assert [arrival.key for arrival in second.arrivals] == ["d6"]
    assert not any(item.is_new for item in second.refusals)
    (inbox.folder / "0000.jsonl.gz").unlink()
    time.sleep(0.02)  # times in file systems have the resolution of the clock's ticks
    (inbox.folder / "0500a.jsonl.gz").touch()
    third = inbox.look()
    assert [item.key for item in third.refusals if item.is_new] == ["0500a.jsonl.gz"]
    assert len(third.refusals) == 1_000


def test_a_loose_entry_does_not_hold_up_the_drop_of_its_key(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a.toml").write_text("x = 1")
    state = State()
    look(tmp_path, state, asked(), 20, 60.0, TOML)
    found = look(tmp_path, state, asked(), 20, 60.0, TOML)
    assert [arrival.path.name for arrival in found.arrivals] == ["a.toml"]
    assert [refusal.key for refusal in found.refusals] == ["a"]
    assert [arrival.key for arrival in present_drops(tmp_path, asked(), TOML).arrivals] == ["a"]


def test_many_files_of_one_key_make_a_small_cursor_and_reason(tmp_path):
    for number in range(2_000):
        (tmp_path / f"{number}_one.txt").touch()
    state = State()
    shape = Shape((".txt",), lambda _: "one")
    (refusal,) = look(tmp_path, state, asked(), 20, 60.0, shape).refusals
    assert "and 1,990 more are the same partition" in refusal.reason
    assert len(state.write()) < 200
    assert not look(tmp_path, state, asked(), 20, 60.0, shape).refusals[0].is_new


def test_what_is_gone_is_forgotten_in_every_respect(inbox):
    (inbox.drop("waits") / "x.part").write_text("half")
    inbox.drop("settles")
    inbox.look(), inbox.look()
    inbox.refusing = "no game in it"
    inbox.drop("refused")
    inbox.look(), inbox.look()
    before = State.read(inbox.cursor)
    assert (set(before.waiting), set(before.settled), set(before.refused)) == (
        {"waits", "refused"},
        {"settles"},
        {"refused"},
    )
    for key in ("waits", "settles", "refused"):
        shutil.rmtree(inbox.folder / key)
    inbox.look()
    after = State.read(inbox.cursor)
    assert (after.waiting, after.settled, after.refused) == ({}, {}, {})
    inbox.drop("refused")
    inbox.look()
    (refusal,) = inbox.look().refusals
    assert refusal.is_new  # it is another drop with the same name
