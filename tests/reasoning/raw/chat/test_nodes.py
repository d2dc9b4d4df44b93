"""A conversation that is a branch of a tree in an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.raw.chat.messages import Messages
from gristmill.reasoning.raw.chat.nodes import branch_of, is_nodes
from gristmill.reasoning.raw.chat.recipe import chat_of_table
from gristmill.reasoning.raw.flatten import Unfit
from tests.reasoning.drops import unfit

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


def test_the_branch_that_is_named_is_read_and_no_other() -> None:
    row = tree(said("user", "hi"), said("assistant", "hello"))
    row["mapping"]["n9"] = {"parent": "n0", "message": said("assistant", "another")}
    assert read(row) == HI
    assert read({**row, "current_node": "n9"})[1] == ("assistant", "another", "final")
    # The order of the nodes says nothing.
    row["mapping"] = dict(reversed(row["mapping"].items()))
    assert read(row) == HI


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
def test_what_nobody_says_is_no_message(unsaid: dict[str, Any]) -> None:
    assert read(tree(unsaid, said("user", "hi"), said("assistant", "hello"))) == HI


def test_a_system_that_says_something_and_thoughts_are_messages() -> None:
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
def test_a_message_that_cannot_be_read_refuses_the_row(
    message: Any, reason: str, rule: str
) -> None:
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
def test_a_branch_that_is_not_there_refuses_the_row(nodes: Any, last: Any, rule: str) -> None:
    with unfit("messages", rule):
        branch_of(nodes, last, NAMES)


def test_nodes_without_the_key_name_it() -> None:
    row = tree(said("user", "hi"), said("assistant", "hello"))
    assert is_nodes(row["mapping"])
    with pytest.raises(Unfit, match="messages") as raised:
        Messages(chat_of_table(HEAD)).read(row)
    assert 'branch = "current_node"' in raised.value.rule


def test_an_empty_branch_has_no_turns() -> None:
    with unfit("turns"):
        read({**tree(), "current_node": None})


def test_branch_stands_beside_messages_alone(tmp_path: Any) -> None:
    from gristmill.reasoning.raw.chat.recipe import read_chat_file

    file = tmp_path / "corpus.toml"
    for more in ('prompt = "p"\ncompletion = "c"', 'messages = "m"\nmarks = { control = ["a"] }'):
        file.write_text(f'schema = 1\nkind = "chat"\nname = "mine"\nbranch = "b"\n{more}\n')
        with pytest.raises(BadInput, match="branch: stands beside messages"):
            read_chat_file(file, "mine")
