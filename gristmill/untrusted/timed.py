"""A bound on the time of a call, for what may hang, such as a file system that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from gristmill.contract import BadInput

Result = TypeVar("Result")

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

    seconds: to wait for each.
    files: what the function looks at.
    function: as for `within`; it is called in one thread for as long as it answers.

    Where it does not answer, the error is the BadInput of `within`, and the others go on.
    """
    left = list(files)
    while left:
        stop, answers = threading.Event(), SimpleQueue[Result | Exception]()
        thread = threading.Thread(
            target=_answers, args=(answers, function, left, stop), daemon=True
        )
        thread.start()
        try:
            for number, file in enumerate(left):
                try:
                    answer = answers.get(timeout=seconds)
                except Empty:
                    _unfinished[file] = thread
                    answer = BadInput(file, f"takes more than {seconds:g} seconds to look at")
                    left = left[number + 1 :]
                    yield file, answer
                    break
                yield file, answer
            else:
                return
        finally:
            stop.set()


def _answers(
    answers: SimpleQueue[Result | Exception],
    function: Callable[[Path], Result],
    files: Sequence[Path],
    stop: threading.Event,
) -> None:
    for file in files:
        if stop.is_set():
            return
        earlier = _unfinished.get(file)
        if earlier is not None and earlier.is_alive():
            rule = "is still being looked at: its file system does not answer"
            answers.put(BadInput(file, rule))
            continue
        _unfinished.pop(file, None)
        try:
            answers.put(function(file))
        except Exception as error:  # noqa: BLE001  any error goes to the caller
            answers.put(error)


def _answer(answer: Future[Result], function: Callable[[], Result]) -> None:
    try:
        answer.set_result(function())
    except BaseException as error:  # noqa: BLE001  any error goes to the caller
        answer.set_exception(error)
