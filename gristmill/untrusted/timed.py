"""A bound on the time of a call, for what may hang, such as a file system that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from pathlib import Path
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


def _answer(answer: Future[Result], function: Callable[[], Result]) -> None:
    try:
        answer.set_result(function())
    except BaseException as error:  # noqa: BLE001  any error goes to the caller
        answer.set_exception(error)
