"""Boards of 2048: what they show is in them, and they fit the page of an asset."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import markdown
from gristmill.macroxue.show import board
from gristmill.macroxue.show.board import board_svg, board_text
from gristmill.svg import OVERVIEW, bitmap
from tests.drawings import is_right, texts
from tests.macroxue.games import play

TITLE = "run 3 · step 27,885 · → right"
LARGEST = [*range(12), 14, 15, 16, 17]


@pytest.mark.parametrize("ranks", [*play(0, 40).boards.tolist(), LARGEST])
def test_a_board_has_each_number_in_its_cell_and_fits_the_overview(ranks: list[int]) -> None:
    svg = board_svg(TITLE, ranks)
    is_right(svg, OVERVIEW)
    title, *lines = texts(svg)
    assert title == TITLE
    shown = [line[6 * k : 6 * k + 6].strip("\xa0") for line in lines for k in range(4)]
    assert shown == [str(1 << rank) if rank else "" for rank in ranks]
    colours = np.minimum(ranks, 12).reshape(4, 4)
    used, places = np.unique(colours, return_inverse=True)
    tiles = [board._TILES[rank] for rank in used]
    assert bitmap(places.reshape(4, 4).tolist(), tiles, 0, 0, 1) in svg
    assert len(markdown.image("step 1,234,567", svg)) <= markdown.INLINE


def test_a_terminal_has_the_tiles_in_their_colours() -> None:
    text = board_text(LARGEST)
    numbers = [int(number) for number in text.plain.split()]
    assert numbers == [1 << rank for rank in LARGEST if rank]
    assert text.plain.count("\n") == 12
    grounds = [str(span.style).rpartition(" on ")[2] for span in text.spans]
    # Three lines a row; tiles above 2048 share a colour.
    cells = np.array(grounds).reshape(4, 3, 4)
    assert (cells == cells[:, :1]).all()
    assert len(set(grounds)) == 13
    inks = [str(span.style).split()[1] for span in text.spans[:8] + text.spans[24:28]]
    assert inks == ["#776e65"] * 3 + ["#f9f6f2"] + ["#776e65"] * 3 + ["#f9f6f2"] * 5
