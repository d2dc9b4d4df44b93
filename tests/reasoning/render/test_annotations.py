"""Annotations of arithmetic: which texts are one, and where their parts are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.render.annotations import annotations_of, facts, rows_of


@pytest.mark.parametrize(
    ("text", "expression", "result", "value"),
    [
        ("x <<48/2=24>>24", (4, 8), (9, 11), 24.0),
        ("<<5=5=5>>", (2, 5), (6, 7), 5.0),
        ("<<2*5= -10 >>", (2, 5), (6, 11), -10.0),
        ("<<a <<1+1=2.50>>", (2, 9), (10, 14), 2.5),
    ],
)
def test_the_last_equals_sign_parts_expression_and_result(
    text: str, expression: tuple[int, int], result: tuple[int, int], value: float
) -> None:
    (found,) = annotations_of(text)
    assert (found.expression, found.result) == (expression, result)
    assert found.inner == (expression[1], result[0])
    said = facts(text, found)
    assert (said["C"], said["log_abs_C"]) == (value, math.log(abs(value) + 1))


@pytest.mark.parametrize("result", [".5", "6,000", "1/3", "$6", "2>1", "", "2%"])
def test_other_results_are_no_annotation(result: str) -> None:
    assert not list(annotations_of(f"<<1+1={result}>> and <<1+1>>"))


def test_numbers_and_signs_of_the_expression_are_operands_and_operators() -> None:
    text = "<<(1,000+.5)*2.25/3=750.375>>"
    (found,) = annotations_of(text)
    assert [text[slice(*each)] for each in found.operands] == ["1,000", ".5", "2.25", "3"]
    assert [text[slice(*each)] for each in found.operators] == [*"(+)*/"]


@pytest.mark.parametrize(("between", "has_outer"), [("", 1), (" " * 11, 1), (" " * 12, 0)])
def test_the_outer_sign_is_among_the_twelve_characters_before(between: str, has_outer: int) -> None:
    (found,) = annotations_of(f"a = b ={between}<<1+1=2>>")
    assert found.outer == ((6, 7) if has_outer else None)


@pytest.mark.parametrize(
    ("value", "magnitude"),
    [("-9.9", "[0,10)"), ("10", "[10,100)"), ("-999.9", "[100,1000)"), ("1000", "[1000+)")],
)
def test_magnitudes_are_of_the_size(value: str, magnitude: str) -> None:
    text = f"<<1={value}>>"
    (found,) = annotations_of(text)
    assert facts(text, found)["magnitude"] == magnitude


@pytest.mark.parametrize(
    ("line", "rule"),
    [("{", "is not JSON"), ("[]", "no row of spans"), ('{"trace_id": "a"}', "no row of spans")],
)
def test_a_line_of_another_form_is_named(line: str, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "train.spans.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadInput, match=rule) as raised:
        list(rows_of(path))
    assert "1" in str(raised.value)


def test_a_missing_file_says_what_to_build(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="build reasoning/spans"):
        list(rows_of(tmp_path / "train.spans.jsonl"))
