"""An example in a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gristmill.contract import BadInput
from gristmill.families import Misuse, Request
from gristmill.puzzles.read.example import Example, example
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.show.terminal import findings, place_of, shown, traced_example
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
    assert lines[1] == "arc/training/1a2b3c4d.json, pair 0 in the order of the file"
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


def test_split_and_set_have_defaults(tmp_path: Path) -> None:
    assert place_of(Request(tmp_path, "0")) == ("train", "all")
    assert place_of(Request(tmp_path, "0", {"split": None, "set": None})) == ("train", "all")
    assert place_of(Request(tmp_path, "0", {"split": "test", "set": "hard"})) == ("test", "hard")


def test_an_example_is_traced_by_its_number(small: Small) -> None:
    (found,) = traced_example(Request(small("maze"), "1", {"split": "test"}))
    assert found.facts()["example"] == "test all 1"


def test_a_sample_that_is_no_number_is_refused(small: Small) -> None:
    with pytest.raises(Misuse):
        list(traced_example(Request(small("maze"), "first")))


def _found(folder: Path, row: int = 0) -> tuple[Dataset, Example]:
    data = Dataset(folder)
    return data, example(data, "train", "all", row)


@pytest.mark.parametrize("kind", ["arc", "sudoku", "maze", "towers"])
def test_rows_of_the_rules_break_none(small: Small, kind: str) -> None:
    folder = small(kind)
    for row in range(len(SMALL[kind]().inputs)):
        data, found = _found(folder, row)
        assert findings(kind, data.metadata("train"), found) == []


def test_tokens_outside_of_the_vocabulary_are_found(small: Small) -> None:
    data, found = _found(small("towers"))
    tokens = found.inputs.copy()
    tokens[3] = 9
    broken = findings("towers", data.metadata("train"), replace(found, inputs=tokens))
    assert broken == ["input token 9 at position 3 is outside of 0 to 8"]
    tokens[3] = -1
    broken = findings(None, data.metadata("train"), replace(found, labels=tokens))
    assert broken == ["label token -1 at position 3 is outside of 0 to 8"]


def test_a_label_that_is_ignored_may_be_outside_of_the_vocabulary(small: Small) -> None:
    data, found = _found(small("towers"))
    tokens = found.labels.copy()
    tokens[0] = -100
    ignoring = replace(data.metadata("train"), ignore_label_id=-100)
    assert findings("towers", ignoring, replace(found, labels=tokens)) == []
    assert findings("towers", ignoring, replace(found, inputs=tokens))
    assert findings(
        "towers", replace(ignoring, ignore_label_id=None), replace(found, labels=tokens)
    )


def test_another_length_and_an_unknown_identifier_are_found(small: Small) -> None:
    data, found = _found(small("towers"))
    wrong = replace(found, inputs=found.inputs[:5], identifier_id=1)
    assert findings("towers", data.metadata("train"), wrong) == [
        "input has 5 tokens, not 7",
        "identifier 1 is outside of the metadata's number",
    ]


def test_grids_of_arc_without_their_border_are_found(small: Small) -> None:
    data, found = _found(small("arc"))
    label = found.labels.copy()
    label[label == 1] = 0
    (rule,) = findings("arc", data.metadata("train"), replace(found, labels=label))
    assert rule.startswith("label: EOS is not on the border")


def test_grids_of_arc_at_different_cells_are_found(small: Small) -> None:
    folder = small("arc")
    data, found = _found(folder)
    moved = _found(folder, 2)[1]
    broken = findings("arc", data.metadata("train"), replace(found, labels=moved.labels))
    assert broken == ["input and label begin at different cells"]


def test_rules_of_dominoes_are_named(small: Small) -> None:
    data, found = _found(small("domino"), 1)
    assert findings("domino", data.metadata("train"), found) == []
    label = found.labels.copy()
    label[2] = 1
    broken = findings("domino", data.metadata("train"), replace(found, labels=label))
    assert "target_not_match_left_end" in broken


@pytest.mark.parametrize("kind", SMALL)
def test_any_tokens_have_findings(small: Small, kind: str) -> None:
    data, found = _found(small(kind))
    noise = np.random.default_rng(3).integers(0, data.metadata("train").vocab_size, (20, 2, 900))
    for given, wanted in noise[:, :, : len(found.inputs)]:
        findings(kind, data.metadata("train"), replace(found, inputs=given, labels=wanted))


@pytest.mark.parametrize(
    ("kind", "at", "token", "rule"),
    [("sudoku", 2, 1, "label_digit_out_of_range"), ("maze", 1, 5, "")],
)
def test_rules_of_boards_and_mazes_are_named(
    small: Small, kind: str, at: int, token: int, rule: str
) -> None:
    data, found = _found(small(kind))
    label = found.labels.copy()
    label[at] = token
    broken = findings(kind, data.metadata("train"), replace(found, labels=label))
    assert broken
    assert rule in " ".join(broken)
