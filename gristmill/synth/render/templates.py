"""The fast renderer: conversations of texts are rendered by templates around their bodies.

It takes a conversation only if no rule can refuse it and each message is a header, one text and a
terminator. The others go to `harmony.py`, with which the tests compare this module.
Source: `docs/formats/synth.md#templates`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.synth.format import harmony_tokens
from gristmill.synth.render import harmony, strict
from gristmill.synth.render.documents import (
    Conversation,
    MessageKind,
    Shape,
    shape_of,
    text_kinds,
    without_bodies,
)
from gristmill.synth.render.harmony import CONVERSATION_ERRORS

_REMEMBERED: Final = 4096
"""Kinds of messages, or shapes, after which a renderer forgets all of them."""

_TEXT_KEYS: Final = 2
"""Keys of an item that is a text: `type` and `text`."""

Key = str | bytes
"""A kind of message: a key of `text_kinds`, or the JSON of a fixed message."""


class BadRow(Exception):
    """A conversation that cannot be rendered. The text is the rule that it breaks."""


class _Head(NamedTuple):
    """The beginning that conversations of one dataset share, up to the first user message."""

    text: str = ""
    keys: tuple[Key, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()


class Renderer:
    """Reads Harmony rows. It remembers a limited number of messages and shapes."""

    def __init__(self, vocabulary: Path) -> None:
        # Loaded before the first row, so that an error here is not a bad row.
        self._harmony = harmony.encoding(vocabulary)
        self._forget()

    def _forget(self) -> None:
        self._kinds: dict[Key, MessageKind | None] = text_kinds()
        self._shapes: dict[tuple[Key, ...], Shape] = {}
        self._head = _Head()

    def read(self, messages_json: str) -> Conversation:
        """Parse one row and find its shape.

        Raises BadRow with the rule that the row breaks.
        """
        conversation = self._after_head(messages_json)
        if conversation is None:
            conversation = self._from_start(messages_json)
        return self._by_harmony(messages_json) if conversation is None else conversation

    def _after_head(self, messages_json: str) -> Conversation | None:
        """The conversation, if it begins as the one before it and needs no openai-harmony."""
        head = self._head
        if not (head.text and messages_json.startswith(head.text) and messages_json.endswith("]}")):
            return None
        try:
            # The rest is parsed as a list of its own. If it were not the rest of the
            # same list, it would not be valid JSON here.
            rest = orjson.loads("[" + messages_json[len(head.text) : -1])
        except ValueError:
            return None
        return self._by_templates(rest, head) if rest else None

    def _from_start(self, messages_json: str) -> Conversation | None:
        """The conversation, if it needs no openai-harmony; its beginning is remembered."""
        try:
            value = orjson.loads(messages_json)
            messages = value["messages"]
        except (ValueError, TypeError, KeyError):
            # Python's JSON has lone surrogates, huge numbers and NaN; orjson has not.
            return None
        if type(messages) is not list:
            return None
        conversation = self._by_templates(messages, _Head())
        if conversation is None:
            return None
        if len(value) > 1:
            return conversation._replace(keys=strict.count_keys(value))
        self._head = _head(messages_json, messages)
        return conversation

    def _by_harmony(self, messages_json: str) -> Conversation:
        try:
            messages = harmony.parse(messages_json)
            return without_bodies(harmony.render(messages, self._harmony))
        except CONVERSATION_ERRORS as error:
            raise BadRow(f"{type(error).__name__}: {error}") from error
        except BaseException as error:
            if not _is_panic(error):
                raise
            raise BadRow(f"openai-harmony gave up: {error}") from error

    def _by_templates(self, messages: list[Any], head: _Head) -> Conversation | None:
        """The conversation of `head` and then `messages`, or None if it needs openai-harmony."""
        parts = _keys_and_bodies(messages)
        if parts is None:
            return None
        keys, bodies, own_keys = [*head.keys, *parts[0]], parts[1], parts[2]
        if not keys:
            return None
        if keys[-1] == "final":
            keys[-1] = "return"
        shape = self._shapes.get(tuple(keys)) or self._learn(
            tuple(keys), [*head.messages, *messages]
        )
        if shape is None:
            return None
        control_texts = shape.control_texts
        for body in bodies:
            # Finding one character is many times as fast as finding two.
            if "|" in body and "<|" in body:
                control_texts += len(harmony_tokens.TEXT.findall(body))
        return Conversation(shape, bodies, control_texts, 1 + own_keys + shape.keys)

    def _learn(self, keys: tuple[Key, ...], messages: list[Any]) -> Shape | None:
        """The shape of these keys, or None if one of the messages needs openai-harmony."""
        if not any(key in ("analysis", "final", "return") for key in keys):
            return None
        if len(self._kinds) > _REMEMBERED or len(self._shapes) > _REMEMBERED:
            self._forget()
        kinds = []
        for key, message in zip(keys, messages, strict=True):
            if key not in self._kinds:
                self._kinds[key] = self._fixed(message)
            kind = self._kinds[key]
            if kind is None:
                return None
            kinds.append(kind)
        self._shapes[keys] = shape = shape_of(kinds)
        return shape

    def _fixed(self, message: dict[str, Any]) -> MessageKind | None:
        """A system or developer message without texts, as openai-harmony renders it."""
        from openai_harmony import Message

        if any("tools" in item or item["type"] == "text" for item in message["content"]):
            return None
        try:
            tokens = self._harmony.render(Message.from_dict(message))
        except CONVERSATION_ERRORS:
            # The error is not lost: `harmony.render` meets this message again and raises it.
            return None
        except BaseException as error:
            if not _is_panic(error):
                raise
            return None
        control_texts = harmony.control_texts([message])
        return MessageKind(
            before=tuple(tokens),
            has_body=False,
            after=(),
            span=harmony_tokens.PROMPT,
            control_texts=control_texts,
            unknown_keys=harmony.unknown_keys([message]),
            keys=strict.count_keys(message),
        )


def _keys_and_bodies(messages: list[Any]) -> tuple[list[Key], list[str], int] | None:
    """The kind of each message, the texts among them, and how many JSON keys are around these."""
    keys: list[Key] = []
    bodies: list[str] = []
    around = 0
    try:
        for message in messages:
            role, content = message["role"], message["content"]
            if type(content) is not str:
                item = content[0]
                if len(content) != 1:
                    return None
                is_text = item["type"] == "text" and len(item) == _TEXT_KEYS
                content = item["text"] if is_text else None
            if type(content) is str:
                if role == "assistant":
                    if len(message) != 3:
                        return None
                    role = message["channel"]
                    if role not in harmony_tokens.CHANNELS:
                        return None
                elif len(message) != 2 or role not in harmony_tokens.ROLES:
                    return None
                keys.append(role)
                bodies.append(content)
                around += len(message) + (0 if content is message["content"] else _TEXT_KEYS)
            elif role in ("system", "developer"):
                keys.append(orjson.dumps(message))
            else:
                return None
    except (KeyError, TypeError, IndexError):
        return None
    return keys, bodies, around


def _is_panic(error: BaseException) -> bool:
    """Whether openai-harmony panicked, as it does on a run of a million equal characters.

    The class of the error cannot be imported, and it is not an Exception.
    """
    return type(error).__name__ == "PanicException"


def _head(messages_json: str, messages: list[Any]) -> _Head:
    """The system and developer messages that begin a conversation, to compare the next one with."""
    end = messages_json.find(', {"role": "user"')
    try:
        fixed = orjson.loads(messages_json[:end] + "]}")["messages"]
    except (ValueError, KeyError):
        # This is not the end of a list of messages: a value before it looks like one.
        return _Head()
    if end < 0 or type(fixed) is not list or fixed != messages[: len(fixed)]:
        return _Head()
    has_text = any(type(m["content"]) is str or "text" in m["content"][0] for m in fixed)
    if has_text or len(fixed) == len(messages):
        return _Head()
    keys = tuple(orjson.dumps(message) for message in fixed)
    return _Head(messages_json[: end + 2], keys, tuple(fixed))
