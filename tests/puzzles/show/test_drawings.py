"""What each kind of puzzle draws: on a page, on an overview, in a terminal."""

import base64
import hashlib
import io
import re
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console

from gristmill import markdown
from gristmill.puzzles.show.cells import WRONG, Drawing
from gristmill.puzzles.show.drawings import (
    ADDED,
    ARC_PALETTE,
    BORDER,
    GIVEN,
    ROUTE,
    WALLS,
    contradicted,
    digit,
    drawing,
    extent,
    square,
    twice,
)
from gristmill.puzzles.show.pictures import FILLS, Hand, TokenTable
from gristmill.svg import OVERVIEW
from tests.drawings import is_right, texts
from tests.puzzles.small_datasets import ANSWER, SMALL, arc_tokens, domino_tokens, maze, sudoku


def _large(
    kind: str,
    given: npt.ArrayLike,
    wanted: npt.ArrayLike,
    title: str = "",
    notes: Sequence[str] = (),
) -> str:
    return drawing(kind, given, wanted).large(title, notes)


def _small(kind: str, given: npt.ArrayLike, wanted: npt.ArrayLike, title: str) -> str | None:
    return drawing(kind, given, wanted).small(title)


@pytest.mark.parametrize(
    ("kind", "seq_len", "drawn"),
    [
        ("arc", 900, Drawing),
        ("arc", 899, TokenTable),
        ("sudoku", 81, Drawing),
        ("sudoku", 16, TokenTable),
        ("maze", 900, Drawing),
        ("maze", 16, Drawing),
        ("maze", 17, TokenTable),
        ("maze", 0, TokenTable),
        ("maze", 1_000_000, TokenTable),
        ("domino", 72, Hand),
        ("domino", 73, TokenTable),
        ("towers", 81, TokenTable),
        ("", 900, TokenTable),
    ],
)
def test_the_kind_and_the_length_choose(kind: str, seq_len: int, drawn: type) -> None:
    assert isinstance(drawing(kind, [1] * seq_len, [1] * seq_len), drawn)


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_is_drawn_with_title_and_notes(kind: str) -> None:
    small = SMALL[kind]()
    drawn = _large(kind, small.inputs[0], small.labels[0], title="<t>", notes=["<n>", "m"])
    assert {"<t>", "<n>", "m"} <= set(texts(drawn))
    assert drawn == _large(
        kind, small.inputs[0].astype(np.int32), small.labels[0], title="<t>", notes=["<n>", "m"]
    )


@pytest.mark.parametrize("kind", SMALL)
def test_large_pictures_of_any_tokens_are_drawn(kind: str) -> None:
    small = SMALL[kind]()
    noise = np.random.default_rng(1).integers(-4, 2**31 - 1, (20, 2, small.inputs.shape[1]))
    for given, wanted in noise:
        texts(_large(kind, given, wanted))


GRIDS = {"alphabet": ".<a", "values": None, "pad": ".", "height": 3, "width": 4}


def test_grids_have_a_colour_for_each_token_and_its_character_in_a_terminal() -> None:
    given, wanted = [1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    drawn = drawing("grid", given, wanted, GRIDS)
    svg = drawn.large("a <grid>")
    assert texts(svg) == ["a <grid>", "input 2 × 2", "output 1 × 1"]
    assert [len(_paths(svg, FILLS[token])) for token in (0, 1, 2)] == [0, 1, 2]
    console = Console(file=io.StringIO(), width=80)
    console.print(drawn.in_terminal())
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[1] == "< a            a" and lines[2] == "  <"
    assert WRONG in drawing("grid", [3, *given[1:]], wanted, GRIDS).large()
    small = drawn.small("t")
    assert small is not None and len(markdown.inline_image("x", small)) < 2000


def test_grids_of_other_sizes_than_the_config_says_and_large_ones_are_tables() -> None:
    assert isinstance(drawing("grid", [1] * 12, [1] * 12, GRIDS), Drawing)
    for config in ({**GRIDS, "height": 4}, {}):
        assert isinstance(drawing("grid", [1] * 12, [1] * 12, config), TokenTable)
    wide = {**GRIDS, "height": 1, "width": 200}
    assert isinstance(drawing("grid", [1] * 200, [1] * 200, wide), TokenTable)


_GRID = [[0, 1], [2, 3], [4, 4]]


def _paths(svg: str, fill: str) -> list[str]:
    return re.findall(rf'<path d="([^"]+)" fill="{fill}"', svg)


def test_each_colour_and_the_border_are_drawn() -> None:
    svg = _large(
        "arc", arc_tokens(_GRID), arc_tokens([[9]]), title="a <task>", notes=["from <here>"]
    )
    for colour in (0, 1, 2, 3, 4, 9):
        assert len(_paths(svg, ARC_PALETTE[colour])) == 1
    for colour in (5, 6, 7, 8):
        assert not _paths(svg, ARC_PALETTE[colour])
    assert len(_paths(svg, BORDER)) == 2
    assert texts(svg) == ["a <task>", "input 3 × 2", "output 1 × 1", "from <here>"]


def test_a_colour_is_where_its_token_is() -> None:
    svg = _large("arc", arc_tokens(_GRID), arc_tokens([[9]]))
    # Four rows and three columns with the border: cells of 20 units from (16, 54).
    assert _paths(svg, ARC_PALETTE[4]) == ["M16 94h40v20h-40z"]
    assert _paths(svg, ARC_PALETTE[3]) == ["M36 74h20v20h-20z"]


def test_a_grid_that_was_moved_is_drawn_without_the_padding_before_it() -> None:
    svg = _large("arc", arc_tokens(_GRID, 2, 5), arc_tokens([[9]], 2, 5))
    assert _paths(svg, ARC_PALETTE[3]) == ["M36 74h20v20h-20z"]
    assert {"input 3 × 2 at (2, 5)", "output 1 × 1 at (2, 5)"} <= set(texts(svg))


def test_padding_between_two_grids_stays() -> None:
    svg = _large("arc", arc_tokens(_GRID, 2, 5), arc_tokens([[9]], 1, 0))
    assert _paths(svg, ARC_PALETTE[3]) == ["M136 94h20v20h-20z"]
    assert {"input 3 × 2 at (2, 5)", "output 1 × 1 at (1, 0)"} <= set(texts(svg))


def test_a_grid_of_30_cells_has_no_border_and_small_cells() -> None:
    full = np.full((30, 30), 7)
    svg = _large("arc", arc_tokens(full.tolist()), arc_tokens(full.tolist()))
    assert not _paths(svg, BORDER)
    assert "input 30 × 30" in texts(svg)
    assert _paths(svg, ARC_PALETTE[7])[0].startswith("M16 54h210v7")


def test_rows_and_columns_of_padding_are_cut_off() -> None:
    rows = arc_tokens(_GRID), arc_tokens([[1, 1, 1]])
    grids = [row.astype(np.int64).reshape(30, 30) for row in rows]
    assert extent(grids) == (slice(0, 4), slice(0, 4))
    assert extent([np.zeros((30, 30), np.int64)]) == (slice(0, 1), slice(0, 1))


def test_unknown_tokens_are_marked() -> None:
    row = arc_tokens(_GRID).astype(np.int32)
    assert f'stroke="{WRONG}"' not in _large("arc", row, row)
    for token in (12, 77, -5):
        row[0] = token
        assert f'stroke="{WRONG}"' in _large("arc", row, row)


def test_padding_alone_is_drawn() -> None:
    nothing = np.zeros(900, np.uint8)
    assert "input without colours" in texts(_large("arc", nothing, nothing))
    border = np.ones(900, np.uint8)
    assert "output without colours" in texts(_large("arc", nothing, border))


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_picture_is_small(seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 2 + 10, (2, 900))
    assert len(_large("arc", *noise)) < 60_000


_MAZE, _PATH = maze().inputs[0], maze().labels[0]


def test_walls_path_start_and_goal_are_drawn() -> None:
    svg = _large("maze", _MAZE, _PATH, title="m", notes=["n"])
    # Cells of 24 units from (16, 54): one wall above, a row of walls below.
    assert (
        f'd="M40 54h24v24h-24zM40 78h24v24h-24zM88 102h24v24h-24zM16 126h96v24h-96z" fill="{WALLS}"'
        in svg
    )
    assert f'd="M16 78h24v24h-24zM64 78h24v24h-24zM16 102h72v24h-72z" fill="{ROUTE}"' in svg
    assert WRONG not in svg
    assert texts(svg) == ["m", "4 × 4, path of 5 cells", "S", "G", "n"]


@pytest.mark.parametrize(("at", "token"), [(1, 5), (0, 5), (2, 1), (2, 0), (2, 9)])
def test_a_label_may_only_make_path_of_space(at: int, token: int) -> None:
    label = _PATH.astype(np.int64)
    assert not contradicted(square(_MAZE.astype(np.int64)), square(label)).any()
    label[at] = token
    wrong = contradicted(square(_MAZE.astype(np.int64)), square(label))
    assert np.flatnonzero(wrong).tolist() == [at]
    assert WRONG in _large("maze", _MAZE, label)


@pytest.mark.parametrize("token", [0, 5, 6, -1])
def test_unknown_tokens_of_the_input_are_red(token: int) -> None:
    both = _MAZE.astype(np.int64)
    both[3] = token
    assert contradicted(square(both), square(both)).reshape(-1)[3]


def test_tokens_that_are_no_square_are_refused() -> None:
    with pytest.raises(ValueError, match="15 tokens are no square"):
        square(np.zeros(15, np.int64))


def test_many_starts_do_not_make_a_large_picture() -> None:
    everywhere = np.full(900, 3, np.uint8)
    assert len(_large("maze", everywhere, everywhere)) < 5_000


_GIVENS, _SOLUTION = sudoku().inputs[0], sudoku().labels[0]


def _group(svg: str, fill: str) -> list[str]:
    groups = re.findall(rf'<g [^>]*fill="{fill}"[^>]*>(.*?)</g>', svg)
    return re.findall(r">([^<]+)</text>", "".join(groups))


def test_givens_and_filled_digits_differ() -> None:
    svg = _large("sudoku", _GIVENS, _SOLUTION, title="one", notes=["a note"])
    # Both boards have the givens; only the solution has the other digits.
    assert len(_group(svg, GIVEN)) == 60
    added = [cell for cell, given in zip(ANSWER, _GIVENS, strict=True) if given == 1]
    assert _group(svg, ADDED) == added
    assert not _group(svg, WRONG)
    assert {"one", "a note", "30 givens", "solution, 51 digits filled in"} <= set(texts(svg))


@pytest.mark.parametrize(
    ("at", "token", "marked"),
    [
        (3, 7, 3),  # a given 1 became 6: red with the 6 of its row, and that of its column
        (2, 1, 0),  # a blank in the solution has no digit to show
        (2, 99, 1),
        (2, 0, 0),
    ],
)
def test_wrong_cells_are_red(at: int, token: int, marked: int) -> None:
    label = _SOLUTION.copy()
    label[at] = token
    svg = _large("sudoku", _GIVENS, label)
    assert "#fbd9d7" in svg
    assert len(_group(svg, WRONG)) == marked


def test_digits_that_are_twice_are_found() -> None:
    board = np.ones((9, 9), np.int64)
    assert not twice(board).any()
    for row, column in ((0, 8), (8, 0), (1, 1)):
        pair = board.copy()
        pair[0, 0] = pair[row, column] = 6
        assert np.argwhere(twice(pair)).tolist() == sorted([[0, 0], [row, column]])
    apart = board.copy()
    apart[0, 0] = apart[4, 5] = 6
    assert not twice(apart).any()


def test_tokens_are_read_as_digits() -> None:
    shown = [digit(token) for token in (0, 1, 2, 10, 11, -1)]
    assert shown == ["", "", "1", "9", "?", "?"]


LENGTHS = {"arc": 900, "sudoku": 81, "maze": 900, "domino": 72}


@pytest.mark.parametrize("kind", LENGTHS)
def test_small_pictures_have_a_title(kind: str) -> None:
    small = SMALL[kind]()
    svg = _small(kind, small.inputs[0], small.labels[0], "train 0 " + "x" * 90)
    assert svg is not None
    is_right(svg, OVERVIEW)
    assert texts(svg)[0].startswith("train 0 xxx")
    assert len(markdown.inline_image("example", svg)) <= markdown.INLINE


@pytest.mark.parametrize("kind", LENGTHS)
def test_rows_of_any_tokens_are_drawn(kind: str) -> None:
    generator = np.random.default_rng(5)
    for low, high in ((0, 1), (0, 14), (-9, 300), (11, 12)):
        rows = generator.integers(low, high, (2, LENGTHS[kind]))
        svg = _small(kind, rows[0], rows[1], "t")
        assert svg is not None
        is_right(svg, OVERVIEW)


def test_other_kinds_and_lengths_have_none() -> None:
    assert _small("towers", [1] * 81, [1] * 81, "t") is None
    assert _small("sudoku", [1] * 80, [1] * 80, "t") is None


def test_a_sudoku_has_its_givens_in_their_cells() -> None:
    given = np.ones(81, dtype=int)
    given[[0, 8, 40]] = [2, 10, 6]
    svg = _small("sudoku", given, given, "t")
    assert svg is not None
    assert texts(svg) == ["t", "3 givens", "19", "5"]
    assert "<text x='0 8' y='0'>19</text><text x='4' y='4'>5</text>" in svg


def test_a_small_maze_has_walls_path_start_and_goal() -> None:
    given = np.array([1, 3, 2, 4])
    svg = _small("maze", given, np.array([1, 3, 5, 4]), "t")
    assert svg is not None
    assert texts(svg)[1] == "2 × 2, path of 1"
    # Colours as they lie over each other: wall, path, start, goal.
    assert _cells(svg) == [[0, 2], [1, 3]]


def test_a_pair_of_arc_has_its_output_beside_its_input() -> None:
    given, wanted = np.zeros((2, 30, 30), dtype=int)
    given[0, :2], wanted[0, :2] = [2, 5], [5, 2]
    svg = _small("arc", given.ravel(), wanted.ravel(), "t")
    assert svg is not None
    assert texts(svg)[1] == "1 × 2 → 1 × 2"
    assert _cells(svg) == [[1, 2, 0, 2, 1]]


def test_a_hand_of_domino_says_the_move() -> None:
    given = np.zeros(72, dtype=int)
    given[56:60], given[70:] = [4, 5, 1, 7], [4, 7]
    svg = _small("domino", given, np.array([4, 5, 1, *[0] * 69]), "t")
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


def _lines(kind: str, given: object, wanted: object, width: int = 100) -> list[str]:
    """The text that a terminal without colours shows."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(drawing(kind, np.asarray(given), np.asarray(wanted)).in_terminal())
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_grids_of_arc_are_digits_with_their_border() -> None:
    small = SMALL["arc"]()
    assert _lines("arc", small.inputs[0], small.labels[0])[:4] == [
        "input 2 × 3    output 1 × 1",
        "2 1 0 ·        9 ·",
        "3 3 4 ·        ·",
        "· · ·",
    ]


def test_a_grid_that_was_moved_says_where_it_begins() -> None:
    small = SMALL["arc"]()
    lines = _lines("arc", small.inputs[2], small.labels[2])
    assert lines[0] == "input 2 × 3 at (2, 5)    output 1 × 1 at (2, 5)"
    assert lines[1] == "0 1 3 ·                  9 ·"


def test_grids_are_below_each_other_where_the_terminal_is_narrow() -> None:
    small = SMALL["arc"]()
    lines = _lines("arc", small.inputs[0], small.labels[0], width=20)
    assert lines.index("input 2 × 3") < lines.index("output 1 × 1")


def test_a_token_that_is_no_colour_is_a_question_mark() -> None:
    small = SMALL["arc"]()
    row = small.inputs[0].copy()
    row[0] = 12
    assert _lines("arc", row, small.labels[0])[1].startswith("? 1 0 ·")


def test_boards_of_sudoku_are_next_to_each_other() -> None:
    small = sudoku()
    lines = _lines("sudoku", small.inputs[0], small.labels[0])
    assert lines[0] == "30 givens                 solution, givens bold, ! against the rules"
    assert lines[1] == ". . . │ 1 . 7 │ . 9 .     6 4 8 │ 1 5 7 │ 2 9 3"
    assert lines[4] == "──────┼───────┼──────     ──────┼───────┼──────"
    assert len([line for line in lines if line]) == 12
    assert not any("!" in line for line in lines[1:])


def test_digits_against_the_rules_are_marked() -> None:
    small = sudoku()
    label = small.labels[0].copy()
    label[3] = 7
    label[80] = 1
    lines = _lines("sudoku", small.inputs[0], label)
    assert lines[1].endswith("6!4 8 │ 6!5 7 │ 2 9 3")
    assert lines[11].endswith("3 6 .!")


def test_a_maze_has_walls_path_start_and_goal() -> None:
    small = maze()
    assert _lines("maze", small.inputs[0], small.labels[0])[:5] == [
        "4 × 4, path of 5 cells",
        "S ██",
        "o ██o G",
        "o o o ██",
        "████████",
    ]


def test_a_path_through_a_wall_is_marked() -> None:
    small = maze()
    label = small.labels[0].copy()
    label[1] = 5
    assert _lines("maze", small.inputs[0], label)[1] == "S ?!"


def test_a_hand_shows_what_can_be_played_and_what_is() -> None:
    small = SMALL["domino"]()
    assert _lines("domino", small.inputs[0], small.labels[0])[:8] == [
        "table, each tile turned so that equal halves meet",
        "  5 ← [5|1][1|3][3|3] → 3",
        "hand: * can be played, >> the label",
        "    [0|0]",
        ">>* [5|6]",
        "    [2|4]",
        "  * [3|6]",
        "play 5-6 left",
    ]


def test_every_tile_can_be_played_on_an_empty_table() -> None:
    given, wanted = domino_tokens([], [(0, 0), (1, 2)], (-1, -1), (1, 2, 3))
    lines = _lines("domino", given, wanted)
    assert lines[1:5] == [
        "  – ← (empty) → –",
        "hand: * can be played, >> the label",
        "  * [0|0]",
        ">>* [1|2]",
    ]


def test_a_tile_that_breaks_the_chain_is_marked() -> None:
    given, wanted = domino_tokens([(1, 5), (0, 3)], [(3, 5)], (5, 3), (3, 5, 1))
    assert "[5|1][0|3]!" in _lines("domino", given, wanted)[1]


def test_other_kinds_are_numbers() -> None:
    assert _lines("towers", [3, 0, 140], [1, 2, 3])[:2] == [
        "input, 3 tokens, 0 is ·",
        "  3   · 140",
    ]
    assert any("… and 76 more tokens" in line for line in _lines("x", [1] * 1100, [2] * 1100))


@pytest.mark.parametrize("kind", SMALL)
def test_any_tokens_are_shown(kind: str) -> None:
    small = SMALL[kind]()
    noise = np.random.default_rng(2).integers(-4, 2**31 - 1, (5, 2, small.inputs.shape[1]))
    for given, wanted in noise:
        assert _lines(kind, given, wanted)


@pytest.mark.parametrize("kind", ["arc", "sudoku", "maze", "domino"])
def test_colours_are_used_where_the_terminal_has_them(kind: str) -> None:
    small = SMALL[kind]()
    console = Console(file=io.StringIO(), width=100, color_system="truecolor", force_terminal=True)
    console.print(drawing(kind, small.inputs[0], small.labels[0]).in_terminal())
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[" in console.file.getvalue()


# The reports of datasets are published with these pictures.
BYTES = {
    "arc": "5a02a3b5154a05ad",
    "sudoku": "ad18c3e38c062e90",
    "maze": "105d9834770cc4f0",
    "domino": "906c99817d9c2d11",
    "towers": "cc211fccef704017",
}


@pytest.mark.parametrize("kind", SMALL)
def test_large_pictures_keep_their_bytes(kind: str) -> None:
    small = SMALL[kind]()
    pairs = zip(small.inputs, small.labels, strict=True)
    drawn = "".join(_large(kind, *pair, title="t", notes=["n"]) for pair in pairs)
    assert hashlib.sha256(drawn.encode()).hexdigest()[:16] == BYTES[kind]


def test_only_some_starts_have_their_letter() -> None:
    everywhere = np.full(25, 3)
    assert texts(_large("maze", everywhere, everywhere)).count("S") == 4
