"""The steps of an example: pieces of its text, and the picture of its page."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gristmill import markdown
from gristmill.browse.table import Token
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.render.steps import steps_of
from gristmill.reasoning.render.text import rendered
from gristmill.reasoning.show.steps import picture, pieces

HOSTILE = "a </text><script>alert(1)</script> \x1b[31m \u202e & \x00.\tb <![CDATA[ ]]> \u0301e."


def example(cot: str) -> tuple[AlignRow, str]:
    record = {"question": "Why?", "answer": "42", "cot": cot}
    text = rendered(record)
    steps = steps_of(record, text, "reveal")
    row = AlignRow(
        example_id="reveal_test_000000",
        sequence_index=0,
        shard_path="",
        text_offset_ranges=[list(pair) for pair in steps.ranges],
        token_offset_ranges=[],
        step_labels=steps.labels,
        confidence=steps.confidence,
        notes=f"{steps.rule}; pending manual audit",
    )
    return row, text.text


def drawn(row: AlignRow, text: str) -> list[str]:
    """The texts of the picture, which fits a page."""
    found = picture(row, text)
    assert len(markdown.image(found.title, found.svg)) <= markdown.INLINE
    root = ElementTree.fromstring(found.svg)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {"svg", "rect", "text"}
    assert not re.search("[\x00-\x1f\u202e]", found.svg)
    return [str(each.text) for each in root.iter() if each.tag.endswith("text")]


def test_pieces_are_lines_of_the_text_with_their_steps() -> None:
    assert list(pieces(*example("So. It\nis.\n\nEnd."))) == [
        Token("Why?\n"),
        Token("\n"),
        Token("So. It\n", span="Step 1"),
        Token("is.", span="Step 1"),
        Token("\n"),
        Token("\n"),
        Token("End.", span="Step 2"),
        Token("\n"),
        Token("\n"),
        Token("Answer:\n"),
        Token("42", span="Answer"),
    ]


def test_ranges_that_the_text_does_not_have_are_left_out() -> None:
    row, text = example("So. It is.")
    wrong = [[0, 3], [2, 6], [5, 5], [-4, 2], [90, 99]]
    broken = replace(row, text_offset_ranges=wrong, step_labels=["Step 1"] * 5)
    assert "".join(each.text for each in pieces(broken, text)) == text
    assert len(drawn(broken, text)) == 4


def test_the_picture_has_a_line_for_each_step_under_confidence_and_rule() -> None:
    assert drawn(*example("So. It is.")) == [
        *("reveal_test_000000", "0.6 · heuristic:sentences; pe…"),
        *("Step 1: So.", "Step 2: It is.", "Answer: 42"),
    ]


@pytest.mark.parametrize("cot", [HOSTILE, "<<1=1>>. " * 50, "x" * 3000, "\u6c49" * 400])
def test_any_text_stays_text_and_fits_the_page(cot: str) -> None:
    row, text = example(cot)
    assert len(drawn(row, text)) >= 4
    assert "\x1b" not in "".join(each.text for each in pieces(row, text))
