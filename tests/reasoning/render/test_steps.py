import re
from collections import Counter
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gristmill.reasoning.render import steps
from gristmill.reasoning.render.steps import (
    NoValue,
    Steps,
    holds,
    is_label,
    steps_of,
    value,
    written_in,
)
from gristmill.reasoning.render.text import rendered
from tests.reasoning.normalized_files import real_records


def _record(cot: str | None, answer: str = "42", **extra: Any) -> dict[str, Any]:
    return {"question": "Why?", "answer": answer, "cot": cot, **extra}


def _found(record: dict[str, Any], corpus: str) -> tuple[list[tuple[str, str]], float, str]:
    text = rendered(record)
    found = steps_of(record, text, corpus)
    named = [
        (label, text.text[start:end])
        for label, (start, end) in zip(found.labels, found.ranges, strict=True)
    ]
    return named, found.confidence, found.rule


def test_steps_are_listed_in_the_text_in_their_order():
    listed = ["go", "go on", "go"]
    record = _record("go\ngo on\ngo", cot_steps=listed)
    named, confidence, rule = _found(record, "reveal")
    assert (confidence, rule) == (1.0, "explicit:cot_steps")
    assert named == [("Step 1", "go"), ("Step 2", "go on"), ("Step 3", "go"), ("Answer", "42")]
    ranges = steps_of(record, rendered(record), "reveal").ranges
    assert ranges == [(6, 8), (9, 14), (15, 17), (27, 29)]
    first = steps_of(_record(None), rendered(_record(None)), "wiqa")
    first.ranges.append((0, 1))
    assert steps_of(_record(None), rendered(_record(None)), "wiqa").ranges == []
    named, _, rule = _found(_record("go. stay.", cot_steps=["go", "leave"]), "reveal")
    assert rule == "heuristic:sentences"
    assert [text for _, text in named] == ["go.", "stay.", "42"]
    assert _found(_record("b\na", cot_steps=["a", "b"]), "reveal")[2] == "heuristic:lines"
    record = {"question": "go", "answer": "go", "cot": "a\nb", "cot_steps": ["go"]}
    assert _found(record, "reveal")[2] == "heuristic:lines"


def test_markers_follow_each_other_and_answers_of_gsm8k_are_lines():
    named, confidence, rule = _found(_record("Well.\nStep 1: a\nStep 2: b"), "openr1_math_220k")
    assert named == [("Step 1", "Step 1: a"), ("Step 2", "Step 2: b"), ("Answer", "42")]
    assert (confidence, rule) == (1.0, "regex:markers")
    named, confidence, _ = _found(_record("Step 1: a\nStep 3: b"), "openr1_math_220k")
    assert [label for label, _ in named] == ["Step 1", "Step 3", "Answer"]
    assert confidence == 0.8
    answer = "A 1+1=<<1+1=2>>2.\n\n B <<2*3=6>>6. \n#### 6"
    named, confidence, rule = _found(_record(None, answer), "gsm8k")
    assert named == [
        ("Step 1", "A 1+1=<<1+1=2>>2."),
        ("Step 2", "B <<2*3=6>>6."),
        ("Answer", "#### 6"),
    ]
    assert (confidence, rule) == (0.89, "heuristic:lines")
    assert _found(_record(None, "a\nb"), "gsm8k")[0] == [("Step 1", "a"), ("Step 2", "b")]


@pytest.mark.parametrize(
    ("cot", "expected", "confidence", "rule"),
    [
        ("a. b.\nc\n\nd", ["a. b.\nc", "d"], 0.8, "heuristic:paragraphs"),
        ("a. b\r\n1. c!", ["a. b", "1. c!"], 0.7, "heuristic:lines"),
        ("a. b\rc.\u2028d", ["a.", "b\rc.", "d"], 0.6, "heuristic:sentences"),
        ("a. b! c", ["a.", "b!", "c"], 0.6, "heuristic:sentences"),
        ("one line", ["one line"], 0.5, "heuristic:block"),
    ],
)
def test_prose_is_cut_at_its_widest_gaps(cot, expected, confidence, rule):
    named, *rest = _found(_record(cot), "cot_collection")
    assert [text for _, text in named] == [*expected, "42"]
    assert rest == [confidence, rule]


@pytest.mark.parametrize("answer", ["A <<1+1=3>>3.\n#### 3", "A.\n#### 3", "A <<1+1=2>>, <<1=2>>"])
def test_lines_whose_arithmetic_does_not_hold_are_less_sure(answer):
    assert _found(_record(None, answer), "gsm8k")[1] == 0.85


@pytest.mark.parametrize(
    ("record", "corpus"),
    [
        (_record(None), "cot_collection"),
        (_record(None, "#### 6"), "gsm8k"),
        (_record(None, ""), "gsm8k"),
        (_record(" \n ", "a"), "wiqa"),
    ],
)
def test_an_example_without_reasoning_has_no_steps(record, corpus):
    assert steps_of(record, rendered(record), corpus) == Steps([], [], 0.0, "no-steps")


def test_labels_are_those_of_corpora_and_lines_of_programs():
    known = ("Step 1", "Step 0", "Step 120", "Answer", "Choice", "Conflict", "Effect")
    assert all(map(is_label, known))
    assert not any(map(is_label, ("", "Step", "Step 01", "Step x", "answer", "Answer\n", "Step ١")))
    named, confidence, _ = _found(_record("a\nb", "no_effect", cot_steps=["a", "b"]), "wiqa")
    assert named == [("Step 1", "a"), ("Step 2", "b"), ("Choice", "no_effect")]
    assert confidence == 1.0
    program = "Conflict: 1 and 4\neffect: cup: wet\nPrecondition: cup: dry"
    named, confidence, rule = _found(_record(program, "A", cot_steps=program.split("\n")), "trip")
    assert [label for label, _ in named] == ["Conflict", "Effect", "Precondition", "Answer"]
    assert (confidence, rule) == (1.0, "explicit:program")
    assert _found(_record("Conflict: 1\nopen(door)", "A"), "trip")[2] == "heuristic:lines"
    listed = _record("Conflict: 1\nopen(door)", "A", cot_steps=["Conflict: 1", "open(door)"])
    assert _found(listed, "trip")[2] == "explicit:cot_steps"
    assert _found(_record("Conflict: 1\nEffect: 2"), "reveal")[2] == "heuristic:lines"


def test_steps_of_gsm8k_whose_text_is_also_in_the_question_have_their_own_places():
    elsewhere = 0
    for record in real_records("gsm8k", "test"):
        text = rendered(record)
        ranges = steps_of(record, text, "gsm8k").ranges
        assert all(a < b <= c for (a, b), (c, _) in pairwise(ranges))
        # A search from the start of the text, as the earlier aligner did it.
        elsewhere += sum(text.text.find(text.text[a:b]) != a for a, b in ranges)
    assert elsewhere == 2


def test_the_rules_are_those_of_gsm8k_and_flan_cot():
    found = [
        steps_of(record, rendered(record), "gsm8k")
        for split in ("train", "test")
        for record in real_records("gsm8k", split)
    ]
    sure = [each.confidence for each in found]
    assert (sure.count(0.89), sure.count(0.85), sure.count(1.0)) == (8678, 113, 1)
    assert {each.rule for each in found} == {steps.LINES, steps.MARKERS}
    rules, over_lines = Counter[str](), Counter[str]()
    for record in real_records("cot_collection", "train"):
        named, _, rule = _found(record, "cot_collection")
        rules[rule] += 1
        over_lines[rule] += any("\n" in text for label, text in named if label != "Answer")
    assert rules == {steps.LINES: 1664, steps.SENTENCES: 9584, steps.BLOCK: 1733, steps.MARKERS: 4}
    assert +over_lines == {steps.MARKERS: 3}


_PIECES = (
    "a",
    "b.",
    "!",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u2028",
    "\x0b",
    " ",
    "\t",
    "1. ",
    "```py",
    "- ",
)


def _cut(cot: str) -> tuple[list[str], str]:
    """The steps of a chain of thought and their rule, found line by line."""
    lines = cot.split("\n")
    if sum(line.lstrip().startswith("1. ") for line in lines) > 1:
        return [], "regex:markers"
    blocks = [
        "\n".join(block).strip()
        for full, block in groupby(lines, lambda x: bool(x.strip()))
        if full
    ]
    if len(blocks) > 1:
        return blocks, "heuristic:paragraphs"
    if len(lines) > 1:
        return [line.strip() for line in lines], "heuristic:lines"
    words = re.findall(r"\S+|\s+", cot)
    sentences = "".join(
        "\n" if before[-1:] in (".", "!") else word for before, word in pairwise(["", *words])
    ).split("\n")
    return sentences, "heuristic:sentences" if len(sentences) > 1 else "heuristic:block"


@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=12).map("".join))
def test_only_marked_steps_and_paragraphs_run_over_a_line_end(cot):
    assume(cot.strip())
    named, _, rule = _found(_record(cot, ""), "cot_collection")
    steps_expected, rule_expected = _cut(cot.strip())
    assert rule == rule_expected
    if rule != "regex:markers":
        assert [text for _, text in named] == steps_expected


_COT = st.text(alphabet="ab1. \n\t!#Step:\u00e9", max_size=60)
_LISTED = st.lists(st.sampled_from(["a", "a b", "1. a", " ", "a\nb"]), max_size=5)


@given(
    st.one_of(st.none(), _COT), _COT, _LISTED, st.sampled_from(["gsm8k", "wiqa", "trip", "reveal"])
)
def test_steps_of_any_record_are_ascending_and_within_their_block(cot, answer, listed, corpus):
    record = {"question": "Step 1: q", "answer": answer, "cot": cot, "cot_steps": listed}
    text = rendered(record)
    found = steps_of(record, text, corpus)
    assert len(found.ranges) == len(found.labels) and all(map(is_label, found.labels))
    assert found.rule in steps.RULES
    assert (found.rule == steps.NO_STEPS) == (not found.ranges) == (found.confidence == 0.0)
    assert not found.rule.startswith("heuristic") or found.confidence < 0.9
    first = (text.cot or text.answer or (0, 0))[0]
    bounds = [first, *(place for pair in found.ranges for place in pair)]
    assert bounds == sorted(bounds)
    for start, end in found.ranges:
        assert text.text[start:end] == text.text[start:end].strip() != ""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("48/2", 24),
        ("1/4", 0.25),
        (".25", 0.25),
        ("3.", 3),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("2(3+4)", 14),
        ("(1+1)(2+2)", 8),
        ("10-2-3", 5),
        ("100/10/2", 5),
        ("-5+8", 3),
        ("3--2", 5),
        ("3-+2", 1),
        ("1,234,567.5", 1234567.5),
        ("$5,000 * 20%", 1000),
        ("50%", 0.5),
        ("5 x 3", 15),
        ("5×3", 15),
        ("6÷4", 1.5),
        ("7//2", 3),
        ("2^3^2", 512),
        ("2**-1", 0.5),
        ("-2^2", -4),
        ("8 − 3", 5),
        ("12 hours", 12),
        ("£3.50", 3.5),
        ("9 sq. ft.", 9),
    ],
)
def test_an_expression_has_the_value_of_arithmetic(expression, expected):
    assert value(expression) == pytest.approx(expected)


@pytest.mark.parametrize(
    "expression",
    [
        *("", " ", "+", "2+", "*2", "(2", "2)", "1/0", "1//0", "hours", "5 hours 3", "2 3"),
        *("1,23", "1,2345", "9**9**9**9", "(-8)^.5", "__import__('os')", "5;3", "1e5+"),
        *("(" * 40 + "1" + ")" * 40, "1^" * 40 + "1", "9" * 401, "9" * 399),
    ],
)
def test_anything_else_has_no_value(expression):
    with pytest.raises(NoValue):
        value(expression)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("48/2=24", True),
        ("48/2=25", False),
        ("1/3=0.333", True),
        ("1/3=0.33", False),
        ("2000/3=666.6", True),
        ("2000/3=665", False),
        ("1/4=25/100=.25", True),
        ("1/4=26/100=.25", False),
        ("25/100=25%", True),
        ("24", False),
        ("=24", False),
        ("24=", False),
        ("a=a", False),
        ("", False),
        ("1" * 500 + "=1", False),
    ],
)
def test_an_annotation_holds_where_all_sides_are_equal(annotation, expected):
    assert holds(annotation) is expected


def test_annotations_are_found_on_one_line_and_those_of_gsm8k_are_evaluated():
    assert written_in("a <<1+1=2>>2 and <<3=3>>3, << and\n>> <<a<b>>") == ["1+1=2", "3=3"]
    assert written_in("none") == []
    written = [
        each
        for split in ("train", "test")
        for record in real_records("gsm8k", split)
        for each in written_in(record["answer"])
    ]
    assert len(written) == 27_998
    assert [each for each in written if not holds(each)] == []


@given(st.text(alphabet="0123456789.,+-*/()%=x $a^", max_size=60))
def test_any_text_holds_or_does_not(text):
    assert holds(text) in (True, False)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=6), st.data())
def test_values_are_those_of_python(numbers, data):
    text = str(numbers[0])
    for number in numbers[1:]:
        text += data.draw(st.sampled_from(["+", "-", "*"])) + str(number)
    assert value(text) == pytest.approx(eval(text), abs=1e-9)
