"""A bound on the time of a call."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.timed import each_within, within

FILE = Path("drops/macroxue/d6")


def test_a_result_and_an_error_pass_through() -> None:
    assert within(60, FILE, lambda: 42) == 42

    def fail() -> int:
        raise KeyError("a column")

    with pytest.raises(KeyError, match="a column"):
        within(60, FILE, fail)


def test_an_error_of_the_function_that_is_a_timeout_is_its_own() -> None:
    def late() -> int:
        raise TimeoutError("the disk")

    with pytest.raises(TimeoutError, match="the disk"):
        within(60, FILE, late)


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
    for _ in range(600):
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
        found = each_within(0.2, files, look)
        return [answer.rule if isinstance(answer, BadInput) else str(answer) for _, answer in found]

    late = "takes more than 0.2 seconds to look at"
    assert rules() == ["0", "1", late, "3", late]
    held = "is still being looked at: its file system does not answer"
    assert rules() == ["0", "1", held, "3", held]
    release.set()
    for _ in range(600):
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
    time.sleep(0.1)
    count = len(looked)
    time.sleep(0.1)
    assert len(looked) == count < 100_000


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
