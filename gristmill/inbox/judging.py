"""The judgement of a drop: whether it can be built from, and else why not.

Whoever asks, a sensor, a command, a build or a check, asks `judged`: through `arrivals.look` with
what the look before saw, through `present.present_drops` or `DataRoot.judged` without. Each call
that a file system or a family could make hang has a bound in time. Source: docs/drops.md#states.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from gristmill.contract import BadInput
from gristmill.inbox.account import Unread, Waits
from gristmill.inbox.listing import Survey, survey
from gristmill.inbox.lists import GOOD, HashOf, verdict
from gristmill.inbox.marks import Settling
from gristmill.inbox.state import (
    ARRIVING,
    READY,
    REFUSED,
    UNREAD,
    WAITS,
    Arrival,
    Refusal,
    Standing,
)
from gristmill.inbox.waiting import EMPTY, held_back, young_until
from gristmill.printable import printable
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.limits import explained

Result = TypeVar("Result")

_PAUSE_SECONDS: Final = 0.002

_unfinished: dict[Path, threading.Thread] = {}


DROP_SECONDS = 20.0
"""Seconds for listing one drop, and for asking its family whether it can be built."""


@dataclass(frozen=True)
class Asked:
    """What decides about the drops of one inbox.

    refuse: takes a drop; returns why it cannot be built, or None. Raises Waits or Unread where
        nothing is wrong with it, and nothing can be built from it now.
    links: what happens to links.
    settling: how long a drop must stay unchanged, and whether it needs a mark.
    hash_of: takes a drop, returns the sums of its files that are known; default: none are.
    """

    refuse: Callable[[Path], str | None]
    links: LinkRule
    settling: Settling
    hash_of: Callable[[Path], HashOf] = lambda _: lambda _name: None


@dataclass(frozen=True)
class Judgement:
    """What was found about a drop.

    state: `READY`, `ARRIVING`, `REFUSED`, `WAITS` or `UNREAD`.
    reason: in words; empty for a drop that is ready.
    trace: the traceback of an error that nobody expected; empty for the others.
    notes: what is unusual and allowed.
    """

    state: str = READY
    reason: str = ""
    trace: str = ""
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The state, and the reason."""
        return f"{self.state}: {self.reason}" if self.reason else self.state

    def standing(self, key: str, since: int, is_new: bool = True) -> Standing | Refusal:
        """This judgement as an entry of a look.

        key: of the drop.
        since: ms since 1970 of the first look that saw it; 0 if that is not known.
        is_new: whether no look before refused it in this form; default True.
        """
        reason = shown(self.reason)
        if self.state == REFUSED:
            return Refusal(key, reason, is_new, self.trace, since)
        return Standing(key, self.state, since, reason)


def surveyed(path: Path, links: LinkRule) -> Survey:
    """Returns the files of a drop; arguments and errors as for `listing.survey`."""
    return within(DROP_SECONDS, path, lambda: survey(path, links))


def all_surveyed(
    paths: Sequence[Path], links: LinkRule
) -> Generator[tuple[Path, Survey | Exception], None, None]:
    """Yields each drop with its files, or with the error that `surveyed` raises."""
    return each_within(DROP_SECONDS, paths, lambda path: survey(path, links))


def judged(
    path: Path,
    seen: Survey,
    asked: Asked,
    since_ms: int | None = None,
    now_ns: int = 0,
    is_new: bool = False,
) -> Judgement:
    """Returns whether a drop can be built from, and else why not.

    since_ms: ms since 1970 of the first look that saw this form of the drop; default None: a person
        says that it is complete, unless a mark differs.
    now_ns: nanoseconds since 1970, where `since_ms` is given.
    is_new: whether no look before saw this form; default False.

    Raises FileNotFoundError where a file went meanwhile. Any other error is a reason.
    """
    is_said = since_ms is None
    unfinished = "" if is_said else seen.unfinished
    if held := held_back(seen.marks, unfinished, asked.settling):
        return Judgement(ARRIVING, held)
    until = "" if since_ms is None else young_until(seen.marks, since_ms, now_ns, asked.settling)
    if is_new or (until and not seen.marks.says_complete):
        return Judgement(ARRIVING, until or "it is taken if the next look finds no change")
    if seen.refusal is not None:
        return Judgement(REFUSED, seen.refusal)
    if seen.files == 0:
        return Judgement(REFUSED, EMPTY)
    try:
        sizes = seen.sizes(path) if seen.marks.names else {}
        listed = verdict(path, seen.marks, sizes, asked.hash_of(path)) if sizes else GOOD
        if listed.reason is not None:
            is_late = listed.missing and bool(until)
            return Judgement(ARRIVING if is_late else REFUSED, listed.reason)
        reason = within(DROP_SECONDS, path, lambda: asked.refuse(path))
    except FileNotFoundError:
        raise
    except Waits as waits:
        return Judgement(WAITS, str(waits), notes=listed.notes)
    except Unread as unread:
        return Judgement(UNREAD, str(unread), notes=listed.notes)
    except Exception as error:  # noqa: BLE001  any error of one drop refuses that drop alone
        return Judgement(REFUSED, *explained(error))
    if reason is not None:
        return Judgement(REFUSED, reason)
    return Judgement(notes=listed.notes)


def arrival_of(key: str, path: Path, seen: Survey, run_key: str, notes: tuple[str, ...]) -> Arrival:
    """Returns the arrival of a drop; the arguments are its fields, and those of `seen`."""
    noted = (*seen.notes, *notes)
    return Arrival(key, path, seen.signature, seen.files, seen.bytes, run_key, noted)


def shown(reason: str) -> str:
    """Returns a reason for an event and a terminal; names in it come from the drop."""
    return "\n".join(printable(line) for line in reason.split("\n"))


def within(seconds: float, file: Path, function: Callable[[], Result]) -> Result:
    """The result of `function()`, waited for at most so long.

    seconds: to wait.
    function: must change nothing outside of itself, since it may go on after the wait.

    Raises BadInput if the function takes longer, and at once if an earlier call for the same file
    still runs; whatever the function raises otherwise. A signal ends the wait.
    """
    if (earlier := _unfinished.get(file)) is not None:
        if earlier.is_alive():
            raise BadInput(file, "is still being looked at: its file system does not answer")
        del _unfinished[file]
    answer: Future[Result] = Future()
    thread = threading.Thread(target=_answer, args=(answer, function), daemon=True)
    thread.start()
    try:
        return answer.result(seconds)
    except Late:
        if answer.done():
            raise  # an error of the function's own
        _unfinished[file] = thread
        raise BadInput(file, f"takes more than {seconds:g} seconds to look at") from None


def each_within(
    seconds: float, files: Sequence[Path], function: Callable[[Path], Result]
) -> Generator[tuple[Path, Result | Exception], None, None]:
    """Yield each file with the result of `function(file)`, waited for at most so long, or an error.

    Where it does not answer, the error is the BadInput of `within`, and the others go on. It is
    called in one thread for as long as it answers.
    """
    left = list(files)
    while left:
        worker = _Worker(function, left)
        try:
            for number, file in enumerate(left):
                answer = worker.next_within(seconds)
                if answer is None:
                    _unfinished[file] = worker.thread
                    left = left[number + 1 :]
                    yield file, BadInput(file, f"takes more than {seconds:g} seconds to look at")
                    break
                yield file, answer
            else:
                return
        finally:
            worker.stop.set()


class _Worker(Generic[Result]):
    """A thread that calls a function for one file after the other."""

    def __init__(self, function: Callable[[Path], Result], files: Sequence[Path]) -> None:
        self.stop = threading.Event()
        self._answers: deque[Result | Exception] = deque()
        self._is_over = threading.Event()
        self.thread = threading.Thread(target=self._work, args=(function, files), daemon=True)
        self.thread.start()

    def next_within(self, seconds: float) -> Result | Exception | None:
        """The next answer, None where none came for so long."""
        end = time.monotonic() + seconds
        while not self._answers:
            left = end - time.monotonic()
            if left <= 0 or self._is_over.wait(min(_PAUSE_SECONDS, left)):
                break
        return self._answers.popleft() if self._answers else None

    def _work(self, function: Callable[[Path], Result], files: Sequence[Path]) -> None:
        for file in files:
            if self.stop.is_set():
                return
            self._answers.append(_answer_for(file, function))
        self._is_over.set()


def _answer_for(file: Path, function: Callable[[Path], Result]) -> Result | Exception:
    earlier = _unfinished.get(file)
    if earlier is not None and earlier.is_alive():
        return BadInput(file, "is still being looked at: its file system does not answer")
    _unfinished.pop(file, None)
    try:
        return function(file)
    except Exception as error:  # noqa: BLE001  any error goes to the caller
        return error


def _answer(answer: Future[Result], function: Callable[[], Result]) -> None:
    try:
        answer.set_result(function())
    except BaseException as error:  # noqa: BLE001  any error goes to the caller
        answer.set_exception(error)
