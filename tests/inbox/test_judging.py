"""One judgement of a drop: which state it is in, and why."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.inbox import (
    ARRIVING,
    READY,
    REFUSED,
    UNREAD,
    WAITS,
    Asked,
    Judgement,
    Refusal,
    Settling,
    Standing,
    listing,
)
from gristmill.inbox.account import Unread, Waits
from gristmill.inbox.judging import all_surveyed, each_within, judged, surveyed, within
from gristmill.inbox.listing import Survey
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.toy_inbox import asked

FILE = Path("drops/macroxue/d6")


MINUTE = Settling(60.0)
SECOND_NS = 1_000_000_000


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drops/d6"
    folder.mkdir(parents=True)
    (folder / "a.gz").write_text("one")
    return folder


def by_person(drop: Path, decides: Asked) -> Judgement:
    return judged(drop, surveyed(drop, REFUSE_LINKS), decides)


def by_look(drop: Path, decides: Asked, age: float, is_new: bool = False) -> Judgement:
    """The judgement of a look that saw the drop as it is since `age` seconds."""
    now = time.time_ns() + int(age * SECOND_NS)
    since = (now - int(age * SECOND_NS)) // 1_000_000
    return judged(drop, surveyed(drop, REFUSE_LINKS), decides, since, now, is_new)


def raising(error: Exception) -> Asked:
    def refuse(_drop: Path) -> str | None:
        raise error

    return asked(refuse)


def test_a_drop_that_nothing_is_wrong_with_is_ready(drop):
    assert by_person(drop, asked()) == Judgement(READY)
    assert by_look(drop, asked(), age=1) == Judgement(READY)


@pytest.mark.parametrize(
    ("decides", "state", "reason"),
    [
        (asked(lambda _: "no grain in it"), REFUSED, "no grain in it"),
        (raising(BadInput("d6/a.gz", "is no grain")), REFUSED, "d6/a.gz: is no grain"),
        (raising(Waits("waits for d7")), WAITS, "waits for d7"),
        (raising(Unread("write a recipe")), UNREAD, "write a recipe"),
    ],
)
def test_a_family_decides_the_state_and_gives_the_reason(drop, decides, state, reason):
    for found in (by_person(drop, decides), by_look(drop, decides, age=1)):
        assert (found.state, found.reason, found.trace) == (state, reason, "")
        assert found.line == f"{state}: {reason}"


def test_an_error_that_nobody_expected_refuses_with_its_trace(drop):
    found = by_person(drop, raising(KeyError("column")))
    assert (found.state, found.reason) == (REFUSED, "cannot be read: KeyError: 'column'")
    assert "in refuse" in found.trace


def test_a_file_that_went_meanwhile_is_no_reason_to_refuse(drop):
    with pytest.raises(FileNotFoundError):
        by_person(drop, raising(FileNotFoundError(2, "gone", "a.gz")))


def test_a_family_that_does_not_answer_is_waited_for_no_longer_than_the_bound(drop, monkeypatch):
    monkeypatch.setattr("gristmill.inbox.judging.DROP_SECONDS", 0.2)
    release, threads = threading.Event(), list[threading.Thread]()

    def refuse(_drop: Path) -> str | None:
        threads.append(threading.current_thread())
        release.wait(60)
        return None

    found = by_person(drop, asked(refuse))
    release.set()
    for thread in threads:
        thread.join(60)
    assert found.state == REFUSED
    assert "takes more than 0.2 seconds to look at" in found.reason


def test_a_drop_that_cannot_be_listed_is_waited_for_no_longer_than_the_bound(drop, monkeypatch):
    release, threads = threading.Event(), list[threading.Thread]()

    def survey(_path: Path, _links: LinkRule) -> Survey:
        threads.append(threading.current_thread())
        assert release.wait(60)
        return listing.survey(drop, REFUSE_LINKS)

    monkeypatch.setattr("gristmill.inbox.judging.DROP_SECONDS", 0.1)
    monkeypatch.setattr("gristmill.inbox.judging.survey", survey)
    late = "takes more than 0.1 seconds to look at"
    try:
        with pytest.raises(BadInput, match=late):
            surveyed(drop, REFUSE_LINKS)
        ((_, error),) = all_surveyed([drop.with_name("other")], REFUSE_LINKS)
    finally:
        release.set()
        for thread in threads:
            thread.join(60)
    assert late in str(error)


def test_a_folder_without_files_is_refused_and_its_family_is_not_asked(drop):
    (drop / "a.gz").unlink()
    assert by_person(drop, raising(AssertionError())).reason.startswith("the folder holds no file")


def test_an_entry_that_no_drop_may_hold_refuses_before_the_family_is_asked(drop):
    (drop / "link").symlink_to("a.gz")
    (drop / "round").symlink_to("round")
    found = by_person(drop, raising(AssertionError()))
    assert found.state == REFUSED
    assert found.reason.startswith(f"{drop / 'link'}: is a link: a drop may hold")
    assert found.reason.endswith("(and 1 more)")


def test_a_mark_holds_a_drop_back_whoever_says_that_it_is_complete(drop):
    (drop / ".incomplete").touch()
    for found in (
        by_person(drop, raising(AssertionError())),
        by_look(drop, raising(AssertionError()), age=3_600),
    ):
        assert found.state == ARRIVING
        assert found.reason.startswith(".incomplete says that it is not complete")


def test_a_person_overrules_the_name_of_an_unfinished_file_and_a_look_does_not(drop):
    (drop / "b.part").write_text("half")
    assert by_person(drop, asked()).state == READY
    found = by_look(drop, raising(AssertionError()), age=3_600)
    assert (found.state, found.reason[:6]) == (ARRIVING, "b.part")


def test_a_person_overrules_the_seconds_and_not_the_mark_that_an_inbox_needs(drop):
    assert by_person(drop, asked(settling=MINUTE)).state == READY
    needing = asked(settling=Settling(0.0, require_done=True))
    found = by_person(drop, needing)
    assert (found.state, "require_done is true" in found.reason) == (ARRIVING, True)
    (drop / ".done").touch()
    assert by_person(drop, needing).state == READY


def test_a_young_drop_arrives_until_its_seconds_are_over(drop):
    found = by_look(drop, asked(settling=MINUTE), age=59)
    assert (found.state, "settle_seconds" in found.reason) == (ARRIVING, True)
    assert by_look(drop, asked(settling=MINUTE), age=61).state == READY
    (drop / ".done").touch()
    assert by_look(drop, asked(settling=MINUTE), age=0).state == READY


def test_a_form_that_no_look_saw_before_is_never_taken_at_once(drop):
    (drop / ".done").touch()
    found = by_look(drop, raising(AssertionError()), age=3_600, is_new=True)
    assert (found.state, found.reason) == (
        ARRIVING,
        "it is taken if the next look finds no change",
    )


def test_files_that_a_list_names_may_still_come_while_the_drop_is_young(drop):
    (drop / "SHA256SUMS").write_text(f"{'0' * 64}  a.gz\n{'1' * 64}  b.gz\n")
    young = by_look(drop, raising(AssertionError()), age=1, is_new=False)
    assert young.state == REFUSED  # no seconds of settling are left
    decides = asked(settling=MINUTE)
    assert by_look(drop, decides, age=1).state == ARRIVING
    for found in (by_look(drop, decides, age=61), by_person(drop, decides)):
        assert found.state == REFUSED
        assert "b.gz is listed and not in the drop" in found.reason


def test_a_sum_that_is_known_and_differs_refuses_before_the_family_is_asked(drop):
    (drop / "SHA256SUMS").write_text(f"{'0' * 64}  a.gz\n")
    decides = Asked(
        raising(AssertionError()).refuse,
        REFUSE_LINKS,
        Settling(),
        lambda each: {"a.gz": "f" * 64}.get if each == drop else {}.get,
    )
    found = by_person(drop, decides)
    assert (found.state, "its sha256 is ffffffffffff…" in found.reason) == (REFUSED, True)


@pytest.mark.parametrize("state", [READY, WAITS, UNREAD])
def test_files_that_are_in_no_list_are_a_note_in_each_state(drop, state):
    (drop / "SHA256SUMS").write_text(f"{'0' * 64}  a.gz\n")
    (drop / "b.gz").write_text("two")
    errors = {WAITS: Waits("x"), UNREAD: Unread("x")}
    decides = raising(errors[state]) if state in errors else asked()
    found = by_person(drop, decides)
    assert (found.state, found.notes) == (state, ("not in SHA256SUMS, so not verified: b.gz",))


def test_a_judgement_is_a_refusal_or_a_standing_and_its_words_are_printable():
    refused = Judgement(REFUSED, "bad \x1b[31m", "a trace")
    assert refused.standing("d6", 7, is_new=False) == Refusal(
        "d6", "bad \ufffd[31m", False, "a trace", 7
    )
    waits = Judgement(WAITS, "one\ntwo\x07")
    assert waits.standing("d6", 7) == Standing("d6", WAITS, 7, "one\ntwo\ufffd")
    assert Judgement().line == READY


def test_a_result_and_an_error_pass_through() -> None:
    assert within(60, FILE, lambda: 42) == 42
    for error in (KeyError("of its own"), TimeoutError("of its own")):
        with pytest.raises(type(error), match="of its own"):
            within(60, FILE, lambda error=error: raising(error).refuse(FILE))


def test_a_call_that_hangs_names_the_file_and_is_not_started_twice() -> None:
    release = threading.Event()
    calls: list[int] = []

    def hang() -> int:
        calls.append(1)
        release.wait(60)
        return len(calls)

    with pytest.raises(BadInput, match=r"macroxue/d6: takes more than 0\.1 seconds to look at"):
        within(0.1, FILE, hang)
    with pytest.raises(BadInput, match="is still being looked at"):
        within(60, FILE, hang)
    assert within(60, FILE.with_name("d7"), lambda: 7) == 7
    assert len(calls) == 1
    release.set()
    for _ in range(6_000):
        try:
            assert within(60, FILE, hang) == 2
        except BadInput:
            time.sleep(0.01)
        else:
            break
    else:
        pytest.fail("the file is never looked at again")


def test_files_are_looked_at_in_order_and_an_error_is_the_answer_for_its_file() -> None:
    files = [Path(f"drops/{number}") for number in range(500)]

    def look(file: Path) -> str:
        if file.name == "7":
            raise KeyError(file.name)
        return file.name

    answers = list(each_within(60, files, look))
    assert [file for file, _ in answers] == files
    assert isinstance(answers[7][1], KeyError)
    assert [answer for _, answer in answers if answer != answers[7][1]] == [
        file.name for file in files if file.name != "7"
    ]
    assert list(each_within(60, [], look)) == []


def test_a_file_that_hangs_is_named_and_those_before_and_after_it_are_looked_at() -> None:
    release = threading.Event()
    files = [Path(f"hanging/{number}") for number in range(5)]

    def look(file: Path) -> str:
        if file.name in ("2", "4"):
            release.wait(60)
        return file.name

    def rules() -> list[str]:
        found = each_within(1.5, files, look)
        return [answer.rule if isinstance(answer, BadInput) else str(answer) for _, answer in found]

    late = "takes more than 1.5 seconds to look at"
    assert rules() == ["0", "1", late, "3", late]
    held = "is still being looked at: its file system does not answer"
    assert rules() == ["0", "1", held, "3", held]
    release.set()
    for _ in range(6_000):
        if rules() == ["0", "1", "2", "3", "4"]:
            break
        time.sleep(0.01)
    else:
        pytest.fail("the files are never looked at again")


def test_a_reader_that_stops_ends_the_looking() -> None:
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


def test_an_answer_does_not_wait_for_the_look_at_the_next_file() -> None:
    release = threading.Event()
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
