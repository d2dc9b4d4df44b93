"""Small pictures of puzzles: every kind has one that the overview shows, whatever a row holds."""

import base64
import re
import zlib

import numpy as np
import pytest

from gristmill import markdown
from gristmill.puzzles.show.small_picture import small_picture
from gristmill.svg import OVERVIEW
from tests.drawings import is_right, texts
from tests.puzzles.small_datasets import SMALL

LENGTHS = {"arc": 900, "sudoku": 81, "maze": 900, "domino": 72}


@pytest.mark.parametrize("kind", LENGTHS)
def test_every_kind_is_drawn_with_its_title(kind: str) -> None:
    small = SMALL[kind]()
    svg = small_picture(kind, small.inputs[0], small.labels[0], "train 0 " + "x" * 90)
    assert svg is not None
    is_right(svg, OVERVIEW)
    assert texts(svg)[0].startswith("train 0 xxx")
    assert len(markdown.inline_image("example", svg)) <= markdown.INLINE


@pytest.mark.parametrize("kind", LENGTHS)
def test_rows_of_any_tokens_are_drawn(kind: str) -> None:
    generator = np.random.default_rng(5)
    for low, high in ((0, 1), (0, 14), (-9, 300), (11, 12)):
        rows = generator.integers(low, high, (2, LENGTHS[kind]))
        svg = small_picture(kind, rows[0], rows[1], "t")
        assert svg is not None
        is_right(svg, OVERVIEW)


def test_other_kinds_and_lengths_have_none() -> None:
    assert small_picture("towers", [1] * 81, [1] * 81, "t") is None
    assert small_picture("sudoku", [1] * 80, [1] * 80, "t") is None


def test_a_sudoku_has_its_givens_in_their_cells() -> None:
    given = np.ones(81, dtype=int)
    given[[0, 8, 40]] = [2, 10, 6]
    svg = small_picture("sudoku", given, given, "t")
    assert svg is not None
    assert texts(svg) == ["t", "3 givens", "19", "5"]
    assert "<text x='0 8' y='0'>19</text><text x='4' y='4'>5</text>" in svg


def test_a_maze_has_walls_path_start_and_goal() -> None:
    maze = np.array([1, 3, 2, 4])
    svg = small_picture("maze", maze, np.array([1, 3, 5, 4]), "t")
    assert svg is not None
    assert texts(svg)[1] == "2 × 2, path of 1"
    # Colours in the order of their tokens: wall, start, goal, path.
    assert _cells(svg) == [[0, 1], [3, 2]]


def test_a_pair_of_arc_has_its_output_beside_its_input() -> None:
    given, wanted = np.zeros((2, 30, 30), dtype=int)
    given[0, :2], wanted[0, :2] = [2, 5], [5, 2]
    svg = small_picture("arc", given.ravel(), wanted.ravel(), "t")
    assert svg is not None
    assert texts(svg)[1] == "1 × 2 → 1 × 2"
    assert _cells(svg) == [[1, 2, 0, 2, 1]]


def test_a_hand_of_domino_says_the_move() -> None:
    given = np.zeros(72, dtype=int)
    given[56:60], given[70:] = [4, 5, 1, 7], [4, 7]
    svg = small_picture("domino", given, np.array([4, 5, 1, *[0] * 69]), "t")
    assert svg is not None
    assert texts(svg) == ["t", "ends 3 and 6 · play 3-4 left", "34", "06"]
    assert svg.count("M10 2h48v24h-48z") == 2
    assert svg.count("M62 2h48v24h-48z") == 1


def _cells(svg: str) -> list[list[int]]:
    """The numbers of the colours of a bitmap."""
    found = re.search(r"base64,([^']+)'", svg)
    assert found
    data = base64.b64decode(found[1])
    wide, tall, depth = data[16:20], data[20:24], data[24]
    at = data.index(b"IDAT")
    length = int.from_bytes(data[at - 4 : at], "big")
    pixels = zlib.decompress(data[at + 4 : at + 4 + length])
    columns, line = int.from_bytes(wide, "big"), 1 + -(-int.from_bytes(wide, "big") * depth // 8)
    rows = []
    for row in range(int.from_bytes(tall, "big")):
        bits = "".join(f"{byte:08b}" for byte in pixels[row * line + 1 : (row + 1) * line])
        rows.append([int(bits[k * depth : (k + 1) * depth], 2) for k in range(columns)])
    return rows
