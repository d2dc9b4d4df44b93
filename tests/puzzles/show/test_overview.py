"""Numbers of a dataset, and the seeded choice of its examples."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gristmill.puzzles.read.rows import Dataset, SetArrays
from gristmill.puzzles.show.overview import (
    all_numbers,
    bars,
    drawn,
    first_rows,
    percent,
    set_numbers,
    token_bars,
    token_counts,
)

Small = Callable[[str], Path]


def _arrays(origins: list[list[int]] | None = None) -> SetArrays:
    tokens = np.zeros((6, 4), np.uint8)
    return SetArrays(
        inputs=tokens,
        labels=tokens,
        puzzle_identifiers=np.zeros(3, np.int32),
        puzzle_indices=np.array([0, 1, 5, 6], np.int32),
        group_indices=np.array([0, 2, 3], np.int32),
        origins=None if origins is None else np.array(origins, np.int32),
    )


def test_examples_puzzles_groups_and_augmentations_are_counted() -> None:
    found = set_numbers("train", "all", _arrays([[0, 0, draw] for draw in (0, 1, 2, 3, 0, 9)]))
    assert (found.examples, found.puzzles, found.groups, found.augmented) == (6, 3, 2, 4)
    assert found.group_sizes == {2: 1, 1: 1}
    assert found.puzzle_sizes == {1: 2, 4: 1}


def test_without_a_trace_the_augmentations_are_not_known() -> None:
    assert set_numbers("train", "all", _arrays()).augmented is None


def test_sets_of_both_splits_are_counted(small: Small) -> None:
    numbers = all_numbers(Dataset(small("arc")))
    assert [(each.split, each.set_name, each.augmented) for each in numbers] == [
        ("train", "all", 2),
        ("test", "all", 2),
    ]


def test_shares_are_percent_or_a_dash() -> None:
    assert [percent(1, 8), percent(0, 3), percent(None, 3), percent(1, 0)] == [
        "12.5 %",
        "0.0 %",
        "–",
        "–",
    ]


def test_few_sizes_have_bars_of_their_own_and_many_share_them() -> None:
    assert bars({1000: 3, 7: 2}) == [("7", 2), ("1,000", 3)]
    many = bars(dict.fromkeys(range(10, 35), 1))
    assert many[0] == ("10–", 3)
    assert many[-1] == ("34–", 1)
    assert len(many) == 9
    assert sum(count for _, count in many) == 25
    assert len(bars({size * size: 1 for size in range(100)})) <= 12
    assert bars({}) == []


def test_a_draw_is_seeded_sorted_and_without_repetition() -> None:
    first = drawn("train all", 5, 1_000_000)
    assert first == drawn("train all", 5, 1_000_000) == sorted(set(first))
    assert len(first) == 5
    assert all(0 <= number < 1_000_000 for number in first)
    assert first != drawn("test all", 5, 1_000_000)
    # Fixed: the same report of the same dataset, on every machine and release of NumPy.
    assert drawn("x", 2, 1000) == [635, 811]
    assert drawn("x", 5, 5) == drawn("x", 9, 5) == [0, 1, 2, 3, 4]
    assert drawn("x", 3, 0) == []


def test_the_first_example_of_each_puzzle_of_a_group_is_found() -> None:
    assert first_rows(_arrays(), 0, 6) == [0, 1]
    assert first_rows(_arrays(), 0, 1) == [0]
    assert first_rows(_arrays(), 1, 6) == [5]


def test_tokens_are_counted_and_the_most_frequent_shown() -> None:
    assert token_counts(np.array([[1, 1], [0, 255]], np.uint8)) == {0: 1, 1: 2, 255: 1}
    assert token_bars({3: 1, 1: 5, -1: 2}) == [("-1", 2), ("1", 5), ("3", 1)]
    counts = {token: 100 - token for token in range(40)}
    assert [label for label, _ in token_bars(counts)] == [str(token) for token in range(12)]
