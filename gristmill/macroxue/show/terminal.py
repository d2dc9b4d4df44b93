"""Steps of a pack or pool in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.families import Misuse, Request
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.show.board import run_text, step_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def shown_row(path: Path, row: int) -> Iterator[RenderableType]:
    """Yield the picture of one row."""
    yield step_text(Pack(path).step(row))


def shown_step(path: Path, run: int, step: int) -> Iterator[RenderableType]:
    """Yield the picture of one step. Raises GristmillError where there is no such run or step."""
    yield step_text(Pack(path).find(run, step))


def shown_run(path: Path, run: int, count: int) -> Iterator[RenderableType]:
    """Yield the facts of a run in one line, then pictures of some of its steps."""
    pack = Pack(path)
    steps = pack.run_steps(run, count)
    yield run_text(pack.run(run))
    for step in steps:
        yield step_text(step)


def show(request: Request) -> Iterator[RenderableType]:
    """Yield what a person asks to see: a row, a step of a run, or steps of a run."""
    run, step = request.options.get("run"), request.options.get("step")
    if run is None:
        if step is not None:
            raise Misuse("--step needs --run")
        return shown_row(request.path, request.number)
    if step is not None:
        return shown_step(request.path, run, step)
    return shown_run(request.path, run, request.options["steps"])
