"""The rules that one row breaks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.puzzles.read.example import Example, example
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.show.findings import findings
from tests.puzzles.small_datasets import SMALL

Small = Callable[[str], Path]


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
