"""Which picture a kind has."""

import numpy as np
import pytest

from gristmill.puzzles.show.arc_picture import arc_svg
from gristmill.puzzles.show.domino_picture import domino_svg
from gristmill.puzzles.show.maze_picture import maze_svg
from gristmill.puzzles.show.picture import picture, picture_of
from gristmill.puzzles.show.sudoku_picture import sudoku_svg
from gristmill.puzzles.show.token_table import table_svg
from tests.drawings import texts
from tests.puzzles.small_datasets import SMALL


@pytest.mark.parametrize(
    ("kind", "seq_len", "drawn"),
    [
        ("arc", 900, arc_svg),
        ("arc", 899, table_svg),
        ("sudoku", 81, sudoku_svg),
        ("sudoku", 16, table_svg),
        ("maze", 900, maze_svg),
        ("maze", 16, maze_svg),
        ("maze", 17, table_svg),
        ("maze", 0, table_svg),
        ("maze", 1_000_000, table_svg),
        ("domino", 72, domino_svg),
        ("domino", 73, table_svg),
        ("towers", 81, table_svg),
        ("", 900, table_svg),
    ],
)
def test_the_kind_and_the_length_choose(kind: str, seq_len: int, drawn: object) -> None:
    assert picture_of(kind, seq_len) is drawn


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_is_drawn_with_title_and_notes(kind: str) -> None:
    small = SMALL[kind]()
    drawing = picture(kind, small.inputs[0], small.labels[0], title="<t>", notes=["<n>", "m"])
    assert {"<t>", "<n>", "m"} <= set(texts(drawing))
    assert drawing == picture(
        kind, small.inputs[0].astype(np.int32), small.labels[0], title="<t>", notes=["<n>", "m"]
    )


@pytest.mark.parametrize("kind", SMALL)
def test_any_tokens_are_drawn(kind: str) -> None:
    small = SMALL[kind]()
    noise = np.random.default_rng(1).integers(-4, 2**31 - 1, (20, 2, small.inputs.shape[1]))
    for given, wanted in noise:
        texts(picture(kind, given, wanted))
