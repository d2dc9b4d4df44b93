"""Steps of a pack or a pool in a terminal.

Pictures for a browser: see `board.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.show.board import run_text, step_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def shown_row(path: Path, row: int) -> Iterator[RenderableType]:
    """The step in row `row`, counted from 0. Raises GristmillError where there is none."""
    yield step_text(Pack(path).step(row))


def shown_step(path: Path, run: int, step: int) -> Iterator[RenderableType]:
    """The step of a run with this step_index. Raises GristmillError where there is none."""
    yield step_text(Pack(path).find(run, step))


def shown_run(path: Path, run: int, count: int) -> Iterator[RenderableType]:
    """A run in one line, then at most `count` of its steps at even distances."""
    pack = Pack(path)
    steps = pack.run_steps(run, count)
    yield run_text(pack.run(run))
    for step in steps:
        yield step_text(step)
