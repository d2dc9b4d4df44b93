"""What the page of a dataset shows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.markdown import stored_size
from gristmill.puzzles.show.preview import puzzle_figures
from tests.drawings import images, texts
from tests.puzzles.small_datasets import SMALL, Small, arc, write

Folder = Callable[[str], Path]


def test_the_page_of_arc_has_numbers_tables_and_pairs(small: Folder) -> None:
    figures = puzzle_figures(small("arc"), {"duplicates_removed": 1234, "leaks_dropped": 0})
    assert (figures["rows"], figures["augmented_percent"]) == (8, 50.0)
    assert "| train | all | 4 | 2 | 1 | 50.0 % |" in str(figures["splits"])
    assert "| duplicates removed | 1,234 |" in str(figures["left out"])
    assert "| sources | arc |" in str(figures["made from"])
    drawings = images(str(figures["examples"]))
    assert {"input 2 × 3", "output 1 × 1"} <= set(texts(drawings[0]))
    # A group has its first puzzles before the drawn examples, and no example is drawn twice.
    assert [texts(drawing)[0] for drawing in drawings[:3]] == [
        "train 0 · 1a2b3c4d",
        "train 2 · 1a2b3c4d_t4_0132456789",
        "train 1 · 1a2b3c4d",
    ]
    assert len(set(drawings)) == len(drawings)


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_has_pictures(small: Folder, kind: str) -> None:
    figures = puzzle_figures(small(kind), {})
    assert images(str(figures["examples"]))
    assert "left out" not in figures


def test_sizes_that_differ_are_drawn(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", replace(arc(), identifiers=(1, 2), examples=(1, 3)))
    (train, test) = images(str(puzzle_figures(folder, {})["group sizes"]))
    assert "train all: examples of a puzzle" in texts(train)
    assert "test all: examples of a puzzle" in texts(test)
    assert "group sizes" not in puzzle_figures(write(tmp_path / "e", arc()), {})


def test_without_a_trace_the_share_of_augmentations_is_not_there(tmp_path: Path) -> None:
    figures = puzzle_figures(write(tmp_path / "d", replace(arc(), origins=None)), {})
    assert "augmented_percent" not in figures
    assert "made from" not in figures
    assert "–" in str(figures["splits"])


def test_a_limit_that_is_not_set_is_shown_as_all(tmp_path: Path) -> None:
    small = replace(arc(), config={"subsample_size": None, "num_aug": 3})
    made_from = str(puzzle_figures(write(tmp_path / "d", small), {})["made from"])
    assert "| subsample_size | all |" in made_from
    assert "| num_aug | 3 |" in made_from


def test_names_of_a_dataset_cannot_make_markdown(tmp_path: Path) -> None:
    evil = "<img src=x>|[a](b)"
    small = replace(arc(evil), kind="towers", config={evil: evil}, files=[evil])
    figures = puzzle_figures(write(tmp_path / "d", small), {})
    assert "<img" not in str(figures["made from"]) + str(figures["examples"])
    assert "[a](b)" not in str(figures["made from"])


@pytest.mark.parametrize(
    ("kind", "seq_len", "vocab_size"), [("arc", 900, 12), ("maze", 900, 6), ("towers", 2_000, 250)]
)
def test_a_page_is_smaller_than_100_kilobytes(
    tmp_path: Path, kind: str, seq_len: int, vocab_size: int
) -> None:
    tokens = np.random.default_rng(0).integers(0, vocab_size, (40, seq_len)).astype(np.uint8)
    small = Small(
        kind=kind,
        inputs=tokens,
        labels=tokens,
        vocab_size=vocab_size,
        identifiers=[0] * 40,
        examples=[1] * 40,
        puzzles=[1] * 20 + [20],
        origins=[(-1, row, 0) for row in range(40)],
        config={f"field {number}": "x" * 2_000 for number in range(500)},
    )
    figures = puzzle_figures(write(tmp_path / "d", small), {})
    assert sum(stored_size(str(value)) for value in figures.values()) < 100_000
