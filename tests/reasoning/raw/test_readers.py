"""Which form a row has, and what a record takes from it."""

from __future__ import annotations

from typing import Any

import pytest

from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import Unfit
from gristmill.reasoning.raw.readers import Reader


def read(corpus: str, row: dict[str, Any]) -> Record:
    """The record of a row."""
    record = Reader(CORPORA[corpus]).read(row, (0, 1))
    assert record is not None
    return record


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_seed_s_columns_of_every_corpus_are_read(corpus: str) -> None:
    spec = CORPORA[corpus]
    row = {spec.question_column: "q", spec.answer_column: "a", "more": 1}
    if spec.cot_column is None:
        assert read(corpus, row) == Record("q", "a", None)
        return
    nulls = (None,) * len(spec.extra_columns)
    assert read(corpus, row) == Record("q", "a", None, nulls)
    extras = {name: name.upper() for name in spec.extra_columns}
    full = row | extras | {spec.cot_column: ["x", "", "y"]}
    assert read(corpus, full) == Record("q", "a", "x\ny", tuple(extras.values()), ["x", "y"])
    assert read(corpus, full | {spec.cot_column: " x "}).cot == " x "
    del row[spec.answer_column]
    assert read(corpus, row).answer == ""


@pytest.mark.parametrize(
    ("corpus", "row", "record"),
    [
        (
            "cot_collection",
            {"source": "q", "target": "a", "rationale": "r", "task": "t", "type": "CoT"},
            Record("q", "a", "r", ("t", "CoT"), None, "public"),
        ),
        (
            "cot_collection",
            {"question": "q", "answer": "a", "rationale": "r", "source": "s", "target": "x"},
            Record("q", "a", "r", (None, "s"), None, "seed"),
        ),
        (
            "reasoning_traces",
            {"query": "q", "response": "one\ntwo\nThe answer is: 3", "type": "MATH"},
            Record("q", "3", "one\ntwo", ("MATH",), None, "public"),
        ),
        (
            "reasoning_traces",
            {"question": "q", "answer": 3, "inv_question_pred_answer": "c"},
            Record("q", "3", "c", (None,), None, "backward"),
        ),
        (
            "reasoning_traces",
            {"question": "q", "answer": "3", "output": "\nc\nThe answer is: 3"},
            Record("q", "3", "c", (None,), None, "backward"),
        ),
        (
            "wiqa",
            {"question_stem": "q", "question_para_step": ["a", ""], "answer_label": "more"},
            Record("q", "more", "a", (None, None, None), ["a"], "public"),
        ),
        (
            "wiqa",
            {
                "question": {"stem": "q", "para_steps": ["a", "b"], "answer_label": "less"},
                "metadata": {},
            },
            Record("q", "less", "a\nb", (None, None, None), ["a", "b"], "nested"),
        ),
    ],
)
def test_a_public_form_is_read(corpus: str, row: dict[str, Any], record: Record) -> None:
    assert read(corpus, row) == record


@pytest.mark.parametrize(
    ("corpus", "public"),
    [
        ("cot_collection", {"source": "x", "target": "x"}),
        ("openr1_math_220k", {"problem": "x", "answer": "x", "generations": []}),
        ("reasoning_traces", {"query": "x", "response": "x"}),
        ("reasoning_traces", {"question": "x", "answer": "x", "output": "x"}),
        ("reasoning_traces", {"question": "x", "answer": "x", "inv_question_pred_answer": "x"}),
        ("reveal", {"answer_id": "x", "step_idx": "1", "step": "x"}),
        ("trip", {"stories": [["x"], ["y"]], "label": 1}),
        ("trip", {"stories": [["x"], ["y"]], "pair_plausible_story": 1}),
        ("wiqa", {"question_para_step": ["x"]}),
        ("wiqa", {"question": {"stem": "x"}, "metadata": {}}),
    ],
)
def test_the_seed_s_columns_win_over_a_public_form(corpus: str, public: dict[str, Any]) -> None:
    spec = CORPORA[corpus]
    own = {spec.question_column: "q", spec.answer_column: "a", str(spec.cot_column): "c"}
    record = read(corpus, public | own)
    assert (record.question, record.answer, record.cot, record.shape) == ("q", "a", "c", "seed")


@pytest.mark.parametrize("corpus", CORPORA)
def test_an_unknown_form_is_refused_with_the_known_ones(corpus: str) -> None:
    with pytest.raises(Unfit) as refused:
        read(corpus, {"foo": 1, "bar": 2})
    assert refused.value.reason == "shape"
    assert refused.value.rule.startswith(f"has the columns foo, bar; the known forms of {corpus} ")
    assert f"seed ({CORPORA[corpus].question_column})" in refused.value.rule


def test_a_nested_row_without_a_stem_is_refused() -> None:
    for question in ("q", {}, None):
        with pytest.raises(Unfit):
            read("wiqa", {"question": question, "metadata": {}})
