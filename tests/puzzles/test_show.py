"""The tables of datasets: what chooses them, what they draw, and which row the page draws."""

import base64
import io
import re
import zlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console

from gristmill import markdown
from gristmill.browse.opening import open_table
from gristmill.browse.source import OF_CONTENTS
from gristmill.contract import GristmillError
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.show import WRONG, Drawing, Hand, drawing, facts_of, sample, tables
from gristmill.svg import OVERVIEW
from tests.drawings import is_right, texts
from tests.puzzles.small_datasets import (
    SMALL,
    Small,
    arc,
    arc_tokens,
    domino_tokens,
    maze,
    sudoku,
    write,
)


class _Files:
    def checked(self, name: str) -> None:
        """Files without a record."""


@pytest.mark.parametrize("kind", SMALL)
def test_each_set_of_each_split_is_a_table_that_options_choose(tmp_path, kind):
    folder = write(tmp_path / kind, SMALL[kind]())
    found = list(tables(f"puzzles/{kind}", folder, _Files()))  # type: ignore[arg-type]
    assert [each.name for each in found] == ["train/all", "test/all"]
    for each, split in zip(found, ("train", "test"), strict=True):
        assert each.chosen == {"split": split, "set": "all"}
        (record,) = each.open().read(0, 1, 1.0)
        drawn, pictures = list(each.drawn(record, {})), each.pictures(record)
        assert len(drawn) == len(pictures) == (kind != "towers")
        if pictures:
            assert texts(pictures[0].svg)[0].startswith(f"{split} 0")


def test_names_cannot_steer_a_page_or_a_terminal(tmp_path):
    folder = write(tmp_path / "arc", arc("evil\x1b[31m<b>"))
    first = next(iter(tables("puzzles/arc", folder, _Files())))  # type: ignore[arg-type]
    (record,) = first.open().read(0, 1, 1.0)
    assert (
        "\x1b" not in first.pictures(record)[0].svg and "<b>" not in first.pictures(record)[0].svg
    )
    console = Console(color_system=None, width=80)
    with console.capture() as capture:
        console.print(*first.drawn(record, {}))
    assert "\x1b" not in capture.get()


def _noise(rows: int, drawable: int) -> Small:
    """Pairs of ARC of which one alone is small."""
    tokens = np.random.default_rng(0).integers(2, 12, (rows, 900)).astype(np.uint8)
    if drawable < rows:
        tokens[drawable] = SMALL["arc"]().inputs[0]
    return Small(
        kind="arc",
        inputs=tokens,
        labels=tokens,
        vocab_size=12,
        identifiers=[0] * rows,
        examples=[1] * rows,
        puzzles=[1] * rows,
        origins=[(-1, row, 0) for row in range(rows)],
    )


@pytest.mark.parametrize(("drawable", "expected"), [(0, 0), (3, 3), (25, 0), (99, 0)])
def test_the_page_draws_the_first_row_whose_picture_fits(tmp_path, drawable, expected):
    assert sample(write(tmp_path / "d", _noise(30, drawable))) == expected


def test_the_page_of_a_kind_without_a_drawing_has_the_first_row(tmp_path):
    assert sample(write(tmp_path / "d", SMALL["towers"]())) == 0


@pytest.mark.parametrize("config", [{"height": "x"}, {"height": 1, "width": 7}])
def test_the_page_of_a_damaged_dataset_has_no_row(tmp_path, config):
    small = replace(SMALL["towers"](), kind="grid", config=config, origins=[(-1, 0, 0)] * 2)
    with pytest.raises((GristmillError, *OF_CONTENTS)):
        sample(write(tmp_path / "d", small))


def test_the_lines_on_a_folder_count_what_is_in_it(tmp_path):
    folder = write(tmp_path / "d", replace(arc(), origins=None))
    lines = list(facts_of("puzzles/arc", folder))
    assert lines[0] == "train/all: 1 group, 2 puzzles, 4 examples"
    assert lines[-1] == "identifiers.json: 3 names"
    assert any(line.startswith("test/dataset.json: pad_id 0, ") for line in lines)
    assert Dataset(folder).kind is None and open_table(folder, name="train/all").count == 4


GRIDS = {"alphabet": ".<a", "values": None, "pad": ".", "height": 3, "width": 4}
LENGTHS = {"arc": 900, "sudoku": 81, "maze": 900, "domino": 72}


def _svg(kind: str, given: npt.ArrayLike, wanted: npt.ArrayLike, title: str = "t") -> str:
    drawn = drawing(kind, given, wanted, GRIDS)
    assert drawn is not None
    return drawn.svg(title)


def _lines(kind: str, given: npt.ArrayLike, wanted: npt.ArrayLike) -> list[str]:
    """What a terminal without colours shows."""
    drawn = drawing(kind, given, wanted, GRIDS)
    assert drawn is not None
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(drawn.in_terminal())
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def _cells(svg: str) -> list[list[int]]:
    """The numbers of the colours of a bitmap."""
    found = re.search(r"base64,([^']+)'", svg)
    assert found
    data = base64.b64decode(found[1])
    wide, tall, depth = data[16:20], data[20:24], data[24]
    at = data.index(b"IDAT")
    length = int.from_bytes(data[at - 4 : at], "big")
    pixels = zlib.decompress(data[at + 4 : at + 4 + length])
    columns = int.from_bytes(wide, "big")
    size = 1 + -(-columns * depth // 8)
    lines = []
    for row in range(int.from_bytes(tall, "big")):
        bits = "".join(f"{byte:08b}" for byte in pixels[row * size + 1 : (row + 1) * size])
        lines.append([int(bits[depth * k : depth * (k + 1)], 2) for k in range(columns)])
    return lines


@pytest.mark.parametrize(
    ("kind", "seq_len", "drawn"),
    [
        ("arc", 900, Drawing),
        ("arc", 899, None),
        ("sudoku", 81, Drawing),
        ("sudoku", 16, None),
        ("maze", 900, Drawing),
        ("maze", 16, Drawing),
        ("maze", 17, None),
        ("maze", 0, None),
        ("maze", 1_000_000, None),
        ("domino", 72, Hand),
        ("domino", 73, None),
        ("towers", 81, None),
        ("", 900, None),
    ],
)
def test_the_kind_and_the_length_choose(kind, seq_len, drawn):
    found = drawing(kind, [1] * seq_len, [1] * seq_len)
    assert found is None if drawn is None else isinstance(found, drawn)


def test_grids_are_drawn_without_padding_unless_they_are_too_large():
    assert isinstance(drawing("grid", [1] * 12, [1] * 12, GRIDS), Drawing)
    for config in ({**GRIDS, "height": 4}, {}):
        assert drawing("grid", [1] * 12, [1] * 12, config) is None
    wide = {**GRIDS, "height": 1, "width": 200}
    assert drawing("grid", [1] * 200, [1] * 200, wide) is None
    lines = _lines("arc", arc_tokens([[0, 1], [2, 3]], 2, 5), arc_tokens([[9]], 2, 5))
    assert lines[0] == "input 2 × 2 at (2, 5)    output 1 × 1 at (2, 5)"
    assert lines[1] == "0 1 ·                    9 ·"
    apart = _lines("arc", arc_tokens([[4]], 2, 5), arc_tokens([[9]], 1, 0))
    assert apart[0].endswith("output 1 × 1 at (1, 0)")
    assert apart[2].startswith("          4 ·")
    nothing, border = np.zeros(900, int), np.ones(900, int)
    assert texts(_svg("arc", nothing, border))[1] == "no colours → no colours"
    for token in (12, 77, -5):
        row = arc_tokens([[0, 1]]).astype(int)
        row[0] = token
        assert _lines("arc", row, row)[1].startswith("? 1 ·")


@pytest.mark.parametrize("kind", LENGTHS)
def test_a_picture_has_a_title_and_fits_where_the_page_stands(kind):
    small = SMALL[kind]()
    svg = _svg(kind, small.inputs[0], small.labels[0], "train 0 <b>" + "x" * 90)
    is_right(svg, OVERVIEW)
    assert texts(svg)[0].startswith("train 0 <b>xxx")
    assert len(markdown.image("example", svg)) <= markdown.INLINE
    assert svg == _svg(
        kind, small.inputs[0].astype(np.int32), small.labels[0], "train 0 <b>" + "x" * 90
    )


@pytest.mark.parametrize("kind", LENGTHS)
def test_rows_of_any_tokens_are_drawn(kind):
    generator = np.random.default_rng(5)
    for low, high in ((0, 1), (0, 14), (-9, 300), (11, 12), (-4, 2**31 - 1)):
        rows = generator.integers(low, high, (2, LENGTHS[kind]))
        is_right(_svg(kind, rows[0], rows[1]), OVERVIEW)
        assert _lines(kind, rows[0], rows[1])


@pytest.mark.parametrize("kind", LENGTHS)
def test_colours_are_used_where_the_terminal_has_them(kind):
    small = SMALL[kind]()
    console = Console(file=io.StringIO(), width=100, color_system="truecolor", force_terminal=True)
    drawn = drawing(kind, small.inputs[0], small.labels[0])
    assert drawn is not None
    console.print(drawn.in_terminal())
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[" in console.file.getvalue()


def test_pairs_mazes_and_grids_are_drawn_in_their_colours():
    given, wanted = arc_tokens([[0, 3]]), arc_tokens([[3, 0]])
    svg = _svg("arc", given, wanted)
    assert texts(svg)[1] == "1 × 2 → 1 × 2"
    # By the order of the tokens: the gap, padding, border, colours 0 and 3.
    assert _cells(svg) == [[3, 4, 2, 0, 4, 3, 2], [2, 2, 1, 0, 2, 2, 1]]
    assert _lines("arc", given, wanted) == [
        "input 1 × 2    output 1 × 2",
        "0 3 ·          3 0 ·",
        "· ·            · ·",
    ]
    given = np.array([1, 3, 2, 4])
    svg = _svg("maze", given, np.array([1, 3, 5, 4]))
    assert texts(svg)[1] == "2 × 2, path of 1"
    # Colours as they lie over each other: wall, path, start, goal.
    assert _cells(svg) == [[0, 2], [1, 3]]
    small = maze()
    assert _lines("maze", small.inputs[0], small.labels[0])[:5] == [
        "4 × 4, path of 5 cells",
        "S ██",
        "o ██o G",
        "o o o ██",
        "████████",
    ]
    given, wanted = [1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    svg = _svg("grid", given, wanted, "a <grid>")
    assert texts(svg) == ["a <grid>", "2 × 2 → 1 × 1"]
    assert _cells(svg) == [[2, 3, 0, 3, 1], [1, 2, 0, 1, 1]]
    lines = _lines("grid", given, wanted)
    assert lines[1] == "< a            a" and lines[2] == "  <"
    assert _lines("grid", [3, *given[1:]], wanted)[1].startswith("? a")


@pytest.mark.parametrize(("at", "token"), [(1, 5), (0, 5), (2, 1), (2, 0), (2, 9)])
def test_a_label_may_only_make_path_of_space(at, token):
    small = maze()
    label = small.labels[0].astype(int)
    assert "?!" not in "".join(_lines("maze", small.inputs[0], label))
    label[at] = token
    lines = _lines("maze", small.inputs[0], label)[1:]
    assert "".join(line.ljust(8) for line in lines).index("?!") == 2 * at


@pytest.mark.parametrize("token", [0, 5, 6, -1])
def test_unknown_tokens_of_the_input_are_marked(token):
    both = maze().inputs[0].astype(int)
    both[3] = token
    assert _lines("maze", both, both)[1].endswith("?!")


def test_a_sudoku_has_its_givens_and_in_a_terminal_its_solution_and_what_is_wrong():
    given = np.ones(81, dtype=int)
    given[[0, 8, 40]] = [2, 10, 6]
    svg = _svg("sudoku", given, given)
    assert texts(svg) == ["t", "3 givens", "19", "5"]
    assert "<text x='0 8' y='0'>19</text><text x='4' y='4'>5</text>" in svg
    small = sudoku()
    lines = _lines("sudoku", small.inputs[0], small.labels[0])
    assert lines[0].startswith("30 givens") and "solution, givens bold" in lines[0]
    assert lines[1] == ". . . │ 1 . 7 │ . 9 .     6 4 8 │ 1 5 7 │ 2 9 3"
    assert lines[4].startswith("──────┼───────┼──────")
    label = small.labels[0].copy()
    label[3] = 7  # a given 1 becomes 6, with the 6 of its row and of its column
    lines = _lines("sudoku", small.inputs[0], label)
    assert lines[1].endswith("6!4 8 │ 6!5 7 │ 2 9 3")
    for token, shown in ((1, ".!"), (0, ".!"), (99, "?!")):
        label = small.labels[0].astype(int)
        label[2] = token  # a blank in the solution has no digit to show
        assert f"6 4 {shown}│ 1 5 7" in _lines("sudoku", small.inputs[0], label)[1]


@pytest.mark.parametrize(("row", "column"), [(0, 8), (8, 0), (1, 1)])
def test_a_digit_that_is_twice_in_a_row_column_or_box_is_marked(row, column):
    board = np.ones((9, 9), int)
    board[0, 0] = board[4, 5] = 6
    empty = np.ones(81, int)
    assert "5!" not in "".join(_lines("sudoku", board.ravel(), empty))
    board[row, column] = 6
    assert "".join(_lines("sudoku", board.ravel(), empty)).count("5!") == 2


def test_a_hand_of_domino_shows_what_can_be_played_and_what_is():
    given, wanted = domino_tokens([(3, 6)], [(3, 4), (0, 6)], (3, 6), (3, 4, 1))
    svg = _svg("domino", given, wanted)
    assert texts(svg) == ["t", "ends 3 and 6 · play 3-4 left", "34", "06"]
    assert svg.count("M10 2h48v24h-48z") == 2
    assert svg.count("M62 2h48v24h-48z") == 1
    small = SMALL["domino"]()
    assert _lines("domino", small.inputs[0], small.labels[0]) == [
        "table: [5|1][1|3][3|3]",
        "hand: * can be played, >> the label",
        "    [0|0]",
        ">>* [5|6]",
        "    [2|4]",
        "  * [3|6]",
        "play 5-6 left",
    ]
    given, wanted = domino_tokens([(1, 5), (0, 3)], [(3, 5)], (5, 3), (3, 5, 1))
    assert _lines("domino", given, wanted)[0] == "table: [5|1][0|3]!", "it breaks the chain"
    given, wanted = domino_tokens([], [(0, 0), (1, 2)], (-1, -1), (1, 2, 3))
    assert _lines("domino", given, wanted) == [
        "table: empty",
        "hand: * can be played, >> the label",
        "  * [0|0]",
        ">>* [1|2]",
        "play 1-2 first",
    ]
    assert texts(_svg("domino", given, wanted))[1] == "empty table · play 1-2 first"
    assert WRONG not in _svg("domino", given, wanted)


@pytest.mark.parametrize(
    ("played", "words"),
    [
        ((5, 6, 1), "play 5-6 left"),
        ((3, 6, 2), "play 3-6 right"),
        ((0, 0, 3), "play 0-0 first"),
        ((-1, -1, 0), "no move"),
        ((5, 6, 7), "play 5-6 position 7"),
        ((5, 8, 1), "play 5-? left"),
    ],
)
def test_the_move_is_said(played, words):
    given, wanted = domino_tokens([(5, 5)], [(5, 6)], (5, 5), played)
    assert _lines("domino", given, wanted)[-1] == words
