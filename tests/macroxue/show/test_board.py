"""Pictures of packs: what they show is in them, they stay small, and nothing escapes its place."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gristmill import markdown
from gristmill.macroxue.builders.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.rules.moves import DIRECTIONS
from gristmill.macroxue.samples import write_drop
from gristmill.macroxue.show.board import (
    bar_lengths,
    board_svg,
    safe_name,
    small_step_svg,
    step_svg,
    step_text,
    step_title,
    tile_colours,
)
from gristmill.svg import OVERVIEW
from tests.drawings import SVG, is_right, texts
from tests.macroxue.games import play, write_pack


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    write_drop(root / "drop", 1273930896, 4, 90, 7, legacy=True)
    pack(root / "drop", root / "pack", PackConfig(shard_rows=50, workers=1))
    return root / "pack"


def test_a_board_shows_its_tiles_its_move_and_its_evs() -> None:
    svg = board_svg([1, 2, 11, 12, *[0] * 11, 17], 3, [1.5, 0.0, -2.25, 1234.5], 0b1101, title="t")
    shown = texts(svg)
    assert [text for text in shown if text.isdigit()] == ["2", "4", "2048", "4096", "131072"]
    assert shown.count("illegal") == 1
    assert {"1.500", "-2.250", "1,234.500", "→ right"} <= set(shown)
    # 4096 is darker than every tile of the original game; the right arrow is turned by 90.
    assert 'fill="#3c3a32"' in svg
    assert "rotate(90)" in svg
    turns = [re.search(r"rotate\((\d+)\)", board_svg([0] * 16, k, [0.0] * 4, 15)) for k in range(4)]
    assert [match and match[1] for match in turns] == ["0", "180", "270", "90"]


def test_text_cannot_leave_its_place() -> None:
    wicked = '</text><script>alert(1)</script>&"'
    svg = board_svg([0] * 16, 0, [0.0] * 4, 15, title=wicked, notes=[wicked])
    assert texts(svg).count(wicked) == 2
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))


@pytest.mark.parametrize(
    ("evs", "legal", "absolute", "lengths"),
    [
        ([1.0, 2.0, 3.0, 9.0], 0b0111, False, [0.1, 0.55, 1.0, 0.0]),
        ([5.0, 5.0, 0.0, 0.0], 0b0011, False, [1.0, 1.0, 0.0, 0.0]),
        ([0.25, 1.0, 1.5, 0.5], 0b0111, True, [0.25, 1.0, 1.0, 0.0]),
        ([float("inf"), 1.0, float("nan"), float("-inf")], 15, False, [1.0, 1.0, 0.0, 0.1]),
        ([1.0, 2.0, 3.0, 4.0], 0, False, [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_bar_lengths(evs: list[float], legal: int, absolute: bool, lengths: list[float]) -> None:
    assert bar_lengths(evs, legal, absolute) == pytest.approx(lengths)
    assert "illegal" in board_svg([0] * 16, 0, evs, legal, absolute=absolute) or legal == 15


@pytest.mark.parametrize("ranks", [[0] * 15, [0] * 17])
def test_a_board_has_sixteen_cells(ranks: list[int]) -> None:
    with pytest.raises(ValueError, match="16 ranks"):
        board_svg(ranks, 0, [0.0] * 4, 15)


def test_the_terminal_shows_the_same(folder: Path) -> None:
    step = Pack(folder).step(40)
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(step_text(step))
    shown = console.export_text()
    assert f"run {step.run.id} · step {step.step_index}" in shown
    board = "".join(line[:32] for line in shown.splitlines())
    assert [int(number) for number in board.split()] == [1 << rank for rank in step.ranks if rank]
    assert shown.count("illegal") == 4 - bin(step.legal).count("1")
    assert f"row {step.row}" in shown


def test_large_tiles_have_light_text() -> None:
    assert [tile_colours(rank)[1] == tile_colours(0)[1] for rank in (1, 2, 3, 12)] == [
        True, True, False, False
    ]  # fmt: skip


def test_values_of_tuple_rows_are_drawn_as_chances(tmp_path: Path) -> None:
    opened = Pack(write_pack(tmp_path / "pack", [play(0, 8)]))
    search, chances = opened.step(0), opened.step(3)
    assert (search.valuation, chances.valuation[:5]) == ("search", "tuple")
    for step, absolute in ((search, False), (chances, True)):
        widths = [190 * length for length in bar_lengths(step.evs, step.legal, absolute) if length]
        bars = re.findall(r'd="([^"]+)" stroke="#(?:ff9070|c9b8a4)"', step_svg(step))
        drawn = re.findall(r"h([\d.]+)", "".join(bars))
        # Without the round ends, 3.5 pixels on each side.
        assert sorted(drawn) == sorted(f"{max(7, width) - 7:.1f}" for width in widths)


def test_names_are_cut_to_24_characters() -> None:
    assert safe_name("a" * 30) == "a" * 24
    assert safe_name("tuple_11 <b>`|") == "tuple_11 ?b???"


def test_a_small_board_has_each_number_in_its_cell_and_fits_the_overview(tmp_path: Path) -> None:
    opened = Pack(write_pack(tmp_path / "pack", [play(0, 40)]))
    for row in range(len(opened)):
        step = opened.step(row)
        svg = small_step_svg(step)
        is_right(svg, OVERVIEW)
        title, *lines = texts(svg)
        assert title == f"{step_title(step)} · {'↑↓←→'[step.move]} {DIRECTIONS[step.move]}"
        shown = [line[6 * k : 6 * k + 6].strip("\xa0") for line in lines for k in range(4)]
        assert shown == [str(1 << rank) if rank else "" for rank in step.ranks]
        assert len(markdown.inline_image("run 0", svg)) <= markdown.INLINE


def test_the_largest_tiles_of_a_small_board_share_a_colour(tmp_path: Path) -> None:
    opened = Pack(write_pack(tmp_path / "pack", [play(0, 8)]))
    ranks = tuple(range(16))
    svg = small_step_svg(replace(opened.step(0), ranks=ranks))
    assert "65536" not in svg
    assert "32768" in svg
    is_right(svg, OVERVIEW)
