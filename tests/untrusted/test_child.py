from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.child import ChildFailed, run, stream

FILE = Path("drop/a.parquet")


def _double(number: int) -> int:
    return 2 * number


def _take(size: int) -> int:
    return len(bytearray(size))


def _spin() -> None:
    while True:
        pass


def _sleep() -> None:
    time.sleep(60)


def _die(number: int) -> None:
    os.kill(os.getpid(), number)


def _leave() -> None:
    os._exit(3)


def _fail(kind: str) -> None:
    if kind == "bad":
        raise BadInput(FILE, "a rule", 7)
    raise RuntimeError("unexpected text")


def _count(most: int) -> Iterator[int]:
    yield from range(most)
    if most == 3:
        raise BadInput(FILE, "row 3 is bad")


def test_a_result_comes_back_from_another_process() -> None:
    assert run(_double, 21, file=FILE) == 42
    assert run(os.getpid, file=FILE) != os.getpid()


def test_items_come_back_in_order_and_an_error_after_them() -> None:
    assert list(stream(_count, 5, file=FILE)) == [0, 1, 2, 3, 4]
    items = stream(_count, 3, file=FILE)
    assert [next(items), next(items), next(items)] == [0, 1, 2]
    with pytest.raises(BadInput, match="row 3 is bad"):
        next(items)


def test_a_stream_that_is_closed_early_ends_its_child() -> None:
    items = stream(_count, 10**9, file=FILE)
    next(items)
    during = set(_children())
    items.close()
    assert len(during - set(_children())) == 1


def test_too_much_memory_names_the_file() -> None:
    assert run(_take, 50 << 20, file=FILE, memory_bytes=200 << 20) == 50 << 20
    with pytest.raises(BadInput, match=r"a.parquet: takes more than 200 MiB of memory"):
        run(_take, 1 << 30, file=FILE, memory_bytes=200 << 20)


def test_too_much_time_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"a.parquet: takes more than 1 seconds"):
        run(_spin, file=FILE, seconds=1)
    monkeypatch.setattr("gristmill.untrusted.child._start_seconds", lambda: 2.0)
    with pytest.raises(BadInput, match=r"a.parquet: takes more than 0.5 seconds"):
        run(_sleep, file=FILE, seconds=0.5)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash_of_the_parser_names_the_file(number: int) -> None:
    with pytest.raises(BadInput, match=rf"its parser crashed \(signal {int(number)}\)"):
        run(_die, int(number), file=FILE)


def test_a_child_that_leaves_names_the_file() -> None:
    with pytest.raises(BadInput, match="ended with status 3"):
        run(_leave, file=FILE)


def test_errors_of_the_function_come_back() -> None:
    with pytest.raises(BadInput, match="a rule") as raised:
        run(_fail, "bad", file=FILE)
    assert raised.value.row == 7
    with pytest.raises(ChildFailed, match="unexpected text"):
        run(_fail, "other", file=FILE)


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
