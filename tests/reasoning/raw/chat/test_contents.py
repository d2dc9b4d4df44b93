"""The text of a message and its parts: texts, thoughts, calls of tools, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from gristmill.reasoning.raw.chat.contents import Content, call_of, content_of
from gristmill.reasoning.raw.flatten import Unfit
from tests.reasoning.drops import unfit


def tools(what: str) -> Unfit:
    return Unfit("tools", what)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\r\nb", Content("a\nb")),
        (None, Content("")),
        ([], Content("")),
        (7, Content("7")),
        ([{"text": "a"}, {"text": "b"}], Content("ab")),
        (["a", {"type": "text", "text": "b"}], Content("ab")),
        ([{"type": "input_text", "text": "a"}], Content("a")),
        ([{"type": "output_text", "text": "a", "annotations": []}], Content("a")),
        ({"content_type": "text", "parts": ["a", "b"]}, Content("ab")),
        ({"text": "a"}, Content("a")),
        ([{"type": "refusal", "refusal": "a"}], Content("a")),
        ({"type": "text", "text": "a\r\nb"}, Content("a\nb")),
        ({"parts": [{"text": "a"}]}, Content("a")),
        ([{"text": "t", "thought": True}, {"text": "a", "thought": False}], Content("a", "t")),
        (
            [{"type": "thinking", "thinking": "t", "signature": "s"}, {"text": "a"}],
            Content("a", "t"),
        ),
        (
            [{"type": "reasoning", "text": "t\r\n"}, {"type": "text", "text": "a"}],
            Content("a", "t\n"),
        ),
        ([{"type": "reasoning", "reasoning": "t"}, {"text": "a"}], Content("a", "t")),
        ([{"type": "text", "text": "a", "functionCall": None}], Content("a")),
        ([{"type": "text", "text": "a", "image": None, "thinking": ""}], Content("a")),
        ([{"type": "thinking", "text": "", "thinking": "t"}, {"text": "a"}], Content("a", "t")),
        ([{"text": ""}, {"text": "a"}], Content("a")),
        (
            [{"type": "thinking", "thinking": [{"text": "s"}, {"text": "t"}]}, {"text": "a"}],
            Content("a", "st"),
        ),
    ],
)
def test_a_content_is_its_texts_and_its_thoughts(value: Any, expected: Content) -> None:
    assert content_of(value, tools) == expected


@pytest.mark.parametrize(
    ("value", "reason", "rule"),
    [
        ({"a": 1}, "messages", "the text of a message is an object"),
        ({"parts": "a"}, "messages", "is an object"),
        ([{"type": "image_url", "image_url": {}}], "messages", "no text, as a picture"),
        ([{"type": "image", "text": ""}], "messages", "no text, as a picture"),
        ([{"text": "a", "inlineData": {"data": "x"}}], "messages", "no text, as a picture"),
        ([{"type": None, "text": "a", "image": {"path": "p"}}], "messages", "as a picture"),
        ([{"type": "text", "text": "a", "thinking": "t"}], "messages", "has two texts"),
        ([{"type": "input_audio", "text": "a"}], "messages", "no text"),
        ([{"type": "redacted_thinking", "data": "x"}], "messages", "no text"),
        ([{"text": None}], "messages", "no text"),
        ([{"type": "thinking", "thinking": [{"a": 1}]}], "messages", "no text"),
        ([3], "messages", "no text"),
        ([{"type": "tool_use", "name": "f"}], "tools", "tool_use"),
        ([{"text": "a"}, {"type": "tool_result", "content": "b"}], "tools", "tool_result"),
        ([{"functionCall": {"name": "f"}}], "tools", "functionCall"),
        ([{"text": "", "functionResponse": {"name": "f"}}], "tools", "functionResponse"),
    ],
)
def test_a_part_that_is_no_text_is_refused_by_what_it_is(
    value: Any, reason: str, rule: str
) -> None:
    with unfit(reason, rule):
        content_of(value, tools)


def test_an_item_without_a_role_may_be_a_call() -> None:
    assert call_of({"type": "function_call", "name": "f"}) == "function_call"
    assert [call_of(each) for each in ({"type": "text"}, {"type": 3}, "a")] == [""] * 3
