"""A conversation that is one branch of a tree. Source: `docs/formats/chat.md#branches`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gristmill.reasoning.raw.flatten import Unfit

_SHOWN: Final = 40
_ALL: Final = "all"
"""Who an answer is for; one for another recipient calls a tool."""
_THOUGHTS, _CODE = "thoughts", "code"
_UNSAID: Final = ("reasoning_recap", "user_editable_context", "model_editable_context")
"""Kinds of content that nobody says in the conversation: how long a thought took, profiles."""


def is_nodes(value: object) -> bool:
    """Whether a value is an object of nodes, each with its parent and a message or null."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(node, dict) and {"message", "parent"} <= {*node} for node in value.values()
        )
    )


def branch_of(nodes: Any, last: Any, names: tuple[str, str]) -> list[Mapping[str, Any]]:
    """The messages from the root to a node, as a list of messages has them.

    nodes: of the row. last: the id of the last node. names: of both columns.
    """
    if not is_nodes(nodes):
        rule = "is no object of nodes with `message` and `parent`: leave `branch` out"
        raise Unfit("messages", f"its {names[0]} {rule}")
    path: list[Mapping[str, Any]] = []
    key = last
    while key is not None:
        node = nodes.get(key) if isinstance(key, str) else None
        if node is None:
            what = f"its {names[1]}, or a parent on the way, is {str(key)[:_SHOWN]!r}"
            raise Unfit("messages", f"{what}: no node of {names[0]} has this id")
        path.append(node)
        if len(path) > len(nodes):
            raise Unfit("messages", f"the nodes of its {names[0]} lead in a circle")
        key = node["parent"]
    return messages_of(reversed(path), names[0])


def messages_of(nodes: Iterable[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The messages of nodes, as a list of messages has them. name: of their column."""
    messages = (node["message"] for node in nodes)
    return [said for each in messages if each is not None for said in _said(each, name)]


def _said(message: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield a message with role and content, or none for one that nobody says."""
    author = message.get("author") if isinstance(message, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(author, Mapping) or not isinstance(content, Mapping):
        raise Unfit("messages", f"a message of its {name} lacks `author` or `content`")
    kind, facts, role = content.get("content_type"), message.get("metadata"), author.get("role")
    is_hidden = isinstance(facts, Mapping) and facts.get("is_visually_hidden_from_conversation")
    if kind in _UNSAID or (is_hidden and role == "system"):
        return
    if role == "assistant" and (message.get("recipient") or _ALL) != _ALL:
        yield {"type": "function_call"}
    elif kind == _THOUGHTS:
        yield {"type": "reasoning", "content": content.get("thoughts")}
    elif role != "system" or any(content.get("parts") or ()):
        yield {"role": role, "content": content if "parts" in content else content.get("text")}
