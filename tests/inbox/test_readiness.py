"""Which state a drop is in, and why: judged by a person and by looks."""

import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.inbox import (
    ARRIVING,
    AT_ONCE,
    FOLDER,
    READY,
    REFUSED,
    TOML,
    UNREAD,
    Arrival,
    Asked,
    Judgement,
    Look,
    Settling,
    Shape,
    Standing,
    State,
    listing,
    look,
    present_drops,
)
from gristmill.inbox.listing import Loose, Survey, Unread, Waits
from gristmill.inbox.readiness import Waiting, all_surveyed, each_within, judged, judged_now, within
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.toy_inbox import Refuse, asked, takes_all

FILE = Path("drops/macroxue/d6")
MINUTE = Settling(60.0)


class Sensor:
    """Looks at an inbox every 15 seconds of a clock that the test moves, by way of a cursor."""

    def __init__(self, folder: Path, settling: Settling = AT_ONCE, shape: Shape = FOLDER) -> None:
        self.folder, self.settling, self.shape = folder, settling, shape
        self.cursor: str | None = None
        self.passed = 0.0
        self.refuse: Refuse = takes_all

    def now_ns(self) -> int:
        return time.time_ns() + int(self.passed * 1e9)

    def look(self, after: float = 15.0, most: int = 20, seconds: float = 60.0) -> Look:
        self.passed += after
        state = State.read(self.cursor)
        decides = asked(self.refuse, settling=self.settling)
        found = look(self.folder, state, decides, most, seconds, self.shape, self.now_ns)
        self.cursor = state.write()
        return found

    def taken(self, after: float = 15.0, most: int = 20) -> list[str]:
        return [arrival.key for arrival in self.look(after, most).arrivals]

    def settled(self) -> Arrival:
        """The drop that two looks take."""
        assert self.taken() == []
        (arrival,) = self.look().arrivals
        return arrival


def land(inbox: Path, *keys: str, files: int = 2, text: str = "grist") -> Path:
    """Write drops of some files; returns the last one."""
    for key in keys:
        (inbox / key).mkdir(parents=True, exist_ok=True)
        for number in range(files):
            (inbox / key / f"{number:05}.txt").write_text(text)
    return inbox / keys[-1]


def raising(error: Exception) -> Asked:
    def refuse(_drop: Path) -> str | None:
        raise error

    return asked(refuse)


@pytest.fixture
def sensor(tmp_path: Path) -> Sensor:
    return Sensor(tmp_path / "drops")


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    return land(tmp_path / "drops", "d6", files=1)


# Looks: what settles, and when.


def test_a_drop_settles_on_the_second_equal_look_and_a_change_is_waited_for(sensor):
    assert sensor.look() == Look() == present_drops(sensor.folder, asked())
    land(sensor.folder, "one", files=2_000, text="")
    assert sensor.settled().files == 2_000
    assert sensor.taken() == []
    assert len(sensor.cursor or "") < 200
    for step in range(1, 5):
        drop = land(sensor.folder, "more", files=step)
        assert sensor.look().arriving == ["more"]
        with (drop / "00000.txt").open("a") as file:
            file.write(f"line {step}\n")
        assert sensor.look().arriving == ["more"]
    assert sensor.taken() == ["more"]


@pytest.mark.parametrize("name", ["game.jsonl.gz.part", "x.tmp", "y.crdownload"])
def test_a_file_that_a_tool_marks_as_unfinished_holds_the_drop_back(sensor, name):
    drop = land(sensor.folder, "copying")
    (drop / name).write_text("half")
    assert [sensor.taken() for _ in range(3)] == [[], [], []]
    assert sensor.look(after=86_400).idle[0].reason.startswith(name)
    assert judged_now(drop, asked())[0] == Judgement(READY)  # a person says that it is complete
    (drop / name).unlink()
    assert [sensor.taken() for _ in range(3)] == [[], ["copying"], []]


@pytest.mark.parametrize(
    "change",
    [
        lambda drop: land(drop.parent, drop.name, text="other"),
        lambda drop: os.utime(drop / "00000.txt", ns=(1, 1)),
    ],
)
def test_a_replaced_drop_arrives_again_with_another_run_key(sensor, change):
    drop = land(sensor.folder, "d6")
    first = sensor.settled()
    change(drop)
    second = sensor.settled()
    assert (first.key, second.key) == ("d6", "d6")
    assert first.signature != second.signature
    assert first.run_key != second.run_key


def test_a_drop_that_goes_and_comes_back_unchanged_gets_a_run_of_its_own(sensor, tmp_path):
    drop = land(sensor.folder, "d6")
    first = sensor.settled()
    shutil.move(drop, tmp_path / "away")
    assert sensor.taken() == []
    time.sleep(0.002)
    shutil.move(tmp_path / "away", drop)
    second = sensor.settled()
    assert first.signature == second.signature
    assert first.run_key != second.run_key  # Dagster would drop a run key it has seen


def test_a_look_whose_cursor_was_lost_asks_for_the_same_run(sensor):
    land(sensor.folder, "d6")
    sensor.look()
    before = sensor.cursor
    (first,) = sensor.look().arrivals
    sensor.cursor = before  # the daemon died before it stored the new cursor
    assert sensor.look().arrivals[0].run_key == first.run_key


def test_a_refused_drop_arrives_when_it_is_repaired(sensor):
    sensor.refuse = lambda _: "no *.meta.json in it"
    land(sensor.folder, "d6")
    sensor.look()
    (refusal,) = sensor.look().refusals
    assert (refusal.key, refusal.reason) == ("d6", "no *.meta.json in it")
    sensor.refuse = takes_all
    assert sensor.taken() == ["d6"]


def test_looks_are_bounded_in_drops_and_time_and_forget_none(sensor):
    names = [f"d{number:02}" for number in range(10)]
    land(sensor.folder, *names, files=1)
    seen: list[str] = []
    for _ in range(30):
        # No time at all: nothing is looked at, and the place is kept.
        assert sensor.look(seconds=-1.0).arrivals == []
        found = sensor.look(most=3)
        assert len(found.arrivals) <= 3
        seen += [arrival.key for arrival in found.arrivals]
    assert sorted(seen) == names


@pytest.mark.slow
def test_ten_thousand_drops_settle_in_bounded_looks(sensor):
    land(sensor.folder, *(f"d{number:05}" for number in range(10_000)), files=1)
    seen: set[str] = set()
    for _ in range(4):
        seen.update(sensor.taken(most=5_000))
    assert len(seen) == 10_000
    assert len(sensor.cursor or "") < 40 * 10_000


def test_a_copy_that_stalls_for_fifty_seconds_is_not_taken_before_it_is_whole(drop, monkeypatch):
    sensor, changed = Sensor(drop.parent, MINUTE), [0]

    def surveyed(path: Path, links: LinkRule) -> Survey:
        """Files change at the time of the test's clock, which no call can set."""
        seen = listing.survey(path, links)
        return replace(seen, marks=replace(seen.marks, newest_ns=changed[0]))

    monkeypatch.setattr("gristmill.inbox.readiness.survey", surveyed)
    for files in (7, 20):
        land(drop.parent, drop.name, files=files)
        changed[0] = sensor.now_ns()
        assert [sensor.taken(after=10) for _ in range(5)] == [[]] * 5
    (arrival,) = sensor.look(after=10).arrivals
    assert arrival.files == 20


def test_a_folder_that_is_moved_in_does_not_wait_and_the_future_makes_nothing_old(drop):
    sensor = Sensor(drop.parent, MINUTE)
    assert [sensor.taken(after=100), sensor.taken()] == [[], ["d6"]]
    os.utime(drop / "00000.txt", ns=(1, 1))
    (first,) = sensor.look(after=-3_600).idle
    land(drop.parent, "d6", files=2)
    (second,) = sensor.look(after=1).idle
    assert first.since == second.since  # that of the first look that saw the drop
    assert [sensor.taken() for _ in range(4)] == [[], [], [], ["d6"]]


def test_an_empty_folder_is_refused_after_the_seconds_and_taken_when_it_has_files(sensor):
    sensor.settling = MINUTE
    drop = land(sensor.folder, "d6", files=0)
    assert [sensor.look().arriving for _ in range(4)] == [["d6"]] * 4
    (refusal,) = sensor.look().refusals
    assert refusal.is_new
    assert refusal.reason == (
        "the folder holds no file: copy the files of the drop into it, or remove it"
    )
    assert not sensor.look().refusals[0].is_new
    assert judged_now(drop, raising(AssertionError()))[0].reason == refusal.reason
    land(sensor.folder, "d6")
    assert [sensor.taken(), sensor.taken()] == [[], ["d6"]]


# What is no drop, and what no drop may hold.


@pytest.mark.parametrize("name", ["a b", "a..b", "ü", "a,b", "a|b", "x" * 101, "a."])
def test_a_name_that_cannot_be_a_key_is_refused_with_the_reason(sensor, name):
    land(sensor.folder, name)
    first, second = sensor.look().refusals[0], sensor.look().refusals[0]
    assert "the name" in first.reason
    assert (first.is_new, second.is_new) == (True, False)


def test_a_drop_that_cannot_be_read_does_not_hold_up_the_others(sensor):
    land(sensor.folder, "a_good", "z_good")
    (sensor.folder / "m_loop").symlink_to(sensor.folder / "m_loop")
    assert sensor.look().arriving == ["a_good", "z_good"]
    for found in (sensor.look(), present_drops(sensor.folder, asked())):
        assert [arrival.key for arrival in found.arrivals] == ["a_good", "z_good"]
        (refusal,) = found.refusals
        assert (refusal.key, "is a link" in refusal.reason) == ("m_loop", True)
    found, seen = judged_now(sensor.folder / "m_loop", asked())
    assert (found.state, seen, "is a link" in found.reason) == (REFUSED, None, True)


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
        land(inbox, good) if shape is FOLDER else (inbox / good).write_text("x = 1")
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
    decides = asked(links=LinkRule(True, (str(store),)))
    state = State()
    look(inbox, state, decides, 20, 60.0)
    for found in (present_drops(inbox, decides), look(inbox, state, decides, 20, 60.0)):
        sizes = [(arrival.key, arrival.bytes) for arrival in found.arrivals]
        assert sizes == [("files", 4), ("whole", 1)]
        (refusal,) = found.refusals
        assert refusal.key == "outside" and "in none of the folders" in refusal.reason
    (store / "blob").write_text("another")
    assert look(inbox, state, decides, 20, 60.0).arriving == ["files"]


def test_an_entry_that_no_drop_may_hold_refuses_before_the_family_is_asked(drop):
    (drop / "link").symlink_to("a.gz")
    (drop / "round").symlink_to("round")
    found, _ = judged_now(drop, raising(AssertionError()))
    assert found.state == REFUSED
    assert found.reason.startswith(f"{drop / 'link'}: is a link: a drop may hold")
    assert found.reason.endswith("(and 1 more)")


def test_other_names_of_a_file_are_noted_with_the_arrival(sensor, tmp_path):
    drop = land(sensor.folder, "d6")
    (tmp_path / "copy").hardlink_to(drop / "00001.txt")
    (now,) = present_drops(sensor.folder, asked()).arrivals
    assert sensor.settled().notes == now.notes
    assert now.notes == (
        "00001.txt: other names (hard links) of the same files are outside of the drop",
    )


def test_loose_files_share_one_entry_and_only_new_ones_are_new(sensor):
    land(sensor.folder, "d6")
    for number in range(1_000):
        (sensor.folder / f"{number:04}.jsonl.gz").touch()
    first = sensor.look()
    assert [item.is_new for item in first.refusals] == [True] * 1_000
    assert "a drop is a folder" in first.refusals[0].reason
    assert len(sensor.cursor or "") < 200
    second = sensor.look()
    assert [arrival.key for arrival in second.arrivals] == ["d6"]
    assert not any(item.is_new for item in second.refusals)
    (sensor.folder / "0000.jsonl.gz").unlink()
    time.sleep(0.02)  # times in file systems have the resolution of the clock's ticks
    (sensor.folder / "0500a.jsonl.gz").touch()
    third = sensor.look()
    assert [item.key for item in third.refusals if item.is_new] == ["0500a.jsonl.gz"]
    assert len(third.refusals) == 1_000


def test_a_loose_entry_does_not_hold_up_the_drop_of_its_key(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a.toml").write_text("x = 1")
    sensor = Sensor(tmp_path, shape=TOML)
    sensor.look()
    for found in (sensor.look(), present_drops(tmp_path, asked(), TOML)):
        assert [arrival.path.name for arrival in found.arrivals] == ["a.toml"]
        assert [refusal.key for refusal in found.refusals] == ["a"]


def test_many_files_of_one_key_make_a_small_cursor_and_reason(tmp_path):
    for number in range(2_000):
        (tmp_path / f"{number}_one.txt").touch()
    sensor = Sensor(tmp_path, shape=Shape((".txt",), lambda _: "one"))
    (refusal,) = sensor.look().refusals
    assert "and 1,990 more are the same partition" in refusal.reason
    assert len(sensor.cursor or "") < 200
    assert not sensor.look().refusals[0].is_new


def test_what_is_gone_is_forgotten_in_every_respect(sensor):
    (land(sensor.folder, "half") / "x.part").write_text("half")
    land(sensor.folder, "settles")
    sensor.look(), sensor.look()
    sensor.refuse = lambda _: "no game in it"
    land(sensor.folder, "refused")
    sensor.look(), sensor.look()
    before = State.read(sensor.cursor)
    assert (set(before.waiting), set(before.settled), set(before.refused)) == (
        {"half", "refused"},
        {"settles"},
        {"refused"},
    )
    for key in ("half", "settles", "refused"):
        shutil.rmtree(sensor.folder / key)
    sensor.look()
    assert State.read(sensor.cursor) == State()
    land(sensor.folder, "refused")
    sensor.look()
    (refusal,) = sensor.look().refusals
    assert refusal.is_new  # it is another drop with the same name


# What a family says, by a person and by a look.


def refuse(drop: Path) -> str | None:
    if drop.name == "waits":
        raise Waits("waits for another")
    if drop.name == "unread":
        raise Unread("nothing reads it")
    if drop.name == "wrong":
        raise KeyError(drop.name)
    return "no good" if drop.name == "refused" else None


EXPECTED = {
    "ready": (READY, ""),
    "waits": (READY, "waits for another"),
    "unread": (UNREAD, "nothing reads it"),
    "refused": (REFUSED, "no good"),
    "wrong": (REFUSED, "cannot be read: KeyError: 'wrong'"),
    "arriving": (ARRIVING, ".incomplete says that it is not complete: remove that file when it is"),
    "not a key": (REFUSED, "the name 'not a key'"),
}


def states(found: Look) -> dict[str, tuple[str, str]]:
    ready = {arrival.key: (READY, "") for arrival in found.arrivals}
    return ready | {drop.key: (drop.state, drop.reason) for drop in found.out_of_order}


@pytest.fixture
def several(sensor: Sensor) -> Sensor:
    """An inbox with a drop in each state."""
    land(sensor.folder, *EXPECTED, ".hidden")
    (sensor.folder / "arriving/.incomplete").touch()
    sensor.refuse = refuse
    return sensor


def test_each_drop_is_in_one_of_four_states_and_a_person_and_a_look_say_the_same(several):
    found = present_drops(several.folder, asked(refuse))
    several.look()
    seen = several.look()
    assert states(found).keys() == EXPECTED.keys()
    for key, (state, reason) in states(found).items():
        assert (state, reason[: len(EXPECTED[key][1])]) == EXPECTED[key]
        assert bool(reason) == bool(EXPECTED[key][1])
    assert states(seen) == states(found)
    assert [each.state for each in found.out_of_order[:3]] == [REFUSED] * 3
    assert found.present == seen.present == EXPECTED.keys() - {"not a key"}
    assert found.arriving == ["arriving"]
    assert [each.signature for each in seen.arrivals] == [each.signature for each in found.arrivals]
    by_key = {drop.key: drop for drop in found.out_of_order}
    for key in ("waits", "refused", "arriving"):
        assert abs(by_key[key].since / 1_000 - time.time()) < 60
    assert "in refuse" in by_key["wrong"].trace and not by_key["refused"].trace


def test_a_drop_whose_partitions_wait_is_taken_when_they_do_not_and_no_look_forgets_it(several):
    for _ in range(3):
        assert "waits" in states(several.look())
    several.refuse = takes_all
    assert {"waits", "unread"} <= set(several.taken())


def test_two_drops_of_one_key_and_what_is_no_drop_are_named(tmp_path):
    shape = Shape((".txt",), lambda name: name[0])
    for name in ("a_one.txt", "a_two.txt", "b.txt", "c.txt.done", "other.toml"):
        (tmp_path / name).touch()
    found = present_drops(tmp_path, asked(), shape)
    assert {key: state for key, (state, _) in states(found).items()} == {
        "a": REFUSED,
        "b": READY,
        "c.txt.done": ARRIVING,
        "other.toml": REFUSED,
    }
    assert "are the same partition" in found.refusals[-1].reason


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
def test_whatever_a_family_raises_for_one_drop_the_others_arrive(sensor, error):
    land(sensor.folder, "a_good", "bad", "z_good")

    def refuse(path: Path) -> str | None:
        if path.name == "bad":
            raise error
        return None

    sensor.refuse = refuse
    sensor.look()
    for found in (sensor.look(), present_drops(sensor.folder, asked(refuse))):
        assert [arrival.key for arrival in found.arrivals] == ["a_good", "z_good"]
        (refusal,) = found.refusals
        assert refusal.key == "bad"
        if isinstance(error, BadInput):
            assert (refusal.reason, refusal.trace) == ("drops/bad/x: a rule", "")
        else:
            assert refusal.reason.startswith(f"cannot be read: {type(error).__name__}")
            assert "in refuse" in refusal.trace
        assert refusal.is_new
    assert not sensor.look().refusals[0].is_new


def test_a_file_that_went_is_no_reason_and_what_is_said_is_printable(drop):
    error = FileNotFoundError(2, "gone", "a.gz")
    moved = Judgement(ARRIVING, "its files are being moved")
    assert judged_now(drop, raising(error))[0] == judged(drop, error, asked()) == moved
    found = Look()
    found.add("d6", FILE, None, Judgement(REFUSED, "bad \x1b[31m\ntwo\x07", "a trace"), 7, False)
    found.add_loose("a\n", Loose(2_000_000, "x"))
    assert found.idle == [
        Standing("d6", REFUSED, 7, "bad \ufffd[31m\ntwo\ufffd", False, "a trace"),
        Standing("a\ufffd", REFUSED, 2, "x"),
    ]


def test_a_person_overrules_the_seconds_and_not_the_mark_that_an_inbox_needs(drop):
    sensor = Sensor(drop.parent, MINUTE)
    assert [sensor.look(after=1).arriving for _ in range(2)] == [["d6"]] * 2
    assert "settle_seconds" in sensor.look(after=56).idle[0].reason
    assert sensor.taken(after=3) == ["d6"]
    assert judged_now(drop, asked(settling=MINUTE))[0] == Judgement(READY)
    needing = asked(settling=Settling(0.0, require_done=True))
    found, _ = judged_now(drop, needing)
    assert (found.state, "require_done is true" in found.reason) == (ARRIVING, True)
    (drop / ".done").touch()
    assert judged_now(drop, needing)[0] == Judgement(READY)


def test_files_that_a_list_names_may_still_come_while_the_drop_is_young(drop):
    sensor = Sensor(drop.parent, MINUTE)
    (drop / "SHA256SUMS").write_text(f"{'0' * 64}  00000.txt\n{'1' * 64}  b.gz\n")
    missing = "b.gz is listed and not in the drop"
    (first,), (second,) = sensor.look(after=1).standing, sensor.look(after=1).standing
    assert first.reason.startswith("its files came or changed") and missing in second.reason
    for (found,) in (sensor.look(after=60).refusals, present_drops(drop.parent, asked()).refusals):
        assert missing in found.reason


@pytest.mark.parametrize("error", [None, Waits("x"), Unread("x")])
def test_files_that_are_in_no_list_are_a_note_in_each_state(drop, error):
    (drop / "SHA256SUMS").write_text(f"{'0' * 64}  00000.txt\n")
    (drop / "b.gz").write_text("two")
    found, _ = judged_now(drop, asked() if error is None else raising(error))
    assert found.state == (UNREAD if isinstance(error, Unread) else READY)
    assert found.notes == ("not in SHA256SUMS, so not verified: b.gz",)


# Calls that hang.


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends the calls that hang, at the latest with the test."""
    event = threading.Event()
    yield event
    event.set()


def test_a_family_and_a_disk_that_do_not_answer_are_left_in_time(drop, monkeypatch, release):
    monkeypatch.setattr("gristmill.inbox.readiness.DROP_SECONDS", 0.1)
    late = "takes more than 0.1 seconds to look at"
    found, _ = judged_now(drop, asked(lambda _: str(release.wait(60))))
    assert found.state == REFUSED and late in found.reason

    def survey(_path: Path, _links: LinkRule) -> Survey:
        assert release.wait(60)
        return listing.survey(drop, REFUSE_LINKS)

    monkeypatch.setattr("gristmill.inbox.readiness.survey", survey)
    ((_, error),) = all_surveyed([drop.with_name("other")], REFUSE_LINKS)
    assert late in str(error)
    assert late in judged_now(drop.with_name("third"), asked())[0].reason


def test_a_result_passes_through_and_the_latest_date_is_read():
    assert within(60, FILE, lambda: 42) == 42
    for error in (KeyError("of its own"), TimeoutError("of its own")):
        with pytest.raises(type(error), match="of its own"):
            within(60, FILE, lambda error=error: raising(error).refuse(FILE))
    assert list(each_within(60, [], str)) == []
    waiting = State.read(_with("waiting", {"a": ["s", 253_402_300_799_999]})).waiting
    assert datetime.fromtimestamp(waiting["a"].since / 1000, UTC).year == 9999


def test_a_file_that_hangs_is_named_and_asked_for_once_and_the_others_are_looked_at(release):
    files = [Path(f"hanging/{number}") for number in range(5)]
    calls: list[str] = []

    def look(file: Path) -> str:
        calls.append(file.name)
        if file.name in ("2", "4"):
            release.wait(60)
        if file.name == "1":
            raise KeyError(file.name)
        return file.name

    def rules() -> list[str]:
        found = each_within(1.5, files, look)
        return [answer.rule if isinstance(answer, BadInput) else str(answer) for _, answer in found]

    late = "takes more than 1.5 seconds to look at"
    assert rules() == ["0", "'1'", late, "3", late]
    held = "is still being looked at: its file system does not answer"
    assert rules() == ["0", "'1'", held, "3", held]
    assert (calls.count("2"), calls.count("3")) == (1, 2)
    with pytest.raises(BadInput, match=f"hanging/2: {held}"):
        within(60, files[2], lambda: 7)
    release.set()
    for _ in range(6_000):
        if rules() == ["0", "'1'", "2", "3", "4"]:
            break
        time.sleep(0.01)
    else:
        pytest.fail("the files are never looked at again")


def test_a_reader_that_stops_ends_the_looking():
    looked: list[str] = []

    def look(file: Path) -> str:
        looked.append(file.name)
        time.sleep(0.001)
        return file.name

    answers = each_within(60, [Path(f"many/{number}") for number in range(100_000)], look)
    assert next(answers)[1] == "0"
    answers.close()
    count = -1
    while len(looked) != count < 100_000:
        count = len(looked)
        time.sleep(0.2)
    assert count < 100_000


def test_an_answer_does_not_wait_for_the_look_at_the_next_file(release):
    ended: list[str] = []

    def look(file: Path) -> str:
        release.wait(10 if file.name == "1" else 0.05)
        ended.append(file.name)
        return file.name

    answers = each_within(60, [Path("slow/0"), Path("slow/1")], look)
    assert next(answers)[1] == "0"
    assert ended == ["0"]
    release.set()
    assert next(answers)[1] == "1"


# The cursor.

FULL = State(
    waiting={"a": Waiting("s", 1), "b\udcff": Waiting("t", 2, 1)},
    settled={"c": "u"},
    refused={"d": "v"},
    resume="c",
    asked={"c": ("w", 2)},
    asked_from="e",
    built="x",
)


@pytest.mark.parametrize(
    "state", [State(), FULL, replace(FULL, built=""), replace(FULL, asked={}, asked_from="")]
)
def test_what_was_written_is_read(state):
    assert State.read(state.write()) == state
    assert State.read(None) == State() == State.read("")


OF_0_9 = (
    '{"waiting":{"a":["s",1],"b":["t",2,1]},"settled":{"c":"u"},"refused":{"d":"v"},'
    '"resume":"c","asked":{"c":["w",2]},"asked_from":"e","built":"x"}'
)


def test_a_cursor_of_0_9_is_read_and_nothing_arrives_twice(sensor):
    assert State.read(OF_0_9) == replace(
        FULL, waiting={"a": Waiting("s", 1), "b": FULL.waiting["b\udcff"]}
    )
    land(sensor.folder, "d6")
    signature = sensor.settled().signature
    sensor.cursor = (
        f'{{"waiting":{{}},"settled":{{"d6":"{signature}"}},"refused":{{}},"resume":""}}'
    )
    assert [sensor.look() for _ in range(3)] == [Look()] * 3


def _with(name: str, value: object) -> str:
    return json.dumps(json.loads(FULL.write()) | {name: value})


@pytest.mark.parametrize(
    "cursor",
    [
        *("12345", "null", "[]", '"x"', "{", "yesterday", "[" * 100_000),
        *(
            _with("waiting", {"a": seen})
            for seen in (
                *(["s"], ["s", 1, 2, 3], ["s", "1"], ["s", 1, 2.5], ["s", 1, -1], [1, 1]),
                ["s", 253_402_300_800_000],
            )
        ),
        *(_with("asked", {"c": entry}) for entry in (["w"], ["w", True], [0, 2])),
        *(_with("settled", value) for value in ({"c": 1}, None)),
        *(_with("refused", value) for value in ({"c": None}, 7)),
        *(_with(*each) for each in (("waiting", ["a"]), ("resume", 7), ("asked_from", None))),
        _with("built", {}),
    ],
)
def test_a_text_of_another_form_is_an_empty_state(cursor):
    assert State.read(cursor) == State()
