"""Steps in a terminal: the row, the step or the run that is asked for."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from gristmill.contract import GristmillError
from gristmill.macroxue.show.terminal import shown_row, shown_run, shown_step
from tests.macroxue.games import play, write_pack

GAMES = [play(seed, 40) for seed in range(3)]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_pack(tmp_path / "p", GAMES)


def text_of(pictures: Iterable[RenderableType]) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    for picture in pictures:
        console.print(picture)
    return console.export_text()


def test_a_row_and_a_step_are_the_same_picture(pack: Path) -> None:
    row = len(GAMES[0].boards) + 7
    text = text_of(shown_row(pack, row))
    assert "run 1 · step 7" in text
    assert f"row {row}" in text
    assert text_of(shown_step(pack, 1, 7)) == text


@pytest.mark.parametrize(("count", "titles"), [(1, 1), (3, 3), (1000, 40)])
def test_a_run_is_its_facts_and_some_steps(pack: Path, count: int, titles: int) -> None:
    text = text_of(shown_run(pack, 2, count))
    assert text.startswith(f"run 2: seed 2, 40 steps, score {GAMES[2].score:,}")
    assert text.count("run 2 · step") == titles


def test_what_is_not_in_the_pack_is_refused(pack: Path) -> None:
    for pictures in (shown_row(pack, 999), shown_step(pack, 1, 99), shown_run(pack, 3, 2)):
        with pytest.raises(GristmillError):
            list(pictures)
