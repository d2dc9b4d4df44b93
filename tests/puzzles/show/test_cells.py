"""Runs of cells, texts that fit, and the sheet."""

import re

import numpy as np

from gristmill.puzzles.show.cells import cells, filled, fitted, sheet, wrapped
from tests.drawings import texts


def test_a_run_of_cells_is_one_rectangle() -> None:
    mask = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    assert cells(mask, 10, 20, 5) == ("M10 20h10v5h-10zM25 20h5v5h-5zM10 30h20v5h-20z")


def test_no_cell_is_no_element() -> None:
    assert filled(np.zeros((2, 2), bool), 0, 0, 1, "red") == ""


def test_a_text_that_fits_stays_and_a_longer_one_is_cut() -> None:
    assert fitted("abcdef", 1000, 10) == "abcdef"
    assert fitted("abcdefghij", 30, 10) == "abcd…"


def test_a_note_takes_three_lines_at_most() -> None:
    assert wrapped("one two", 1000, 11) == ["one two"]
    assert wrapped("", 1000, 11) == [""]
    lines = wrapped("word " * 40, 100, 11)
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert all(len(line) <= 16 for line in lines)


def test_a_sheet_escapes_all_texts_and_grows_with_its_notes() -> None:
    def made(notes: list[str]) -> str:
        return sheet(
            400, 100, (), title="<b>&", captions=[(16.0, "<i>")], notes=notes, label="<script>"
        )

    drawing = made(["</svg>", "two"])
    assert texts(drawing) == ["<b>&", "<i>", "</svg>", "two"]
    assert "<script>" not in drawing
    tall, low = (int(re.findall(r'height="(\d+)"', made(notes))[0]) for notes in (["", ""], [""]))
    assert tall - low == 16
