"""Pairs of ARC grids."""

import re

import numpy as np
import pytest

from gristmill.puzzles.show import arc_picture
from gristmill.puzzles.show.arc_picture import BORDER, PALETTE, arc_svg, caption, extent
from gristmill.puzzles.show.sheet import WRONG
from tests.drawings import texts
from tests.puzzles.small_datasets import arc_tokens

_GRID = [[0, 1], [2, 3], [4, 4]]


def _paths(drawing: str, fill: str) -> list[str]:
    return re.findall(rf'<path d="([^"]+)" fill="{fill}"', drawing)


def test_each_colour_and_the_border_are_drawn() -> None:
    drawing = arc_svg(arc_tokens(_GRID), arc_tokens([[9]]), title="a <task>", notes=["from <here>"])
    for colour in (0, 1, 2, 3, 4, 9):
        assert len(_paths(drawing, PALETTE[colour])) == 1
    for colour in (5, 6, 7, 8):
        assert not _paths(drawing, PALETTE[colour])
    assert len(_paths(drawing, BORDER)) == 2
    assert texts(drawing) == ["a <task>", "input 3 × 2", "output 1 × 1", "from <here>"]


def test_a_colour_is_where_its_token_is() -> None:
    drawing = arc_svg(arc_tokens(_GRID), arc_tokens([[9]]))
    # Four rows and three columns with the border: cells of 20 units from (16, 54).
    assert _paths(drawing, PALETTE[4]) == ["M16 94h40v20h-40z"]
    assert _paths(drawing, PALETTE[3]) == ["M36 74h20v20h-20z"]


def test_a_grid_that_was_moved_is_drawn_without_the_padding_before_it() -> None:
    drawing = arc_svg(arc_tokens(_GRID, 2, 5), arc_tokens([[9]], 2, 5))
    assert _paths(drawing, PALETTE[3]) == ["M36 74h20v20h-20z"]
    assert {"input 3 × 2 at (2, 5)", "output 1 × 1 at (2, 5)"} <= set(texts(drawing))


def test_padding_between_two_grids_stays() -> None:
    drawing = arc_svg(arc_tokens(_GRID, 2, 5), arc_tokens([[9]], 1, 0))
    assert _paths(drawing, PALETTE[3]) == ["M136 94h20v20h-20z"]
    assert {"input 3 × 2 at (2, 5)", "output 1 × 1 at (1, 0)"} <= set(texts(drawing))


def test_a_grid_of_30_cells_has_no_border_and_small_cells() -> None:
    full = np.full((30, 30), 7)
    drawing = arc_svg(arc_tokens(full.tolist()), arc_tokens(full.tolist()))
    assert not _paths(drawing, BORDER)
    assert "input 30 × 30" in texts(drawing)
    assert _paths(drawing, PALETTE[7])[0].startswith("M16 54h210v7")


def test_rows_and_columns_of_padding_are_cut_off() -> None:
    rows = arc_tokens(_GRID), arc_tokens([[1, 1, 1]])
    grids = [row.astype(np.int64).reshape(30, 30) for row in rows]
    assert extent(grids) == (slice(0, 4), slice(0, 4))
    assert extent([np.zeros((30, 30), np.int64)]) == (slice(0, 1), slice(0, 1))


def test_unknown_tokens_are_marked() -> None:
    row = arc_tokens(_GRID).astype(np.int32)
    assert f'stroke="{WRONG}"' not in arc_svg(row, row)
    for token in (12, 77, -5):
        row[0] = token
        assert f'stroke="{WRONG}"' in arc_svg(row, row)


def test_padding_alone_is_drawn() -> None:
    nothing = np.zeros(900, np.uint8)
    assert "input without colours" in texts(arc_svg(nothing, nothing))
    assert caption("output", np.ones((3, 3), np.int64)) == "output without colours"


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_picture_is_small(seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, arc_picture.FIRST_COLOUR + 10, (2, 900))
    assert len(arc_svg(*noise)) < 60_000
