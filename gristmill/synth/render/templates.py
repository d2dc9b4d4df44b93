"""The fast path: conversations of plain text, rendered by templates around their bodies.

A conversation is taken here only if nothing in it can be refused or needs more
than a header, a text and a terminator. System and developer contents without
tools are rendered once by openai-harmony and remembered. All else goes to
`rendering.py`, which is the oracle of this module in the tests.
Source: `docs/formats/synth.md#templates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.synth.format import harmony_tokens
from gristmill.synth.render import harmony
from gristmill.vocabularies import encode

_REMEMBERED: Final = 4096
_ERRORS: Final = (ValueError, KeyError, AttributeError, TypeError, RuntimeError)


class BadRow(Exception):
    """A conversation that cannot be rendered; the text is the rule that it breaks."""


@dataclass(frozen=True)
class Shape:
    """What conversations of the same roles, channels and fixed messages have in common.

    templates: k+1 runs of token ids, int32, that stand around the k bodies.
    fixed: int32 [messages + 1], tokens of each message but its body; last is the EOD.
    has_body: bool [messages + 1].
    spans: uint8 [messages + 1], span id of each message; the EOD has 0.
    control_texts: control-token texts in the fixed messages.
    """

    templates: tuple[memoryview, ...]
    fixed: encode.Tokens
    has_body: npt.NDArray[np.bool_]
    spans: npt.NDArray[np.uint8]
    control_texts: int


class Conversation(NamedTuple):
    """A conversation ready to be assembled: its shape, its bodies, and what they hold."""

    shape: Shape
    bodies: Sequence[str]
    control_texts: int


@dataclass(frozen=True)
class _Message:
    before: tuple[int, ...]
    has_body: bool
    after: tuple[int, ...]
    span: int
    control_texts: int = 0


class _Head(NamedTuple):
    """The beginning that conversations of one data set share, up to the first user message.

    text: of the JSON. keys, messages: of the fixed messages in it. Nothing where
    conversations do not begin alike.
    """

    text: str
    keys: tuple[str | bytes, ...]
    messages: tuple[dict[str, Any], ...]


def _text_kinds() -> dict[str | bytes, _Message | None]:
    start, message, end = harmony_tokens.START, harmony_tokens.MESSAGE, (harmony_tokens.END,)
    kinds: dict[str | bytes, _Message | None] = {
        role: _Message(
            (start, harmony_tokens.ROLE_WORDS[role], message), True, end, harmony_tokens.PROMPT
        )
        for role in ("system", "developer", "user")
    }
    for channel, span in (("analysis", harmony_tokens.REASONING), ("final", harmony_tokens.FINAL)):
        word = harmony_tokens.CHANNEL_WORDS[channel]
        before = (
            start,
            harmony_tokens.ROLE_WORDS["assistant"],
            harmony_tokens.CHANNEL,
            word,
            message,
        )
        kinds[channel] = _Message(before, True, end, span)
        if channel == "final":
            kinds["return"] = _Message(before, True, (harmony_tokens.RETURN,), span)
    return kinds


class Renderer:
    """Reads Harmony rows. Holds what it remembers of messages and shapes, bounded."""

    def __init__(self, vocabulary: Path) -> None:
        # Loaded before any row is read: a failure here is no fault of a row.
        self._harmony = harmony.encoding(vocabulary)
        self._forget()

    def _forget(self) -> None:
        self._kinds: dict[str | bytes, _Message | None] = _text_kinds()
        self._shapes: dict[tuple[str | bytes, ...], Shape] = {}
        self._head = _Head("", (), ())

    def read(self, messages_json: str) -> Conversation:
        """Parse one row's `messages_json`. BadRow names the rule that it breaks."""
        head = self._head
        if head.text and messages_json.startswith(head.text) and messages_json.endswith("]}"):
            try:
                # A list of the rest: were it not the rest of the same list, it
                # would not be JSON here.
                rest = orjson.loads("[" + messages_json[len(head.text) : -1])
            except ValueError:
                rest = None
            if rest and (conversation := self._plain(rest, head)) is not None:
                return conversation
        try:
            messages = orjson.loads(messages_json)["messages"]
        except (ValueError, TypeError, KeyError):
            # Lone surrogates, huge numbers, NaN: JSON for Python, not for orjson.
            messages = None
        if type(messages) is list:
            conversation = self._plain(messages, _Head("", (), ()))
            if conversation is not None:
                self._head = _head(messages_json, messages)
                return conversation
        try:
            return self._by_harmony(messages_json)
        except _ERRORS as error:
            raise BadRow(f"{type(error).__name__}: {error}") from error
        except BaseException as error:
            if not _panicked(error):
                raise
            raise BadRow(f"openai-harmony gave up: {error}") from error

    def _plain(self, messages: list[Any], head: _Head) -> Conversation | None:
        """The conversation of `messages` after those of `head`, if this module can take it."""
        keys = [*head.keys]
        bodies: list[str] = []
        try:
            for message in messages:
                role, content = message["role"], message["content"]
                if type(content) is not str:
                    item = content[0]
                    if len(content) != 1:
                        return None
                    content = item["text"] if item["type"] == "text" else None
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
                elif role in ("system", "developer"):
                    keys.append(orjson.dumps(message))
                else:
                    return None
        except (KeyError, TypeError, IndexError):
            return None
        if not keys:
            return None
        if keys[-1] == "final":
            keys[-1] = "return"
        shape = self._shapes.get(tuple(keys)) or self._learn(
            tuple(keys), [*head.messages, *messages]
        )
        if shape is None:
            return None
        found = shape.control_texts
        for body in bodies:
            # One character is sought many times as fast as two.
            if "|" in body and "<|" in body:
                found += len(harmony_tokens.TEXT.findall(body))
        return Conversation(shape, bodies, found)

    def _learn(self, keys: tuple[str | bytes, ...], messages: list[Any]) -> Shape | None:
        """The shape of these keys; None if one of the fixed messages is not for this module."""
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
        self._shapes[keys] = shape = _shape(kinds)
        return shape

    def _fixed(self, message: dict[str, Any]) -> _Message | None:
        """A system or developer message without text contents, as openai-harmony renders it.

        None where it depends on other messages (tools) or is not valid.
        """
        from openai_harmony import Message

        if any("tools" in item or item["type"] == "text" for item in message["content"]):
            return None
        try:
            tokens = self._harmony.render(Message.from_dict(message))
        except _ERRORS:
            # Not hidden: `rendering` meets the same message again and tells of it.
            return None
        except BaseException as error:
            if not _panicked(error):
                raise
            return None
        found = harmony.control_texts([message])
        return _Message(tuple(tokens), False, (), harmony_tokens.PROMPT, found)

    def _by_harmony(self, messages_json: str) -> Conversation:
        rendered = harmony.render(harmony.parse(messages_json), self._harmony)
        runs = len(rendered.lengths) + 1
        shape = Shape(
            templates=(np.array(rendered.tokens, dtype=np.int32).data,),
            fixed=np.array([*rendered.lengths, 1], dtype=np.int32),
            has_body=np.zeros(runs, dtype=np.bool_),
            spans=np.array([*rendered.spans, harmony_tokens.PROMPT], dtype=np.uint8),
            control_texts=rendered.control_texts,
        )
        return Conversation(shape, (), rendered.control_texts)


def _panicked(error: BaseException) -> bool:
    """Whether openai-harmony panicked, as it does of a run of a million equal characters.

    The class cannot be imported, and is no Exception.
    """
    return type(error).__name__ == "PanicException"


def _head(messages_json: str, messages: list[Any]) -> _Head:
    """What of a conversation to look for in the next: its system and developer messages."""
    none = _Head("", (), ())
    end = messages_json.find(', {"role": "user"')
    try:
        fixed = orjson.loads(messages_json[:end] + "]}")["messages"]
    except (ValueError, KeyError):
        # Not the end of the list: a value before the messages looks like one.
        return none
    if end < 0 or type(fixed) is not list or fixed != messages[: len(fixed)]:
        return none
    # Of the same conversation, so their contents are what `_plain` lets pass.
    texts = any(type(m["content"]) is str or "text" in m["content"][0] for m in fixed)
    if texts or len(fixed) == len(messages):
        return none
    keys = tuple(orjson.dumps(message) for message in fixed)
    return _Head(messages_json[: end + 2], keys, tuple(fixed))


def _shape(kinds: Sequence[_Message]) -> Shape:
    templates: list[list[int]] = [[]]
    for kind in kinds:
        templates[-1] += kind.before
        if kind.has_body:
            templates.append([])
        templates[-1] += kind.after
    templates[-1].append(harmony_tokens.ENDOFTEXT)
    return Shape(
        templates=tuple(np.array(template, dtype=np.int32).data for template in templates),
        fixed=np.array([len(k.before) + len(k.after) for k in kinds] + [1], dtype=np.int32),
        has_body=np.array([kind.has_body for kind in kinds] + [False]),
        spans=np.array([kind.span for kind in kinds] + [harmony_tokens.PROMPT], dtype=np.uint8),
        control_texts=sum(kind.control_texts for kind in kinds),
    )
