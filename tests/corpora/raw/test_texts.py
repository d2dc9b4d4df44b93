"""Any JSON value to a text."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.corpora.raw.texts import Unfit, canonical, chain, extra, flattened, items, text
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


def test_a_chain_keeps_its_items() -> None:
    assert chain(["a\r\nb", " ", " c "]) == ("a\nb\nc", ["a\nb", "c"])
    assert chain(["", None]) == chain([]) == chain(None) == (None, None)
    assert chain("a\n b") == ("a\n b", None)
    assert chain("") == ("", None)
    assert chain({"text": "a"}) == ("a", None)
    assert chain(3) == ("3", None)


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


@settings(max_examples=40)
@given(_JSON)
def test_a_text_never_has_a_carriage_return_and_items_join_to_it(value: Any) -> None:
    try:
        made = flattened(value)
    except Unfit:
        return
    assert made is None or "\r" not in made
    if isinstance(value, list):
        assert made == ("\n".join(items(value)) or None)
        assert all(item == item.strip() != "" for item in items(value))
    assert flattened(json.loads(json.dumps(value))) == made
