"""Cleaning hooks change what they are for, and nothing by default."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import counts_of
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.records import Record
from gristmill.reasoning.config import CLEANING, NormalizeConfig
from gristmill.reasoning.render.text import HOOKS, unboxed
from tests.reasoning.drops import built


def test_every_hook_is_a_choice_of_the_config() -> None:
    assert tuple(HOOKS) == CLEANING
    assert {corpus for by_corpus in HOOKS.values() for corpus in by_corpus} <= set(CORPORA)
    assert NormalizeConfig().cleaning == ()
    with pytest.raises(ValueError, match="boxed"):
        NormalizeConfig(cleaning=("unknown",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"It is $\boxed{4}$.", "It is $4$."),
        (r"\boxed {a{b}c} \boxed{d}", "a{b}c d"),
        (r"\boxed{\boxed{1}+\frac{1}{2}}", r"1+\frac{1}{2}"),
        (r"\boxed{\{1\}}", r"\{1\}"),
        (r"\boxed{1", r"\boxed{1"),
        (r"\boxed{1 \boxed{2}", r"\boxed{1 2"),
        (r"} \boxed{1}}", r"} 1}"),
        (r"\\boxed{1}", r"\\boxed{1}"),
        ("", ""),
    ],
)
def test_boxes_are_removed(text: str, expected: str) -> None:
    assert unboxed(text) == expected


@given(st.text(alphabet="\\boxed{} 1", max_size=40))
def test_a_text_without_boxes_stays_and_no_box_is_made_of_others(text: str) -> None:
    made = unboxed(text)
    assert len(made) <= len(text)
    if "\\boxed" not in text:
        assert made == text


@pytest.mark.parametrize(
    ("hook", "corpus", "record", "expected"),
    [
        (
            "annotations",
            "gsm8k",
            Record("q <<1>>", "a 2*3=<<2*3=6>>6\n<<a\nb>>", None),
            Record("q <<1>>", "a 2*3=6\n<<a\nb>>", None),
        ),
        (
            "final_line",
            "gsm8k",
            Record("#### q", "a\n#### 6", None),
            Record("#### q", "a\n6", None),
        ),
        (
            "boxed",
            "openr1_math_220k",
            Record("q", r"\boxed{1}", r"\boxed{2}", ("x",)),
            Record("q", "1", "2", ("x",)),
        ),
        (
            "final_line",
            "reasoning_traces",
            Record("q", "a", "x\n####\n#### 3", (None,), ["x", "####", "#### 3"]),
            Record("q", "a", "x\n3", (None,), ["x", "3"]),
        ),
        ("choices", "wiqa", Record("q", " No Effect ", "c"), Record("q", "no_effect", "c")),
        ("choices", "wiqa", Record("q", "no_effect", "c"), Record("q", "no_effect", "c")),
        ("choices", "wiqa", Record("q", "More", "c"), Record("q", "more", "c")),
        ("choices", "wiqa", Record("q", "unclear", "c"), Record("q", "unclear", "c")),
        (
            "choices",
            "cot_collection",
            Record("q\nOptions:\n- red\n\n- blue", "blue", "c"),
            Record("q\nOptions:\n- red\n\n- blue", "blue", "c"),
        ),
        (
            "choices",
            "cot_collection",
            Record("q\nOptions:\n- red\n- blue\n\nWhy?", "blue", "c"),
            Record("q\nOptions:\n(A) red\n(B) blue\n\nWhy?", "(B)", "c"),
        ),
        (
            "choices",
            "cot_collection",
            Record("Options:\na) red\n(b)  blue\n- (C) green", "c", "c"),
            Record("Options:\n(A) red\n(B) blue\n(C) green", "(C)", "c"),
        ),
        (
            "choices",
            "cot_collection",
            Record("Options:\n- red\n- blue", "green", "c"),
            Record("Options:\n(A) red\n(B) blue", "green", "c"),
        ),
        ("choices", "cot_collection", Record("q", "a", "c"), Record("q", "a", "c")),
    ],
)
def test_a_hook_cleans_a_record(hook: str, corpus: str, record: Record, expected: Record) -> None:
    assert HOOKS[hook][corpus](record) == expected
    assert HOOKS[hook][corpus](expected) == expected


def test_hooks_run_in_their_order_and_empty_records_are_refused(tmp_path: Path) -> None:
    rows = [
        {"question": "q", "answer": "1+1=<<1+1=2>>2\n#### \\boxed{2}"},
        {"question": "q", "answer": "plain"},
    ]
    plain, summary = built(tmp_path / "1", "gsm8k", rows)
    assert plain[0]["answer"] == rows[0]["answer"] and summary.cleaned == {}
    hooks = ("annotations", "final_line", "boxed", "choices")
    cleaned, summary = built(tmp_path / "2", "gsm8k", rows, cleaning=hooks)
    assert [record["answer"] for record in cleaned] == ["1+1=2\n2", "plain"]
    assert summary.cleaned == {"annotations": 1, "final_line": 1, "boxed": 1}
    assert counts_of(summary)["cleaned/boxed"] == 1
    rows = [{"question": "q", "answer": answer} for answer in ("####", "#### 1")]
    records, summary = built(tmp_path, "gsm8k", rows, cleaning=("final_line",), bad_rows=1)
    assert [record["answer"] for record in records] == ["1"]
    assert summary.rejected_by == {"answer": 1}
