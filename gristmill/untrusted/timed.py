"""A bound on the time of a call, for what may hang, such as a file system that does not answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Final, Generic, TypeVar

from gristmill.contract import BadInput

Result = TypeVar("Result")

_PAUSE_SECONDS: Final = 0.002

_unfinished: dict[Path, threading.Thread] = {}


def within(seconds: float, file: Path, function: Callable[[], Result]) -> Result:
    """The result of `function()`, waited for at most so long.

    seconds: to wait.
    file: what the function looks at, for the error.
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
    """A thread that calls a function for one file after the other.

    Its answers are fetched in groups: to wake the reader for each would take longer than a look at
    a small drop does.
    """

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
