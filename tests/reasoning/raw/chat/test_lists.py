"""Lists of messages: texts in turn, pairs, whole turns, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gristmill.reasoning.raw.chat.lists import (
    filled_list,
    kind_of,
    message_list,
    named_pairs,
    whole_turn,
    with_thoughts,
)
from gristmill.reasoning.raw.flatten import Unfit

ROLES = ("user", "assistant", "system", "human")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["a", "b", "c"], [("user", "a"), ("assistant", "b"), ("user", "c")]),
        (["a"], [("user", "a")]),
        (["a", {"role": "user"}], None),
        ([["user", "a"], ["assistant", "b"]], [("user", "a"), ("assistant", "b")]),
        # Of which one alone names a role: the other one is refused, and no answer to it.
        ([["human", "a"], ["bot", "b"]], [("human", "a"), ("bot", "b")]),
        ([["a", "b"], ["c", "d"]], None),
        ([["user", "a", "b"]], None),
        ([["user", {"a": 1}]], None),
    ],
)
def test_texts_in_turn_and_pairs_of_roles_are_known(
    found: list[Any], expected: list[tuple[str, str]] | None
) -> None:
    assert named_pairs(found, ROLES) == expected


@pytest.mark.parametrize(
    ("item", "keys", "expected"),
    [
        (["a", "b"], {}, {"user": "a", "assistant": "b"}),
        (["a", None], {}, {"user": "a", "assistant": None}),
        (["a"], {}, None),
        (["a", "b", "c"], {}, None),
        (["a", ["b"]], {}, None),
        ({"human": "a", "assistant": "b"}, {}, None),
        (
            {"human": "a", "bot": "b", "why": "t"},
            {"user": "human", "assistant": "bot", "thinking": "why"},
            {"user": "a", "assistant": "b", "thinking": "t"},
        ),
        ({"role": "user", "content": "a"}, {"user": "human", "assistant": "bot"}, None),
    ],
)
def test_a_pair_and_an_object_with_the_named_keys_are_whole_turns(
    item: Any, keys: dict[str, str], expected: dict[str, str] | None
) -> None:
    assert whole_turn(item, keys) == expected


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ([], "its m is an empty list, not a list of messages: mend it"),
        ({"a": 1}, "its m is an object, not a list of messages"),
        (None, "its m is null, not a list of messages: mend it"),
        ("[]", "its m is an empty list, not a list of messages: mend it"),
        ("null", "its m is a text, not a list of messages"),
        (True, "its m is a bool"),
        ("[", "its m is a text that is no JSON list: write `marks` of a conversation in one text"),
    ],
)
def test_a_column_without_a_list_is_refused_with_what_it_has(value: Any, rule: str) -> None:
    with pytest.raises(Unfit) as raised:
        filled_list(value, "m", "mend it")
    assert rule in raised.value.rule


def test_values_have_a_name() -> None:
    values: list[Any] = [None, "a", [], {}, True, 1]
    said = [kind_of(value) for value in values]
    assert said == ["null", "a text", "a list", "an object", "a bool", "a number"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"turn_2": {"b": 1}, "turn_10": {"c": 1}, "turn_1": {"a": 1}}, ["a", "b", "c"]),
        ({"0": {"a": 1}, "1": {"b": 1}}, ["a", "b"]),
        ({"turn_1": {"a": 1}, "note_2": {"b": 1}}, None),
        ({"turn_1": {"a": 1}, "turn_2": "b"}, None),
        ({"turn": {"a": 1}}, None),
    ],
)
def test_turns_under_numbers_are_a_list_in_their_order(
    value: Any, expected: list[str] | None
) -> None:
    found = message_list(value)
    assert (None if found is None else [next(iter(each)) for each in found]) == expected


SUMMARY = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Short."}]}
WHOLE = {**SUMMARY, "content": [{"type": "reasoning_text", "text": "Long."}, {"text": "More."}]}
EMPTY = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
ITEM = {"role": "user", "content": "a", "type": "message"}


def thought(said: str) -> dict[str, str]:
    return {"role": "assistant", "channel": "analysis", "content": said}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([ITEM, SUMMARY, ITEM], [ITEM, thought("Short."), ITEM]),
        ([WHOLE], [thought("Long.\n\nMore.")]),
        ([SUMMARY, EMPTY, WHOLE, ITEM], [thought("Short.\n\nLong.\n\nMore."), ITEM]),
        ([{"type": "reasoning", "content": "Bare. "}], [thought("Bare.")]),
        ([EMPTY, ITEM], [ITEM]),
        ([{**SUMMARY, "role": "reasoning"}, "a"], [{**SUMMARY, "role": "reasoning"}, "a"]),
        ([thought("x"), SUMMARY], [thought("x"), thought("Short.")]),
    ],
)
def test_items_of_reasoning_are_thoughts(found: list[Any], expected: list[Any]) -> None:
    assert with_thoughts(found) == expected


@pytest.mark.parametrize(
    ("found", "is_read"),
    [
        (['{"role": "user", "content": "a"}', ' {"from": "gpt", "value": "b"}'], True),
        (['{"role": "user", "content": "a"}', "b"], False),
        (['{"role": "user"}', '{"role": "assistant"}'], False),
        (['{"a": 1}', '{"b": 2}'], False),
        (['{"role": "user", "content": "a"', "{}"], False),
    ],
)
def test_messages_that_are_written_as_json_are_messages(found: list[str], is_read: bool) -> None:
    made = with_thoughts(found)
    assert made == ([json.loads(each) for each in found] if is_read else found)


def test_a_thought_with_a_part_that_is_no_text_is_refused() -> None:
    with pytest.raises(Unfit, match="messages"):
        with_thoughts([{"type": "reasoning", "summary": [{"image_url": "x"}]}])
