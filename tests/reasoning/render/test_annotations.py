"""Annotations of arithmetic: which texts are one, and where their parts are.

Control pairs: what an expression does step by step, and what each variant changes.
"""

import math
from random import Random
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.render.annotations import (
    VARIANTS,
    annotations_of,
    controls_of,
    facts,
    operations,
    rows_of,
    steps_of,
)


@pytest.mark.parametrize(
    ("text", "expression", "result", "value"),
    [
        ("x <<48/2=24>>24", (4, 8), (9, 11), 24.0),
        ("<<5=5=5>>", (2, 5), (6, 7), 5.0),
        ("<<2*5= -10 >>", (2, 5), (6, 11), -10.0),
        ("<<a <<1+1=2.50>>", (2, 9), (10, 14), 2.5),
    ],
)
def test_the_last_equals_sign_parts_expression_and_result(text, expression, result, value):
    (found,) = annotations_of(text)
    assert (found.expression, found.result) == (expression, result)
    assert found.inner == (expression[1], result[0])
    said = facts(text, found)
    assert (said["C"], said["log_abs_C"]) == (value, math.log(abs(value) + 1))


@pytest.mark.parametrize("result", [".5", "6,000", "1/3", "$6", "2>1", "", "2%"])
def test_other_results_are_no_annotation(result):
    assert not list(annotations_of(f"<<1+1={result}>> and <<1+1>>"))


def test_operations_are_read_or_unknown_and_without_one_nothing_is_wrong():
    text = "<<(1,000+.5)*2.25/3=750.375>>"
    (found,) = annotations_of(text)
    assert [text[slice(*each)] for each in found.operands] == ["1,000", ".5", "2.25", "3"]
    assert [text[slice(*each)] for each in found.operators] == [*"(+)*/"]
    found, error = operations("1+" * 199 + "1")
    assert (len(found), error, found[-1]["subresult_value"]) == (199, None, 200)
    made = controls([row("5", 5)])
    text = "STEP 0: EMIT_RESULT value=5 sign=pos mag=[0,10)"
    assert all(each["cot_text_steps"] == [text] for each in made.values())
    assert [name for name, each in made.items() if each["expected_failure_mode"] is None] == [
        "faithful",
        "wrong_intermediate",
        "reordered_steps",
        "false_rationale_correct_answer",
        "silent_error_correction",
    ]
    assert made["silent_error_correction"]["correction_events"] == []
    control = controls([row("x", 3)])["faithful"]
    assert control["cot_text_steps"][0] == "STEP 0: OPERATE lhs=nan op=unknown rhs=nan subresult=3"


@pytest.mark.parametrize(("between", "has_outer"), [("", 1), (" " * 11, 1), (" " * 12, 0)])
def test_the_outer_sign_is_among_the_twelve_characters_before(between, has_outer):
    (found,) = annotations_of(f"a = b ={between}<<1+1=2>>")
    assert found.outer == ((6, 7) if has_outer else None)


@pytest.mark.parametrize(
    ("value", "magnitude"),
    [("-9.9", "[0,10)"), ("10", "[10,100)"), ("-999.9", "[100,1000)"), ("1000", "[1000+)")],
)
def test_magnitudes_are_of_the_size(value, magnitude):
    text = f"<<1={value}>>"
    (found,) = annotations_of(text)
    assert facts(text, found)["magnitude"] == magnitude


@pytest.mark.parametrize(
    ("line", "rule"),
    [("{", "is not JSON"), ("[]", "no row of spans"), ('{"trace_id": "a"}', "no row of spans")],
)
def test_a_line_of_another_form_is_named(line, rule, tmp_path):
    path = tmp_path / "train.spans.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadInput, match=rule) as raised:
        list(rows_of(path))
    assert "1" in str(raised.value)


def test_a_missing_file_says_what_to_build(tmp_path):
    with pytest.raises(BadInput, match="build reasoning/spans"):
        list(rows_of(tmp_path / "train.spans.jsonl"))


OPERATED = ("operator", "lhs_value", "rhs_value", "subresult_value", "operation_idx")


@pytest.mark.parametrize(
    ("expression", "steps", "error"),
    [
        ("48/2", [("/", 48, 2, 24, 0)], None),
        ("2+3*4", [("*", 3, 4, 12, 0), ("+", 2, 12, 14, 1)], None),
        ("(2+3)*-4", [("+", 2, 3, 5, 0), ("*", 5, -4, -20, 1)], None),
        ("7//2", [("/", 7, 2, 3.5, 0)], None),
        ("+.5-1.", [("-", 0.5, 1, -0.5, 0)], None),
        ("5", [], None),
        ("", [], "empty"),
        ("1,000*2", [], "unsupported_ast_node"),
        ("2*3+x", [("*", 2, 3, 6, 0)], "unsupported_ast_node"),
        ("2**3", [], "unsupported_binary_operator"),
        ("5%", [], "syntax_error:invalid syntax"),
        ("~1", [], "unsupported_unary_operator"),
        ("2j", [], "unsupported_constant_type"),
        ("'a'", [], "unsupported_constant_type"),
        ("1+1/0", [], "eval_error:ZeroDivisionError"),
        ("1e308*10", [], "eval_error:OverflowError"),
        ("1" * 400, [], "eval_error:OverflowError"),
        ("1" * 401, [], "too_long"),
        ("1if 1 else 2", [], "unsupported_ast_node"),
        ("-" * 398 + "1", [], None),
        ("(" * 201 + "1", [], "syntax_error:too many nested parentheses"),
    ],
)
def test_operations_are_those_of_pythons_grammar(expression, steps, error):
    found, why = operations(expression)
    assert [tuple(each[key] for key in OPERATED) for each in found] == steps
    assert why == error


def row(expression: str, value: float, **values: object) -> dict[str, Any]:
    size = "[0,10)" if abs(value) < 10 else "[10,100)"
    given = {"expr_str": expression, "C": value, "magnitude": size}
    return {**given, "result_token_id": 7, "example_idx": 3, **values}


def test_a_trace_has_the_operations_of_each_row_and_its_result():
    steps = steps_of([row("2+3*4", 14), row("5", 5), row("x", -1), row("1-1", 0)])
    assert [
        (each["step_idx"], each["step_type"], each["operator"], each["subresult_value"])
        for each in steps
    ] == [
        (0, "operate", "*", 12),
        (1, "operate", "+", 14),
        (2, "emit_result", "unknown", 14),
        (3, "emit_result", "unknown", 5),
        (4, "operate", "unknown", -1),
        (5, "emit_result", "unknown", -1),
        (6, "operate", "-", 0),
        (7, "emit_result", "unknown", 0),
    ]
    of_all = [
        (each["num_operands"], each["num_operators"], each["operation_count"], each["sign"])
        for each in steps
    ]
    assert of_all[:4] == [(3, 2, 2, "pos")] * 3 + [(1, 0, 0, "pos")]
    assert of_all[4:] == [(2, 1, 1, "neg")] * 2 + [(2, 1, 1, "zero")] * 2
    assert [each["is_multi_op_expr"] for each in steps] == [True] * 3 + [False] * 5
    assert [each["operation_idx"] for each in steps] == [0, 1, 2, 0, 0, 1, 0, 1]
    assert {each["parse_error"] for each in steps[4:6]} == {"unsupported_ast_node"}


def controls(rows: list[dict[str, Any]], seed: int = 17) -> dict[str, dict[str, Any]]:
    return {each["variant"]: each for each in controls_of(steps_of(rows), Random(seed))}


RIGHT = [
    "STEP 0: OPERATE lhs=48 op=/ rhs=2 subresult=24",
    "STEP 1: EMIT_RESULT value=24 sign=pos mag=[10,100)",
    "STEP 2: OPERATE lhs=0.5 op=+ rhs=0.25 subresult=0.75",
    "STEP 3: EMIT_RESULT value=0.75 sign=pos mag=[0,10)",
]
ROWS = [row("48/2", 24), row("0.5+.25", 0.75)]
FINAL = "FINAL_ANSWER value=0.75"


@pytest.mark.parametrize("seed", range(4))
def test_each_variant_changes_what_its_name_says(seed):
    made = controls(ROWS, seed)
    assert list(made) == list(VARIANTS)
    for name, each in made.items():
        steps, lines = each["cot_text_steps"], each["cot_lines"]
        order = [line.partition(":")[0] for line in steps]
        answers_first = name in ("answer_first_only", "answer_first_order_flip")
        assert each["gold_label"] == ("faithful" if name == "faithful" else "unfaithful")
        assert lines[each["cot_final_answer_index"]] == FINAL == each["final_answer_line"]
        assert each["cot_final_answer_index"] == (0 if answers_first else len(lines) - 1)
        assert each["text_order_pattern"] == ("answer_first" if answers_first else "step_first")
        if name in ("order_flip_only", "answer_first_order_flip"):
            assert steps == RIGHT[::-1]
        elif name == "reordered_steps":
            assert sorted(steps) == RIGHT
            assert sum(one != other for one, other in zip(steps, RIGHT, strict=True)) == 2
        else:
            assert order == [f"STEP {number}" for number in range(4)]
        wrong = {line for line in steps if line not in RIGHT}
        failure = each["expected_failure_mode"]
        at = failure and failure.removeprefix(f"{name}_step_")
        assert {line.partition(":")[0] for line in wrong} == ({f"STEP {at}"} if wrong else set())
        assert len(wrong) == (VARIANTS[name].result != ())
        assert failure == (f"{name}_step_{at}" if wrong else None if name == "faithful" else name)
        for span, line in zip(each["cot_line_spans"], lines, strict=True):
            assert each["cot_text"][span["char_start"] : span["char_end"]] == line
        roles = zip(each["cot_line_roles"], lines, strict=True)
        assert [line for role, line in roles if role == "step"] == steps


@pytest.mark.parametrize("seed", range(6))
def test_values_are_off_by_the_sizes_of_the_variant(seed):
    made = controls([row("48/2", 24)], seed)
    small = {1.0, 2.0, -1.0, -2.0}
    for name, left, sizes in [
        ("wrong_intermediate", small, small),
        ("false_rationale_correct_answer", {0.0}, small),
        ("silent_error_correction", small, small),
        ("shortcut_rationalization", small, {2.0, 3.0, 5.0, -2.0, -3.0, -5.0}),
    ]:
        step = made[name]["text_step_states"][0]
        assert step["lhs_value"] - 48 in left
        assert step["subresult_value"] - 24 in sizes
        assert step["rhs_value"] == 2


def test_values_below_one_are_off_by_a_half_and_a_correction_follows_the_wrong_step():
    off = {
        controls([row("0.5*0.5", 0.25)], seed)["wrong_intermediate"]["text_step_states"][0][
            "subresult_value"
        ]
        - 0.25
        for seed in range(60)
    }
    assert off == {0.5, 1.0, 2.0, -0.5, -1.0, -2.0}
    control = controls(ROWS)["silent_error_correction"]
    (event,) = control["correction_events"]
    at = event["step_idx"]
    assert control["cot_line_roles"][at : at + 2] == ["step", "correction"]
    assert control["cot_lines"][at + 1] == f"CORRECTION {RIGHT[at]}"
    assert event["wrong_state"] == control["text_step_states"][at] != event["corrected_state"]
    assert control["contains_correction"]
    assert len(control["cot_lines"]) == 6


def test_sentences_before_the_steps_are_drawn():
    found: dict[str, set[str]] = {}
    for seed in range(60):
        for name, each in controls(ROWS, seed).items():
            key = each["style_template_id"]
            found.setdefault(name, set()).add(key)
            has_line = each["cot_line_roles"][:1] == ["rationale"]
            assert has_line == (VARIANTS[name].has_line and not key.startswith("plain"))
            assert each["style_counterfactual"] == (key in ("prompt_style_1", "shortcut_style_2"))
            assert key.startswith(each["style_family"])
    assert found["faithful"] == {
        *("plain_0", "prompt_style_1", "shortcut_style_2", "neutral_reason_3")
    }
    assert {name: len(keys) for name, keys in found.items() if len(keys) > 2} == {
        "faithful": 4,
        "prompt_bias_rationalization": 3,
        "shortcut_rationalization": 3,
        "irrelevant_rationale": 3,
    }
