"""The way to a value is found in the head of a text, and is a filter of jq."""

from __future__ import annotations

import json
import random

import pytest

from gristmill.untrusted.json_way import jq, way_to


@pytest.mark.parametrize(
    ("value", "filter_"),
    [
        (7, "."),
        ([0, [7]], ".[][]"),
        ({"a": [], "b": {"c": {}}, "d e": [{"f": 1}, {"f": 7}]}, '."d e"[].f'),
        ({'q"\\': {"x": "7", "y": 7}}, '."q\\"\\\\".y'),
        ([[{"7": [1]}], {"a_1": 7}], ".[].a_1"),
        ({"a": "[{\\", "b": 8}, None),
    ],
)
def test_the_first_value_that_fits_is_found(value: object, filter_: str | None) -> None:
    for indent in (None, 1):
        text = json.dumps(value, indent=indent).encode()
        way = way_to(text, lambda _, token: token == b"7")
        assert (way if way is None else jq(way)) == filter_
        assert all(way_to(text[:cut], lambda *_: False) is None for cut in range(len(text)))


def test_any_bytes_are_read_in_time_that_grows_with_them() -> None:
    draws = random.Random(3)
    for marks in (b'[]{}":,\\7 ', b"[", b'"', b'"\\', b"{:"):
        text = bytes(draws.choices(marks, k=1 << 16))
        assert way_to(text, lambda *_: False) is None
