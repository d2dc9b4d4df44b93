"""Strict JSON, and the texts that may not be it, against a parser that sees every pair."""

import json
import re
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.synth.render import strict

KEYS = ["a", "b", "", "\\", '"', "k: ", "é", "x\\"]
TEXTS = st.sampled_from(["", '"', '\\":', '": ', " :", '" :', "x", "é:", "\\", "\n:"])


def written(value: Any, style: int) -> str:
    """JSON of a value whose objects are lists of pairs, in one of several styles."""
    colon = [":", ": ", " : ", "\t:", ": "][style]
    if isinstance(value, dict):
        pairs = value["pairs"]
        inside = ",".join(f"{json.dumps(k)}{colon}{written(v, style)}" for k, v in pairs)
        return "{" + inside + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item, style) for item in value) + "]"
    return json.dumps(value, ensure_ascii=style == 0)


VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.none() | st.integers(-5, 5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=4).map(
            lambda pairs: {"pairs": pairs}
        )
    ),
    max_leaves=8,
)


def repeats(text: str) -> bool:
    """Whether an object of a text has a key twice."""
    found = []

    def members(pairs: list[tuple[str, Any]]) -> None:
        found.append(len({name for name, _ in pairs}) < len(pairs))

    json.loads(text, object_pairs_hook=members)
    return any(found)


@given(st.lists(st.tuples(VALUES, st.integers(0, 4)), min_size=1, max_size=5), st.booleans())
@settings(deadline=None)
def test_every_text_that_repeats_a_key_is_suspected_and_refused(drawn, is_large):
    texts = [written(value, style) for value, style in drawn]
    kind = pa.large_string() if is_large else pa.string()
    # A slice, as a batch that a cap divides.
    column = pa.array(["{}", *texts], kind).slice(1)
    suspects = strict.suspects(column, [strict.count_keys(orjson.loads(text)) for text in texts])
    for index, text in enumerate(texts):
        if repeats(text):
            assert index in suspects
            with pytest.raises(ValueError, match="is twice in one object: remove one of them"):
                strict.parse(text)
        else:
            assert strict.parse(text) == json.loads(text)


def test_a_key_that_ends_in_a_backslash_does_not_hide_one_that_is_twice():
    text = r'{"\\\\":1,"a":2,"a":3}'
    assert strict.suspects(pa.array([text]), [strict.count_keys(orjson.loads(text))]) == [0]


def test_ordinary_texts_are_not_suspected():
    values = [{"a": 'a ": b', "b": [{"a": "x : "}]}, {"a": "x\\"}, None]
    texts = [json.dumps(values[0]), json.dumps(values[1], separators=(",", ":")), None]
    keys = [strict.count_keys(value) for value in values]
    assert keys == [3, 1, 0]
    assert strict.suspects(pa.array(texts, pa.string()), keys) == []
    assert strict.suspects(pa.array(texts, pa.string()), [3, 2, 0]) == [1]
    assert strict.suspects(pa.nulls(3), [0, 0, 0]) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"a": NaN}', "NaN is not JSON: write null or a number"),
        ("[-Infinity]", "-Infinity is not JSON: write null or a number"),
        ('{"a": {"b\\u0007": 1, "b\\u0007": 2}}', "the key 'b\ufffd' is twice in one object"),
        ('{"a": 1} {}', "Extra data"),
        ('{"a": 1,}', "double quotes"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_rule(text, rule):
    with pytest.raises(ValueError, match=re.escape(rule)):
        strict.parse(text)
