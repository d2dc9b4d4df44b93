"""Each column has a state by its values: read, a fact of its row, ignored, or read by nothing."""

from typing import Any

import pytest

from gristmill.corpora.account import Head, fact_of, states_of
from gristmill.inbox.listing import FACT, READ, UNREAD, ColumnState

READS = {"question": "question", "answer": "answer"}


def rows(count: int = 12, **columns: Any) -> list[dict[str, Any]]:
    """Rows with a question, an answer and other columns; a list has a value a row."""
    return [
        {
            "question": f"Which town had the {number}th market?",
            "answer": f"Town {number}",
            **{
                name: value[number % len(value)] if isinstance(value, list) else value
                for name, value in columns.items()
            },
        }
        for number in range(count)
    ]


def state(name: str, heads: list[Head], **given: Any) -> ColumnState:
    return {each.name: each for each in states_of(heads, READS, **given)}[name]


def of(values: Any, name: str = "x", split: str = "") -> ColumnState:
    return state(name, [Head(split, rows(**{name: values}))])


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        (["https://a.example/1", "https://a.example/2"], "address"),
        (["2024-01-02", "2024-01-03 10:00:00"], "time"),
        (["a1" * 16, "b2" * 16], "hash"),
        (["123e4567-e89b-12d3-a456-426614174000"], "hash"),
        (["MIT", "Apache-2.0"], "licence"),
        (["row-1", "row-2", "row-3"], "id"),
        ([7, 8, 9], "number of the row"),
        ([1700000000, 1700000500, 1700000100], "time"),
        (["one two", "three"], ""),
        (["row-1", "row-1", "row-3"], ""),
        (["12", "7", "1/2", "40%"], ""),  # results are no ids
        ([4, 1, 4], ""),
        ([0.5, 1.5, 2.5], ""),
        ([], ""),
    ],
)
def test_what_values_say_of_their_rows(values, fact):
    assert fact_of("column", values, []) == fact


def test_a_number_that_is_the_length_of_another_column_is_a_fact():
    made = [{"text": "so " * n, "n": 3 * n, "words": n} for n in (2, 5, 3)]
    for name in ("n", "words"):
        assert fact_of(name, [row[name] for row in made], made) == "length"
    made[1]["n"] = 2
    assert fact_of("n", [row["n"] for row in made], made) == ""


@pytest.mark.parametrize("form", ["x{}", "{}"])
def test_what_ends_another_text_in_most_rows_is_a_result_and_no_id(form):
    values = [form.format(n) if form != "{}" else n for n in range(3, 9)]
    made = [{"text": f"So it is {value}.", "result": value} for value in values]
    assert fact_of("result", values, made) == ""
    apart = [{"text": "So it is.", "result": value} for value in values]
    assert fact_of("result", values, apart) in ("id", "number of the row")


def test_the_numbers_of_rows_begin_again_in_each_file():
    heads = [Head(split, rows(n=[*range(100, 112)])) for split in ("train", "test")]
    assert state("n", heads) == ColumnState("n", FACT, "number of the row")
    # A file of two rows says nothing of its own; both together show an id.
    few = [Head("", rows(2, key=["a1", "a2"])), Head("", rows(2, key=["a3", "a4"]))]
    assert state("key", few).state == FACT
    mixed = [Head("", rows(key=[f"k{n}" for n in range(12)])), Head("", rows(key="k1"))]
    assert state("key", mixed).state == UNREAD


def test_a_column_that_is_read_in_part_has_a_state_for_each_place():
    made = [{"doc": {"text": f"A story, {n}.", "kind": "x"}, "seen": {"b": [n]}} for n in range(9)]
    found = states_of([Head("", made)], {"doc": "question", "doc.text": "question"})
    assert [(each.name, each.state) for each in found] == [
        ("doc.text", READ),
        ("doc.kind", UNREAD),
        ("seen", UNREAD),
    ]
    listed = [{"talk": [{"text": "A"}, {"text": "B"}]}]
    assert states_of([Head("", listed)], {"talk": "answer", "talk.1.text": "answer"}) == [
        ColumnState("talk", READ, "answer")
    ]


def test_an_example_of_a_few_values_names_each_and_is_cut():
    assert of(["b", "a", "c"]).what == 'as "b", "a", "c"'
    assert (
        of("so\n it " * 40).what
        == 'as "so it so it so it so it so it so it so i… and 199 more characters"'
    )
    assert of({"a": [1]}).what == 'as {"a": [1]}'


@pytest.mark.parametrize(
    ("values", "said", "test"),
    [
        ([0, 1], "0 (6), 1 (6)", "equals = 1"),
        ([0.0, 1.0], "0 (6), 1 (6)", "equals = 1.0"),
        (["0", "1", "1"], "0 (4), 1 (8)", 'equals = "1"'),
        (["no", "yes"], "no (6), yes (6)", 'equals = "yes"'),
        ([False, True], "false (6), true (6)", "equals = true"),
        (["False", "True"], "false (6), true (6)", 'equals = "True"'),
        (
            ["Incorrect", "Correct", "correct"],
            "incorrect (4), correct (8)",
            'in = ["Correct", "correct"]',
        ),
        (["bad", "good"], "bad (6), good (6)", 'equals = "good"'),
    ],
)
def test_two_verdicts_are_named_with_the_rule_that_takes_the_right_rows(values, said, test):
    found = of(values, "of me")
    assert (found.state, found.values, found.is_split) == (UNREAD, said, False)
    assert found.keep == f'keep = [{{ column = "of me", {test} }}]'


@pytest.mark.parametrize(
    "values",
    [
        [1],
        ["yes"],
        [0, 1, 2],
        ["no", "yes", "?"],
        [0, [1]],
        ["no", "true"],
        [float("nan"), 1.0],
        [{}, 1],
    ],
)
def test_other_values_are_no_verdict(values):
    assert of(values).keep == ""


@pytest.mark.parametrize(
    ("name", "values", "said", "test"),
    [
        ("x", ["train", "test"], "train (6), test (6)", 'equals = "train"'),
        (
            "fold",
            ["Dev", "Training", "val"],
            "training (4), dev (4), val (4)",
            'equals = "Training"',
        ),
        ("is_test", [True, False, False], "false (8), true (4)", "equals = false"),
        ("isTrain", [1, 0], "0 (6), 1 (6)", "equals = 1"),
        ("for_validation", ["true", "false"], "false (6), true (6)", 'equals = "false"'),
        ("in_gsm8k_train", [True, False], "false (6), true (6)", "equals = true"),
        ("split", [1, 1, 0], "0 (4), 1 (8)", "equals = 1"),
        ("part", ["train", "held-out", "eval_hard"], None, 'equals = "train"'),
    ],
)
def test_a_column_that_names_splits_is_named_with_the_rule_that_takes_train(
    name, values, said, test
):
    found = of(values, name)
    assert (said is None or found.values == said) and found.is_split
    assert found.keep == f'keep = [{{ column = "{name}", {test} }}]'


def test_rows_that_name_the_split_of_their_own_file_are_not_mixed():
    apart = [Head("train", rows(set="train")), Head("test", rows(set="test"))]
    assert state("set", apart).keep == ""
    assert of("train").keep == ""
    wrong = [Head("train", rows(set="test"))]
    assert state("set", wrong).keep == 'keep = [{ column = "set", equals = "test" }]'
    assert of(["train", "other"]).keep == ""


def test_what_is_read_or_ignored_makes_no_rule():
    heads = [Head("", rows(ok=[0, 1]))]
    assert state("ok", heads, ignored=["ok"]).keep == ""
    assert {e.name: e.keep for e in states_of(heads, {**READS, "ok": "keep"})}["ok"] == ""
