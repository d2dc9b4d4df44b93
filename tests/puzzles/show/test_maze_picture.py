"""Mazes with their paths."""

import numpy as np
import pytest

from gristmill.puzzles.show.maze_picture import ROUTE, WALLS, contradicted, maze_svg, square
from gristmill.puzzles.show.sheet import WRONG
from tests.drawings import texts
from tests.puzzles.small_datasets import maze

_INPUT, _LABEL = maze().inputs[0], maze().labels[0]


def test_walls_path_start_and_goal_are_drawn() -> None:
    drawing = maze_svg(_INPUT, _LABEL, title="m", notes=["n"])
    # Cells of 24 units from (16, 54): one wall above, a row of walls below.
    assert (
        f'd="M40 54h24v24h-24zM40 78h24v24h-24zM88 102h24v24h-24zM16 126h96v24h-96z" fill="{WALLS}"'
        in drawing
    )
    assert f'd="M16 78h24v24h-24zM64 78h24v24h-24zM16 102h72v24h-72z" fill="{ROUTE}"' in drawing
    assert WRONG not in drawing
    assert texts(drawing) == ["m", "4 × 4, path of 5 cells", "S", "G", "n"]


@pytest.mark.parametrize(("at", "token"), [(1, 5), (0, 5), (2, 1), (2, 0), (2, 9)])
def test_a_label_may_only_make_path_of_space(at: int, token: int) -> None:
    label = _LABEL.astype(np.int64)
    assert not contradicted(square(_INPUT.astype(np.int64)), square(label)).any()
    label[at] = token
    wrong = contradicted(square(_INPUT.astype(np.int64)), square(label))
    assert np.flatnonzero(wrong).tolist() == [at]
    assert WRONG in maze_svg(_INPUT, label)


@pytest.mark.parametrize("token", [0, 5, 6, -1])
def test_unknown_tokens_of_the_input_are_red(token: int) -> None:
    both = _INPUT.astype(np.int64)
    both[3] = token
    assert contradicted(square(both), square(both)).reshape(-1)[3]


def test_tokens_that_are_no_square_are_refused() -> None:
    with pytest.raises(ValueError, match="15 tokens are no square"):
        square(np.zeros(15, np.int64))


def test_many_starts_do_not_make_a_large_picture() -> None:
    everywhere = np.full(900, 3, np.uint8)
    assert len(maze_svg(everywhere, everywhere)) < 5_000
