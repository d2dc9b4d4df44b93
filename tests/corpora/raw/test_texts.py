"""Any JSON value to a text. Stories and programs of trip."""

import math
from typing import Any

import pytest
from hypothesis import strategies as st

from gristmill.corpora.raw.texts import ATTRIBUTES, canonical, chain, extra, flattened, text
from tests.corpora.raw.test_reader import read
from tests.reasoning.drops import unfit


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", ""),
        (" a ", " a "),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-12, "-12"),
        (10**30, str(10**30)),
        (1.5, "1.5"),
        (2.0, "2"),
        (-0.0, "0"),
        (1e22, "10000000000000000000000"),
        (1e-7, "1e-07"),
        ([], None),
        (["", " ", None, []], None),
        ([" a ", ["b", ["", 1.0]], None, True], "a\nb\n1\ntrue"),
        ({"text": "a", "step": "b"}, "a"),
        ({"sentence": "s", "content": "c"}, "c"),
        ({"step": ["a", "b"], "z": 1}, "a\nb"),
        ({"text": None, "step": "b"}, None),
        ({}, None),
        ({"z": 1, "a": ["ä", None]}, '{"a":["ä",null],"z":1}'),
        ([{"text": "a"}, {"b": 1}], 'a\n{"b":1}'),
    ],
)
def test_a_value_has_one_text(value: Any, expected: str | None) -> None:
    assert flattened(value) == expected


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, [-math.inf], {"a": math.nan}, [{"text": math.inf}]]
)
def test_a_number_that_is_not_finite_is_refused(value: Any) -> None:
    for function in (flattened, extra, chain):
        with unfit("number"):
            function(value)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("\r\r\n\n", "\n\n\n"),
        ("\ufeff\ufeffa\ufeffb", "a\ufeffb"),
        (" \ufeffa", " \ufeffa"),
        ("a", "a"),
    ],
)
def test_line_endings_and_marks_of_a_text(given_text: str, expected: str) -> None:
    assert canonical(given_text) == text(given_text) == flattened(given_text) == expected


def test_a_chain_keeps_its_items_and_pairs_of_the_record_are_read() -> None:
    assert chain(["a\r\nb", " ", " c "]) == ("a\nb\nc", ["a\nb", "c"])
    assert chain(["", None]) == chain([]) == chain(None) == (None, None)
    assert chain("a\n b") == ("a\n b", None)
    assert chain("") == ("", None)
    assert chain({"text": "a"}) == ("a", None)
    assert chain(3) == ("3", None)
    story = {"sentences": ["One.", "Two.", "Three."]}
    row = {
        "stories": [story, ["A.", "B."]],
        "pair_plausible_story": 1,
        "pair_confl_pairs": [[0, 2], [0, 1]],
        "pair_entities": ["Ann", "cup"],
        "pair_states": list(reversed(_states().values())),
    }
    record = read("trip", row)
    lines = str(record.cot).split("\n")
    assert record.answer == "B"
    assert lines[0] == "Conflict: story A, sentences 1 and 3"
    assert lines[1] == "Effect: sentence 1, Ann, wet = positive"
    assert lines[-1] == "Conflict: story A, sentences 1 and 2"
    assert len(set(lines)) == len(lines) == 8


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, value) for value in (3, 1.5, True, None, "a")),
        ("a\rb", "a\nb"),
        (["a", 1], "a\n1"),
        ([], None),
    ],
)
def test_an_extra_keeps_numbers_and_flattens_lists(value: Any, expected: Any) -> None:
    assert extra(value) == expected
    assert type(extra(value)) is type(expected)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


_NONE = [0] * len(ATTRIBUTES)


def _with(**values: int) -> list[int]:
    return [values.get(name, 0) for name in ATTRIBUTES]


def _states() -> dict[str, Any]:
    return {
        "cup": [
            [_NONE, _with(clean=1, h_location=1)],
            [_NONE, _NONE],
            [_with(open=2, conscious=1), _with(edible=2)],
        ],
        "Ann": [[_NONE, _with(wet=2)], [_NONE, _NONE], [_with(location=2), _NONE]],
    }


def _row(**more: Any) -> dict[str, Any]:
    wrong = {
        "sentences": ["One.", " Two. ", "Three."],
        "confl_pairs": [[0, 2]],
        "entities": ["cup", "Ann"],
        "states": _states(),
    }
    row = {"stories": [{"sentences": ["A.", "B."]}, wrong], "pair_plausible_story": 0}
    return row | more


def test_a_curated_pair_becomes_a_question_and_a_program() -> None:
    record = read("trip", _row(location="kitchen", objects=["cup", " ", "pan"]))
    assert record.question == (
        "Story A:\n1. A.\n2. B.\n\nStory B:\n1. One.\n2. Two.\n3. Three.\n\n"
        "Which story is plausible?"
    )
    assert record.answer == "A"
    assert record.cot == (
        "Conflict: story B, sentences 1 and 3\n"
        "Effect: sentence 1, cup, h_location = 1\n"
        "Effect: sentence 1, cup, clean = negative\n"
        "Precondition: sentence 3, cup, conscious = negative\n"
        "Precondition: sentence 3, cup, open = positive\n"
        "Effect: sentence 1, Ann, wet = positive\n"
        "Precondition: sentence 3, Ann, location = 2"
    )
    assert record.extras == ("Location: kitchen\nObjects: cup, pan",)
    assert (record.steps, record.shape) == (None, "curated")


def test_states_end_with_their_story_and_stories_say_which_is_plausible() -> None:
    row = _row()
    row["stories"][1]["states"]["cup"] = row["stories"][1]["states"]["cup"][:1]
    lines = str(read("trip", row).cot).split("\n")
    assert [line for line in lines if "cup" in line] == [
        "Effect: sentence 1, cup, h_location = 1",
        "Effect: sentence 1, cup, clean = negative",
    ]
    stories = [
        {"sentences": ["One."], "plausible": False},
        {"sentences": ["A."], "plausible": True},
    ]
    assert read("trip", {"stories": stories, "label": None}).answer == "B"
    assert read("trip", _row(program="move a\n b")).cot == "move a\n b"
    record = read("trip", _row(program=["move a", "", {"op": 1}]))
    assert (record.cot, record.steps) == ('move a\n{"op":1}', ["move a", '{"op":1}'])


@pytest.mark.parametrize(
    "more",
    [
        {"stories": "x"},
        {"stories": [["a"]]},
        {"stories": [["a"], ["b"], ["c"]]},
        {"stories": [["a"], [" "]]},
        {"stories": [["a"], {"sentences": None}]},
        {"stories": [["a"], None]},
        {"pair_plausible_story": 2},
        {"pair_plausible_story": True},
        {"pair_plausible_story": "A"},
        {"pair_plausible_story": None},
        {"confl_pairs": [[0, 3]]},
        {"confl_pairs": [[0, -1]]},
        {"confl_pairs": [[0]]},
        {"confl_pairs": [3]},
        {"confl_pairs": "x"},
        {"states": {"cup": [1]}},
        {"states": {"cup": None}},
        {"states": {"cup": [[_NONE, [1]]] * 3}},
        {"states": {"cup": [[_NONE, ["x"] * 20]] * 3}},
        {"states": {"cup": [[_NONE, [1e999] * 20]] * 3}},
        {"states": [[]]},
        {"states": "x"},
    ],
)
def test_stories_of_another_form_are_refused(more: dict[str, Any]) -> None:
    row = _row()
    target = row if set(more) & set(row) else row["stories"][1]
    target.update(more)
    with unfit("story"):
        read("trip", row)
