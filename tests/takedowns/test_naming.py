"""Rows differ by keyed hashes of all their values."""

from __future__ import annotations

from gristmill.takedowns.work import hash_of


def test_a_hash_is_of_all_values_and_of_the_key_and_of_no_order() -> None:
    row = {"a": 10**30, "b": "\ud800", "c": [1.5, None, {"d": True}]}
    made = hash_of(b"key", row)
    assert made == hash_of(b"key", dict(reversed(row.items())))
    others = [row | {"a": 10**30 + 1}, row | {"b": "\ud801"}, row | {"e": None}, {"a": 1}]
    assert len({made, hash_of(b"other", row), *(hash_of(b"key", each) for each in others)}) == 6
    assert hash_of(b"key", {"a": 1, "b": 2}) == hash_of(b"key", {"b": 2, "a": 1})
