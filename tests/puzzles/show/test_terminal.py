"""An example in a terminal."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gristmill.contract import BadInput
from gristmill.puzzles.show.terminal import shown
from tests.puzzles.small_datasets import SMALL, arc, broken, write

Small = Callable[[str], Path]


def _shown(folder: Path, row: int, split: str = "train") -> list[str]:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    for part in shown(folder, row, split):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_an_example_of_arc_is_shown_with_its_source(small: Small) -> None:
    lines = _shown(small("arc"), 2, "test")
    assert lines[0] == ("test all 2 · identifier 2 1a2b3c4d_t4_0132456789 · puzzle 1 · group 0")
    assert lines[1] == "arc/training/1a2b3c4d.json, pair 0"
    assert lines[2].startswith("augmentation 3; task: 1a2b3c4d; symmetry: 4: mirrored left and r")
    assert lines[-1] == "breaks no rule"


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_is_shown(small: Small, kind: str) -> None:
    lines = _shown(small(kind), 0)
    assert lines[0].startswith("train all 0 · identifier ")
    assert "not augmented" in lines[2]


def test_the_rules_that_a_row_breaks_are_shown(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", broken(SMALL["towers"](), 1, 2, 200))
    assert _shown(folder, 1)[-1] == "breaks: label token 200 at position 2 is outside of 0 to 8"


def test_rules_that_were_not_looked_at_are_named(tmp_path: Path) -> None:
    towers, sudoku = SMALL["towers"](), SMALL["sudoku"]()
    assert _shown(write(tmp_path / "a", towers), 1)[-2:] == [
        "not checked: the rules of towers: Gristmill has none for this kind",
        "breaks no rule of the contract",
    ]
    assert _shown(write(tmp_path / "b", replace(sudoku, origins=None)), 0)[-2:] == [
        "not checked: the rules of its puzzle: without a trace its kind is not known",
        "breaks no rule of the contract",
    ]
    lines = _shown(write(tmp_path / "c", broken(sudoku, 0, 2, 200)), 0)
    assert lines[-2] == "not checked: the rules of sudoku: the row breaks the contract"
    assert lines[-1].startswith("breaks: label token 200 at position 2 is outside of 0 to")
    lines = _shown(write(tmp_path / "d", sudoku), 0)
    assert lines[-1] == "breaks no rule"
    assert not any("not checked" in line for line in lines)


def test_a_dataset_of_others_is_shown_as_tokens(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", replace(SMALL["sudoku"](), origins=None))
    lines = _shown(folder, 0)
    assert lines[1] == "no trace: where it came from is not known"
    assert "input, 81 tokens, 0 is ·" in lines[2]


def test_a_row_whose_trace_is_broken_is_shown(tmp_path: Path) -> None:
    wrong = arc()
    inputs = wrong.inputs.copy()
    inputs[0] = 0
    lines = _shown(write(tmp_path / "d", replace(wrong, inputs=inputs)), 0)
    assert (
        lines[1] == "no trace: the augmentation of example 0 cannot be read: no cell has a colour"
    )
    assert lines[-1] == "breaks: input: no cell has a colour"


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    hostile = "evil\x1b[31m[red]"
    folder = write(tmp_path / "d", arc(hostile))
    text = "\n".join(_shown(folder, 0))
    assert "\x1b" not in text
    assert "evil\N{REPLACEMENT CHARACTER}[31m[red]" in text


def test_no_such_example_is_said(small: Small) -> None:
    with pytest.raises(BadInput, match="no example 9"):
        _shown(small("maze"), 9)
