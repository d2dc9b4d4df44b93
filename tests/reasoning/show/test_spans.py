import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.render.steps import steps_of
from gristmill.reasoning.render.text import rendered
from gristmill.reasoning.show import spans
from gristmill.reasoning.show.spans import Fragment
from gristmill.svg import GROUND


def _example(
    cot: str, answer: str = "42", corpus: str = "reveal"
) -> tuple[AlignRow, dict[str, Any]]:
    record = {"question": "Why?", "answer": answer, "cot": cot}
    steps = steps_of(record, rendered(record), corpus)
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
    return row, record


_HOSTILE = "a </text><script>alert(1)</script> \x1b[31m \u202e & \x00.\tb <![CDATA[ ]]> \u0301e."


def test_lines_are_fragments_of_steps() -> None:
    row, record = _example("So. It\nis.\n\nEnd.")
    assert spans.fragments(row, record, None) == [
        [Fragment("Why?", None)],
        [],
        [Fragment("So. It", "Step 1", True)],
        [Fragment("is.", "Step 1")],
        [],
        [Fragment("End.", "Step 2", True)],
        [],
        [Fragment("Answer:", None)],
        [Fragment("42", "Answer", True)],
    ]


def test_a_long_text_is_cut_and_says_so() -> None:
    row, record = _example("So. It is.")
    lines = spans.fragments(row, record, 8)
    assert lines[2] == [Fragment("So", "Step 1", True)]
    assert lines[3] == [Fragment("… and 20 more characters", None)]


def test_ranges_that_the_text_does_not_have_are_left_out() -> None:
    row, record = _example("So. It is.")
    wrong = [[0, 3], [2, 6], [5, 5], [-4, 2], [90, 99]]
    broken = replace(row, text_offset_ranges=wrong, step_labels=["Step 1"] * 5)
    text = "\n".join(
        "".join(f.text for f in line) for line in spans.fragments(broken, record, None)
    )
    assert text == rendered(record).text


def test_the_terminal_shows_text_labels_and_colours() -> None:
    row, record = _example("So. It is.")
    text = spans.terminal(row, record)
    assert text.plain == (
        "reveal_test_000000 · confidence 0.6 · heuristic:sentences; pending manual audit\n"
        "Why?\n\n Step 1 So.  Step 2 It is.\n\nAnswer:\n Answer 42\n"
    )
    console = Console(width=200, force_terminal=True, color_system="truecolor")
    with console.capture() as capture:
        console.print(text)
    assert "48;2;255;227;163" in capture.get()  # the ground of Step 1


def test_a_picture_is_svg_with_a_box_for_each_part_of_a_step() -> None:
    row, record = _example("So. It is.")
    root = ElementTree.fromstring(spans.svg(row, record))
    assert root.tag.endswith("svg")
    fills = [each.get("fill") for each in root.iter() if each.tag.endswith("rect")]
    first, second = spans.colours("Step 1"), spans.colours("Step 2")
    assert fills == [GROUND, *first[::-1], *second[::-1], *spans.colours("Answer")[::-1]]
    texts = [each.text for each in root.iter() if each.tag.endswith("text")]
    assert texts[1:] == ["Why?", " 1 ", "So.", " ", " 2 ", "It is.", "Answer:", " Answer ", "42"]


@pytest.mark.parametrize("cot", [_HOSTILE, "word " * 900, "x" * 3000, "汉" * 400, "\u0301" * 400])
def test_any_text_stays_text_within_the_picture(cot: str) -> None:
    row, record = _example(cot)
    picture = spans.svg(row, record)
    root = ElementTree.fromstring(picture)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {
        *("svg", "title", "style", "rect", "text")
    }
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", picture)
    for each in root.iter():
        if each.tag.endswith("rect") and each.get("x"):
            assert float(each.get("x", 0)) + float(each.get("width", 0)) <= 1000
    assert "\x1b" not in spans.terminal(row, record).plain


def test_wrapping_loses_no_character() -> None:
    row, record = _example("word and more. " * 90 + "y" * 500)
    root = ElementTree.fromstring(spans.svg(row, record, 10_000))
    drawn = "".join(each.text or "" for each in root.iter() if each.tag.endswith("text"))
    assert drawn.count("word and more.") + drawn.count("\n") >= 80
    assert drawn.count("y") >= 500


def test_a_character_that_is_wider_than_the_room_is_drawn() -> None:
    assert spans._fitting("\u6c49a", 1.0) == 1
    assert spans._fitting("ab", 7.0) == 1 and spans._fitting("ab", 14.0) == 2


@pytest.mark.parametrize(
    ("label", "same"), [("Step 7", "Step 1"), ("Choice", "Answer"), ("Step 13", "Step 7")]
)
def test_colours_repeat(label: str, same: str) -> None:
    assert spans.colours(label) == spans.colours(same)
    assert spans.colours("Step 1") != spans.colours("Step 2")


@pytest.mark.parametrize("label", ["", "Step", "Step x", "Step " + "9" * 99, "\x1b[0m"])
def test_an_unknown_label_has_a_colour(label: str) -> None:
    assert len(spans.colours(label)) == 2
