"""Lengths of examples as bars."""

from __future__ import annotations

from collections import Counter

from gristmill.reasoning.show.lengths import histogram, median, shares


def test_the_median_is_the_length_that_half_of_the_examples_have_at_most() -> None:
    assert median({}) == 0
    assert median({7: 1}) == 7
    assert median({1: 2, 5: 1, 9: 1}) == 1
    assert median({1: 1, 5: 2, 9: 1}) == 5


def test_every_example_is_in_a_bar_and_the_long_ones_are_in_the_last() -> None:
    lengths = Counter(dict.fromkeys(range(1, 151), 1) | {100_000: 1})
    drawing = histogram(lengths)
    assert "median 76" in drawing
    assert ">150+<" in drawing and ">130<" in drawing
    assert drawing.count("<rect") == 1 + 16
    assert histogram({}).startswith("<svg")
    assert ">5<" in histogram({5: 3})


def test_a_share_of_nothing_is_no_row() -> None:
    assert shares([("text", 3), ("pad", 1), ("eos", 0)], 4) == [
        ("text", "3", "75.0 %"),
        ("pad", "1", "25.0 %"),
    ]
    assert shares([("text", 3)], 0) == [("text", "3", "–")]
