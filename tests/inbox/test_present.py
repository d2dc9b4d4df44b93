"""The drops that are in an inbox now, each in its state."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gristmill.inbox import (
    ARRIVING,
    READY,
    REFUSED,
    UNREAD,
    WAITS,
    Look,
    Shape,
    State,
    look,
    present_drops,
)
from gristmill.inbox.account import Unread, Waits
from gristmill.inbox.present import judged_now
from tests.toy_inbox import asked


def land(inbox: Path, *keys: str) -> None:
    for key in keys:
        (inbox / key).mkdir(parents=True)
        (inbox / key / "grain").write_text("oats")


def refuse(drop: Path) -> str | None:
    if drop.name == "waits":
        raise Waits("waits for another")
    if drop.name == "unread":
        raise Unread("nothing reads it")
    if drop.name == "wrong":
        raise KeyError(drop.name)
    return "no good" if drop.name == "refused" else None


def states(found: Look) -> dict[str, str]:
    ready = {arrival.key: READY for arrival in found.arrivals}
    return ready | {drop.key: drop.state for drop in found.out_of_order}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "drops"
    land(folder, "ready", "waits", "unread", "refused", "wrong", "arriving", "not a key", ".hidden")
    (folder / "arriving/.incomplete").touch()
    return folder


EXPECTED = {
    "ready": READY,
    "waits": WAITS,
    "unread": UNREAD,
    "refused": REFUSED,
    "wrong": REFUSED,
    "arriving": ARRIVING,
    "not a key": REFUSED,
}


def test_each_drop_is_in_one_state_and_a_person_and_a_look_say_the_same(inbox):
    found = present_drops(inbox, asked(refuse))
    assert states(found) == EXPECTED
    assert found.present == {key for key in EXPECTED if key != "not a key"}
    assert found.arriving == ["arriving"]
    state = State()
    look(inbox, state, asked(refuse), 20, 60.0)
    seen = look(inbox, state, asked(refuse), 20, 60.0)
    assert states(seen) == EXPECTED
    assert {drop.key: drop.reason for drop in seen.out_of_order} == {
        drop.key: drop.reason for drop in found.out_of_order
    }
    assert [each.signature for each in seen.arrivals] == [each.signature for each in found.arrivals]


def test_a_drop_that_waits_is_taken_when_that_is_there_and_no_look_forgets_it(inbox):
    state = State()
    for _ in range(3):
        seen = look(inbox, state, asked(refuse), 20, 60.0)
        assert "waits" in states(seen)
    again = look(inbox, state, asked(), 20, 60.0)
    assert {"waits", "unread"} <= {arrival.key for arrival in again.arrivals}


def test_a_reason_has_the_time_of_the_newest_file_and_an_unexpected_one_its_trace(inbox):
    by_key = {drop.key: drop for drop in present_drops(inbox, asked(refuse)).out_of_order}
    for key in ("waits", "refused", "arriving"):
        assert abs(by_key[key].since / 1_000 - time.time()) < 60
    traces = {each.key: each.trace for each in present_drops(inbox, asked(refuse)).refusals}
    assert "in refuse" in traces["wrong"]
    assert traces["refused"] == ""


def test_two_drops_of_one_key_and_what_is_no_drop_are_named(tmp_path):
    shape = Shape((".txt",), lambda name: name[0])
    for name in ("a_one.txt", "a_two.txt", "b.txt", "c.txt.done", "other.toml"):
        (tmp_path / name).touch()
    found = present_drops(tmp_path, asked(), shape)
    assert states(found) == {
        "a": REFUSED,
        "b": READY,
        "c.txt.done": ARRIVING,
        "other.toml": REFUSED,
    }
    assert "are the same partition" in found.refusals[-1].reason


def test_an_inbox_that_is_not_there_has_no_drops(tmp_path):
    assert present_drops(tmp_path / "nowhere", asked()) == Look()


def test_one_drop_is_judged_with_its_files_and_without_where_they_cannot_be_listed(inbox):
    found, seen = judged_now(inbox / "ready", asked(refuse))
    assert (found.state, seen is not None and seen.files) == (READY, 1)
    found, seen = judged_now(inbox / "wrong", asked(refuse))
    assert (found.state, seen is not None) == (REFUSED, True)
    (inbox / "loop").symlink_to(inbox / "loop")
    found, seen = judged_now(inbox / "loop", asked(refuse))
    assert (found.state, seen) == (REFUSED, None)
    assert "is a link" in found.reason
