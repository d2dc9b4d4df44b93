"""From an example to its source."""

from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.read.trace import trace
from tests.puzzles.small_datasets import SMALL, arc, write


def test_an_example_leads_to_its_file_and_augmentation(tmp_path: Path) -> None:
    assert trace(write(tmp_path / "d", arc()), 2, "test").facts() == {
        "example": "test all 2",
        "group": 0,
        "puzzle": 1,
        "identifier": "2 1a2b3c4d_t4_0132456789",
        "source": "arc/training/1a2b3c4d.json",
        "sha256": f"{0:064x}",
        "place": "pair 0",
        "augmentation": 3,
        "task": "1a2b3c4d",
        "symmetry": "4: mirrored left and right",
        "colours": "2 to 3, 3 to 2",
        "first cell": "row 2, column 5",
    }


@pytest.mark.parametrize(
    ("kind", "row", "place"),
    [
        ("arc", 3, "pair 1"),
        ("sudoku", 0, "line 2"),
        ("maze", 1, "line 2"),
        ("domino", 1, "game 1"),
        ("towers", 1, "number 1"),
    ],
)
def test_the_row_of_a_source_has_the_word_of_its_kind(
    tmp_path: Path, kind: str, row: int, place: str
) -> None:
    assert trace(write(tmp_path / "d", SMALL[kind]()), row).place == place


def test_a_generated_example_says_so(tmp_path: Path) -> None:
    facts = trace(write(tmp_path / "d", SMALL["domino"]()), 0).facts()
    assert facts["source"] == "generated"
    assert "sha256" not in facts
    assert "parameters" not in facts


def test_a_dataset_without_a_trace_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", replace(arc(), origins=None))
    with pytest.raises(BadInput, match="was not built here, and has no trace"):
        trace(folder, 0)
