"""The text of a message and its parts: texts, thoughts, calls of tools, and what is none.

A conversation that is a branch of a tree in an object.
Lists of messages: texts in turn, pairs, whole turns, and what is none.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.raw.chat.lists import (
    Content,
    branch_of,
    content_of,
    filled_list,
    is_nodes,
    message_list,
    named_pairs,
    whole_turn,
    with_thoughts,
)
from gristmill.corpora.raw.chat.messages import Messages
from gristmill.corpora.raw.chat.recipe import chat_of_table
from gristmill.corpora.raw.texts import Unfit
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
def test_a_content_is_its_texts_and_its_thoughts(value, expected):
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
def test_a_part_that_is_no_text_is_refused_by_what_it_is(value, reason, rule):
    with unfit(reason, rule):
        content_of(value, tools)


NAMES = ("mapping", "current_node")
HEAD = {"schema": 1, "kind": "chat", "name": "mine", "messages": "mapping"}
READER = Messages(chat_of_table({**HEAD, "branch": "current_node"}))


def said(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [*parts]}
    return {"author": {"role": role}, "content": content, "recipient": "all", **more}


def content(kind: str, **more: Any) -> dict[str, Any]:
    return {"content": {"content_type": kind, **more}}


def tree(*messages: Any) -> dict[str, Any]:
    """A root without a message, and below it one node after the other."""
    nodes: dict[str, Any] = {"root": {"parent": None, "message": None}}
    for number, message in enumerate(messages):
        parent = "root" if number == 0 else f"n{number - 1}"
        nodes[f"n{number}"] = {"id": f"n{number}", "parent": parent, "message": message}
    return {"mapping": nodes, "current_node": f"n{len(messages) - 1}"}


def read(row: Mapping[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(each.role, each.content, each.channel) for each in READER.read(row).messages]


HI = [("user", "hi", None), ("assistant", "hello", "final")]


def test_the_branch_that_is_named_is_read_and_needs_its_key():
    row = tree(said("user", "hi"), said("assistant", "hello"))
    row["mapping"]["n9"] = {"parent": "n0", "message": said("assistant", "another")}
    assert read(row) == HI
    assert read({**row, "current_node": "n9"})[1] == ("assistant", "another", "final")
    # The order of the nodes says nothing.
    row["mapping"] = dict(reversed(row["mapping"].items()))
    assert read(row) == HI
    assert is_nodes(row["mapping"])
    with pytest.raises(Unfit, match="messages") as raised:
        Messages(chat_of_table(HEAD)).read(row)
    assert 'branch = "current_node"' in raised.value.rule
    with pytest.raises(Unfit, match="messages"):
        with_thoughts([{"type": "reasoning", "summary": [{"image_url": "x"}]}])


@pytest.mark.parametrize(
    "unsaid",
    [
        said("system", ""),
        said("system"),
        said("system", "x", metadata={"is_visually_hidden_from_conversation": True}),
        {**said("user"), **content("user_editable_context", user_profile="x")},
        {**said("assistant"), **content("model_editable_context", model_set_context="")},
    ],
)
def test_what_nobody_says_is_no_message(unsaid):
    assert read(tree(unsaid, said("user", "hi"), said("assistant", "hello"))) == HI


def test_a_system_that_says_something_and_thoughts_are_messages():
    thoughts = [{"summary": "s", "content": "First."}, {"summary": "t", "content": "Then."}]
    row = tree(
        said("system", "Be kind."),
        said("user", "hi", metadata={"is_visually_hidden_from_conversation": True}),
        {**said("assistant"), **content("thoughts", thoughts=thoughts[:1])},
        {**said("assistant"), **content("thoughts", thoughts=thoughts[1:])},
        {**said("assistant"), **content("reasoning_recap", content="Thought for 5 s")},
        said("assistant", "hel", "lo", recipient=None),
    )
    assert read(row) == [
        ("system", "Be kind.", None),
        ("user", "hi", None),
        ("assistant", "First.\n\nThen.", "analysis"),
        ("assistant", "hello", "final"),
    ]


@pytest.mark.parametrize(
    ("message", "reason", "rule"),
    [
        ({**said("assistant", "x"), "recipient": "python"}, "tools", "uses tools (function_call)"),
        (said("tool", "x"), "tools", "uses tools (a message of tool)"),
        (said("user", "x", {"content_type": "image_asset_pointer"}), "messages", "as a picture"),
        (said("critic", "x"), "role", "has the role 'critic'"),
        ({"content": {}}, "messages", "a message of its mapping lacks `author` or `content`"),
        ("x", "messages", "a message of its mapping lacks"),
        ({"author": {"role": "user"}, "content": "x"}, "messages", "lacks `author` or `content`"),
    ],
)
def test_a_message_that_cannot_be_read_refuses_the_row(message, reason, rule):
    with unfit(reason, rule):
        read(tree(said("user", "hi"), message, said("assistant", "hello")))


@pytest.mark.parametrize(
    ("nodes", "last", "rule"),
    [
        (None, "a", "its mapping is no object of nodes with `message` and `parent`"),
        ({}, "a", "is no object of nodes"),
        ({"a": {"message": None}}, "a", "is no object of nodes"),
        (tree()["mapping"], "b", "its current_node, or a parent on the way, is 'b': no node of"),
        (tree()["mapping"], 1, "is '1': no node of mapping has this id"),
        ({"a": {"parent": "a", "message": None}}, "a", "its mapping lead in a circle"),
        ({"a": {"parent": "z", "message": None}}, "a", "a parent on the way, is 'z'"),
    ],
)
def test_a_branch_that_is_not_there_refuses_the_row(nodes, last, rule):
    with unfit("messages", rule):
        branch_of(nodes, last, NAMES)


def test_branch_stands_beside_messages_alone(tmp_path):
    from gristmill.corpora.raw.chat.recipe import read_chat_file

    file = tmp_path / "corpus.toml"
    for more in ('prompt = "p"\ncompletion = "c"', 'messages = "m"\nmarks = { control = ["a"] }'):
        file.write_text(f'schema = 1\nkind = "chat"\nname = "mine"\nbranch = "b"\n{more}\n')
        with pytest.raises(BadInput, match="branch: stands beside messages"):
            read_chat_file(file, "mine")


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
def test_texts_in_turn_and_pairs_of_roles_are_known(found, expected):
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
def test_a_pair_and_an_object_with_the_named_keys_are_whole_turns(item, keys, expected):
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
def test_a_column_without_a_list_is_refused_with_what_it_has(value, rule):
    with pytest.raises(Unfit) as raised:
        filled_list(value, "m", "mend it")
    assert rule in raised.value.rule


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
def test_turns_under_numbers_are_a_list_in_their_order(value, expected):
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
def test_items_of_reasoning_are_thoughts(found, expected):
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
def test_messages_that_are_written_as_json_are_messages(found, is_read):
    made = with_thoughts(found)
    assert made == ([json.loads(each) for each in found] if is_read else found)
