"""A bound on the time of a call."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.timed import within

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
