"""The complete renderer: openai-harmony renders one conversation at a time.

It takes the conversations that `templates.py` does not take, and raises every error.
Strict JSON has no NaN, no infinity, and no key twice in one object: orjson takes the last of equal
keys, and Python's JSON, which needs five times its time, parses the texts that may have one.
Source: `docs/formats/synth.md#rendering`, `docs/formats/synth.md#strict-json`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from gristmill.printable import cut, printable
from gristmill.synth.format import harmony_tokens

if TYPE_CHECKING:
    from openai_harmony import HarmonyEncoding

CONVERSATION_ERRORS: Final = (ValueError, KeyError, AttributeError, TypeError, RuntimeError)
"""What `parse` and `render` raise for a conversation that is refused."""
_MESSAGE_KEYS: Final = frozenset(
    {"role", "name", "content", "channel", "recipient", "content_type"}
)
_ITEM_KEYS: Final = {
    "text": frozenset({"type", "text"}),
    "system_content": frozenset(
        {
            *("type", "model_identity", "reasoning_effort", "conversation_start_date"),
            *("knowledge_cutoff", "channel_config", "tools"),
        }
    ),
    "developer_content": frozenset({"type", "instructions", "tools"}),
}
"""The keys of an item of a content that openai-harmony reads, by the type of the item."""
_LONGEST_KEY: Final = 60
_MOST_NAMED: Final = 60
"""Characters of the names of keys in a rule."""


@dataclass(frozen=True)
class Rendered:
    """One conversation as tokens, its EOD included."""

    tokens: Sequence[int]
    lengths: Sequence[int]
    spans: Sequence[int]
    control_texts: int
    unknown_keys: tuple[str, ...]


@lru_cache(maxsize=4)
def encoding(vocabulary: Path) -> HarmonyEncoding:
    """Return openai-harmony's encoding, loaded once in a process."""
    from gristmill.vocabularies.pinned import load_harmony_file

    return load_harmony_file(vocabulary)


def parse(messages_json: str) -> list[Any]:
    """The list `messages` of a Harmony row. Raises ValueError if it is not strict JSON with one."""
    messages = strict_json(messages_json)
    messages = messages.get("messages") if isinstance(messages, dict) else None
    if not isinstance(messages, list):
        raise ValueError("messages_json must contain a list field 'messages'.")
    return messages


def render(messages: Sequence[Any], harmony: HarmonyEncoding) -> Rendered:
    """Render a conversation for training; analysis messages are kept.

    If the last message is from the assistant on the channel `final`, its last
    token becomes <|return|>. Raises one of `CONVERSATION_ERRORS` for a
    conversation that is refused: the rules are tested in the order of their list.
    Nothing is repaired.
    """
    from openai_harmony import Conversation, Message, RenderConversationConfig

    _check_roles(messages)
    parsed = [Message.from_dict(message) for message in messages]
    training_tokens = harmony.render_conversation_for_training(
        Conversation.from_messages(parsed), RenderConversationConfig(auto_drop_analysis=False)
    )
    tokens: list[int] = []
    lengths: list[int] = []
    spans: list[int] = []
    for message, harmony_message in zip(messages, parsed, strict=True):
        rendered = harmony.render(harmony_message)
        spans.append(span_of(message))
        lengths.append(len(rendered))
        tokens += rendered
    if messages[-1]["role"] == "assistant" and messages[-1].get("channel") == "final":
        tokens[-1] = harmony_tokens.RETURN
    if tokens != training_tokens:
        raise ValueError("Message render does not match conversation render.")
    tokens.append(harmony_tokens.ENDOFTEXT)
    return Rendered(tokens, lengths, spans, control_texts(messages), unknown_keys(messages))


def _check_roles(messages: Sequence[Any]) -> None:
    for message in messages:
        role = message.get("role")
        if role not in harmony_tokens.ROLES:
            raise ValueError(f"Unsupported role: {role}")
    if not messages:
        raise ValueError("No messages to render.")
    if not any(message["role"] == "assistant" for message in messages):
        raise ValueError("No assistant messages found in conversation.")


def span_of(message: Mapping[str, Any]) -> int:
    """Return the span code of a message."""
    if message["role"] != "assistant":
        return harmony_tokens.PROMPT
    channel = message.get("channel")
    if channel not in harmony_tokens.CHANNELS:
        raise ValueError(f"Assistant message missing/invalid channel: {channel!r}")
    return harmony_tokens.REASONING if channel == "analysis" else harmony_tokens.FINAL


def control_texts(messages: Iterable[Any]) -> int:
    """Return the number of control-token texts in all strings of the contents of messages."""
    count = 0
    waiting = [message["content"] for message in messages]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            count += len(harmony_tokens.TEXT.findall(value))
        elif isinstance(value, Mapping):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
    return count


def unknown_keys(messages: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys of messages that hold something and are not rendered, once for each message.

    A key of an item of a content has `content.` before it.
    """
    found = []
    for message in messages:
        found += _holding(message, _MESSAGE_KEYS)
        if not isinstance(message["content"], str):
            for item in message["content"]:
                found += [f"content.{key}" for key in _holding(item, _ITEM_KEYS[item["type"]])]
    return tuple(found)


def unknown_keys_rule(keys: Sequence[str]) -> str:
    """Return the rule that a row breaks whose messages have such keys."""
    named = cut(", ".join(map(repr, dict.fromkeys(keys))), _MOST_NAMED)
    return (
        f"ValueError: a message has keys that are not rendered ({named}): make a message of what "
        'they hold, remove them, or set unknown_keys to "count"'
    )


def _holding(value: Mapping[str, Any], known: Container[str]) -> list[str]:
    empty: tuple[Any, ...] = (None, "", [], {})
    return [shown_key(key) for key, held in value.items() if key not in known and held not in empty]


def strict_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, or RecursionError for deep nesting."""
    return json.loads(text, object_pairs_hook=_members, parse_constant=_constant)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shown_key(twice)!r} is twice in one object: remove one of them")
    return members


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON: write null or a number")


def shown_key(key: str) -> str:
    """Return a key as messages and counts name it."""
    return cut(printable(key), _LONGEST_KEY)


def column_rules(name: str, texts: Sequence[str | None]) -> dict[int, str]:
    """Return the rules that a column of JSON that is not rendered breaks, by index."""
    doubted = [at for at, text in enumerate(texts) if text is not None and _is_doubted(text)]
    return json_rules(texts, doubted, f"{name}: ")


def _is_doubted(text: str) -> bool:
    """Whether a text may not be strict: each key, also one that is there twice, has a colon."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return True
    return text.count(":") != (len(value) if type(value) is dict else 0)


def json_rules(
    texts: Sequence[str | None], doubted: Iterable[int], name: str = ""
) -> dict[int, str]:
    """Return the rules of strict JSON that texts break, by index."""
    rules = {}
    for index in doubted:
        try:
            if (text := texts[index]) is not None:
                strict_json(text)
        except (ValueError, RecursionError) as error:
            rules[index] = f"{type(error).__name__}: {name}{error}"
    return rules
