"""Interrupts that are handled, dropped in a callback, or turned into another error."""

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from gristmill.run import interrupts
from gristmill.run.interrupts import held, not_for_children, raise_again, watched
from tests.paths import CHECKOUT


@pytest.fixture(autouse=True)
def default_handlers() -> Iterator[None]:
    """The handlers of a terminal: where a shell starts the tests, SIGINT may be ignored."""
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Holder:
    """What has a finalizer."""


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_nothing_is_raised_without_a_signal_or_a_watch_or_by_another_signal():
    with watched():
        raise_again()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    raise_again()
    with watched():
        raise_again()  # it came before
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with watched():
        interrupt(signal.SIGUSR1)
        raise_again()
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_library_turned_into_an_error_is_raised_again(number):
    with watched(), watched():
        with suppress(KeyboardInterrupt):
            interrupt(number)
        with pytest.raises(KeyboardInterrupt):
            raise_again()
        with pytest.raises(KeyboardInterrupt):
            raise_again()


def test_a_signal_that_a_finalizer_drops_is_sent_again(capsys):
    with watched():
        holder = Holder()
        kept = weakref.ref(holder, lambda _: interrupt())
        with pytest.raises(KeyboardInterrupt):
            del holder
            time.sleep(30)
        assert kept() is None
    assert capsys.readouterr().err == ""


def test_code_of_a_database_is_not_interrupted(monkeypatch):
    ended: list[bool] = []
    query: dict[str, Any] = {"__name__": "sqlalchemy.engine", "ended": ended, "sleep": time.sleep}
    query["interrupt"] = interrupt
    exec("def execute(seconds):\n interrupt()\n sleep(seconds)\n ended.append(True)", query)
    with watched(), pytest.raises(KeyboardInterrupt):
        query["execute"](0)
        time.sleep(30)
    assert ended == [True]
    monkeypatch.setattr(interrupts, "_MOST_WAITS", 3)
    with watched(), pytest.raises(KeyboardInterrupt):
        query["execute"](30)
    assert ended == [True]  # a query that hangs does not hold it for ever


def test_what_is_held_comes_to_its_end():
    ended = []
    with watched(), pytest.raises(KeyboardInterrupt):
        with held():
            interrupt()
            ended.append(True)
        ended.append(False)
    assert ended == [True]
    with watched(), held():
        pass
    with held(), pytest.raises(KeyboardInterrupt):
        interrupt()


def test_processes_that_are_not_for_ctrl_c_do_not_get_it():
    words = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"]
    with not_for_children():
        quiet = subprocess.Popen(words, stdout=subprocess.PIPE)
    loud = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        for child in (quiet, loud):
            assert child.stdout is not None
            child.stdout.readline()
            child.send_signal(signal.SIGINT)
        assert loud.wait(60) != 0
        assert quiet.poll() is None
    finally:
        quiet.terminate()
        loud.kill()
    assert quiet.wait(60) == -signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_another_error_of_a_finalizer_is_shown(monkeypatch):
    shown: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: shown.append(found.exc_type))
    with watched():
        holder = Holder()
        kept = weakref.ref(holder, lambda _: 1 / 0)
        del holder
        assert kept() is None
    assert shown == [ZeroDivisionError]


def test_a_signal_to_a_fork_is_its_own():
    code = (
        "import os, signal\n"
        "from gristmill.run.interrupts import raise_again, watched\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\n"
        "with watched():\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        os._exit(8)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "    raise_again()\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=True)
