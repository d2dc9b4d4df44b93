import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.reasoning.render import regions


def _texts(text: str, ranges: list[regions.Range]) -> list[str]:
    return [text[start:end] for start, end in ranges]


def _marked(text: str) -> tuple[list[str], list[int]]:
    found = regions.marked(text, 0, len(text))
    return _texts(text, found.ranges), found.numbers


def test_steps_go_from_marker_to_marker() -> None:
    text = "Let us see.\nStep 1: add\nmore\n\n step 2) take \nSTEP 3. done \n"
    assert _marked(text) == (["Step 1: add\nmore", "step 2) take", "STEP 3. done"], [1, 2, 3])


@pytest.mark.parametrize(
    "marker",
    ["Step 1:", "Step 1.", "Step 1)", "Step 1 -", "**Step 1:**", "## Step 1:", "*step 1*:"],
)
def test_markers_in_their_forms(marker: str) -> None:
    assert _marked(f"{marker} go") == ([f"{marker} go"], [1])


@pytest.mark.parametrize(
    "text",
    ["Step one: go", "Step 1 go", "a Step 1: go", "Steps 1: go", "Step 12345: go", "Step1: go"],
)
def test_what_is_no_marker(text: str) -> None:
    assert _marked(text) == ([], [])


def test_numbers_alone_need_two_lines() -> None:
    assert _marked("1. add\n2) take") == (["1. add", "2) take"], [1, 2])
    assert _marked("1. add") == ([], [])
    assert _marked("1.5 add\n2.5 take") == ([], [])


def test_numbers_within_steps_are_no_markers() -> None:
    assert _marked("Step 1: a\n1. b\n2. c") == (["Step 1: a\n1. b\n2. c"], [1])


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([1, 2, 3], True), ([1], True), ([2, 3], False), ([1, 3], False), ([1, 1], False)],
)
def test_consecutive_numbers_begin_at_one(numbers: list[int], expected: bool) -> None:
    assert regions.Marked([], numbers).consecutive is expected


def test_lines_without_text_are_left_out() -> None:
    text = "  a \n\n \t\nb\n"
    assert _texts(text, regions.lines(text, 0, len(text))) == ["a", "b"]


def test_paragraphs_are_between_lines_without_text() -> None:
    text = " a\nb \n \n\t\nc\n\n"
    assert _texts(text, regions.paragraphs(text, 0, len(text))) == ["a\nb", "c"]


def test_sentences_end_before_white_space() -> None:
    text = 'It is 3.5 m. "Yes!" Is it? (No.)\nEnd'
    expected = ["It is 3.5 m.", '"Yes!"', "Is it?", "(No.)", "End"]
    assert _texts(text, regions.sentences(text, 0, len(text))) == expected


def test_nothing_outside_of_the_region_is_used() -> None:
    text = "a. b\n\nc. d\n\ne. f"
    assert regions.sentences(text, 6, 10) == [(6, 8), (9, 10)]
    assert regions.paragraphs(text, 6, 10) == [(6, 10)]
    assert regions.lines(text, 6, 10) == [(6, 10)]


_CUTS = (regions.lines, regions.paragraphs, regions.sentences)


@given(st.text(alphabet="a.\n !\t\u2003é1)", max_size=40), st.data())
def test_ranges_are_ascending_trimmed_and_lose_nothing(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    for cut in _CUTS:
        ranges = cut(text, start, end)
        bounds = [start, *(place for pair in ranges for place in pair), end]
        assert bounds == sorted(bounds)
        assert all(text[a:b] == text[a:b].strip() != "" for a, b in ranges)
        kept = "".join(_texts(text, ranges))
        assert "".join(kept.split()) == "".join(text[start:end].split())


@pytest.mark.parametrize(
    "text", [" " * 50_000, "\n " * 30_000, "#" * 50_000, ".'" * 30_000, "1. " * 20_000]
)
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    began = time.thread_time()
    regions.marked(text, 0, len(text))
    for cut in _CUTS:
        cut(text, 0, len(text))
    assert time.thread_time() - began < 5  # quadratic time is minutes
