"""The way to a value is found in the head of a text, and is a filter of jq."""

from __future__ import annotations

import json

import pytest

from gristmill.untrusted.json_way import jq, way_to

WAYS = [
    (7, "."),
    ([0, [7]], ".[][]"),
    ({"a": [], "b": {"c": {}}, "d e": [{"f": 1}, {"f": 7}]}, '."d e"[].f'),
    ({'q"\\': {"x": "7", "y": 7}}, '."q\\"\\\\".y'),
    ([[{"7": [1]}], {"a_1": 7}], ".[].a_1"),
]


@pytest.mark.parametrize(("value", "filter_"), WAYS)
def test_the_first_value_that_fits_is_found(value: object, filter_: str) -> None:
    text = json.dumps(value, indent=1).encode()
    way = way_to(text, lambda _, token: token == b"7")
    assert way is not None and jq(way) == filter_
    for cut in range(len(text)):
        assert way_to(text[:cut], lambda *_: False) is None
