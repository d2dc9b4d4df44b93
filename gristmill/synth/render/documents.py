"""Conversations become documents: templates around their texts, tokens, spans of labels, lengths.

The templates take a conversation only if no rule can refuse it and each message is a header, one
text and a terminator. The others go to `harmony.py`, with which the tests compare this module.
Source: `docs/formats/synth.md#templates`, `docs/formats/synth.md#label-alignment`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.synth.format import harmony_tokens
from gristmill.synth.render import harmony
from gristmill.synth.render.harmony import CONVERSATION_ERRORS, Rendered
from gristmill.vocabularies import encode
from gristmill.vocabularies.engine import AUTO, TIKTOKEN
from gristmill.vocabularies.pinned import O200K

if TYPE_CHECKING:
    from openai_harmony import HarmonyEncoding


@dataclass(frozen=True)
class Shape:
    """What conversations with the same roles, channels and fixed messages have in common.

    A fixed message has no body: a system or developer message, rendered once. The
    EOD counts as one more message. k is the number of bodies.

    templates: k + 1 arrays of token ids, int32, before, between and after the bodies.
    fixed: int32 [messages + 1], number of tokens of each message without its body.
    has_body: bool [messages + 1].
    spans: uint8 [messages + 1], span code of each message.
    control_texts: number of control-token texts in the fixed messages.
    unknown_keys: as `harmony.unknown_keys`.
    """

    templates: tuple[memoryview, ...]
    fixed: encode.Tokens
    has_body: npt.NDArray[np.bool_]
    spans: npt.NDArray[np.uint8]
    control_texts: int
    unknown_keys: tuple[str, ...]


class Conversation(NamedTuple):
    """A conversation to assemble.

    is_strict: whether no key of its JSON can be twice in one object.
    """

    shape: Shape
    bodies: Sequence[str]
    control_texts: int
    is_strict: bool = False


@dataclass(frozen=True)
class MessageKind:
    """A kind of message: tokens before and after its body, or all of a fixed one before it."""

    before: tuple[int, ...]
    has_body: bool
    after: tuple[int, ...]
    span: int
    control_texts: int = 0
    unknown_keys: tuple[str, ...] = ()


def text_kinds() -> dict[str | bytes, MessageKind | None]:
    """Return the kinds of messages whose content is one text.

    The keys are the roles `system`, `developer` and `user`, the channels `analysis` and `final` of
    an assistant message, and `return` for a `final` message at the end of a conversation.
    """
    start, message, end = harmony_tokens.START, harmony_tokens.MESSAGE, (harmony_tokens.END,)
    kinds: dict[str | bytes, MessageKind | None] = {}
    for role in ("system", "developer", "user"):
        before = (start, harmony_tokens.ROLE_WORDS[role], message)
        kinds[role] = MessageKind(before, True, end, harmony_tokens.PROMPT)
    assistant = (start, harmony_tokens.ROLE_WORDS["assistant"], harmony_tokens.CHANNEL)
    for channel, span in (("analysis", harmony_tokens.REASONING), ("final", harmony_tokens.FINAL)):
        word = harmony_tokens.CHANNEL_WORDS[channel]
        kinds[channel] = MessageKind((*assistant, word, message), True, end, span)
    final = (*assistant, harmony_tokens.CHANNEL_WORDS["final"], message)
    kinds["return"] = MessageKind(final, True, (harmony_tokens.RETURN,), harmony_tokens.FINAL)
    return kinds


def shape_of(kinds: Sequence[MessageKind]) -> Shape:
    """Return the shape of conversations with these messages, followed by the EOD."""
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
        unknown_keys=tuple(key for kind in kinds for key in kind.unknown_keys),
    )


def without_bodies(rendered: Rendered) -> Conversation:
    """Return a conversation that openai-harmony rendered, as one template without bodies."""
    messages = len(rendered.lengths) + 1
    shape = Shape(
        templates=(np.array(rendered.tokens, dtype=np.int32).data,),
        fixed=np.array([*rendered.lengths, 1], dtype=np.int32),
        has_body=np.zeros(messages, dtype=np.bool_),
        spans=np.array([*rendered.spans, harmony_tokens.PROMPT], dtype=np.uint8),
        control_texts=rendered.control_texts,
        unknown_keys=rendered.unknown_keys,
    )
    return Conversation(shape, (), rendered.control_texts)


def _none() -> encode.Tokens:
    return np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class Documents:
    """D documents back to back, with N tokens in R runs.

    A run is one message; the EOD is the last run of its document.

    tokens: int32 [N], token ids.
    span: uint8 [N], span codes of labels: position t describes the token t + 1.
    lengths: int32 [D], number of tokens of each document.
    runs: int32 [R], number of tokens of each run.
    run_counts: int32 [D], number of runs of each document.
    texts: int32 [D], number of encoded texts of each document; default none.
    by_tiktoken: int32 [D], number of those that tiktoken encoded; default none.
    """

    tokens: encode.Tokens
    span: npt.NDArray[np.uint8]
    lengths: encode.Tokens
    runs: encode.Tokens
    run_counts: encode.Tokens
    texts: encode.Tokens = field(default_factory=_none)
    by_tiktoken: encode.Tokens = field(default_factory=_none)

    def first(self, count: int) -> Documents:
        """Return the first documents."""
        tokens = int(self.lengths[:count].sum(dtype=np.int64))
        runs = int(self.run_counts[:count].sum(dtype=np.int64))
        return replace(
            self,
            tokens=self.tokens[:tokens],
            span=self.span[:tokens],
            lengths=self.lengths[:count],
            runs=self.runs[:runs],
            run_counts=self.run_counts[:count],
            texts=self.texts[:count],
            by_tiktoken=self.by_tiktoken[:count],
        )

    def chosen(self, keep: npt.NDArray[np.bool_]) -> Documents:
        """Return some of the documents. keep: bool [D]."""
        inside = np.repeat(keep, self.lengths)
        return Documents(
            tokens=self.tokens[inside],
            span=self.span[inside],
            lengths=self.lengths[keep],
            runs=self.runs[np.repeat(keep, self.run_counts)],
            run_counts=self.run_counts[keep],
            texts=self.texts[keep],
            by_tiktoken=self.by_tiktoken[keep],
        )


def assemble(
    conversations: Sequence[Conversation], vocabulary: Path, engine: str = AUTO
) -> Documents:
    """Encode bodies, and place them between templates. Raises ValueError if one cannot be."""
    if not conversations:
        return Documents(_none(), np.zeros(0, dtype=np.uint8), _none(), _none(), _none())
    own_texts = [conversation.bodies for conversation in conversations]
    texts = [body for bodies in own_texts for body in bodies]
    bodies, by_tiktoken = encode.encoder(O200K, vocabulary, engine).encode(texts)
    shapes = [conversation.shape for conversation in conversations]
    runs, run_counts = _runs(shapes, bodies)
    firsts = np.cumsum(run_counts, dtype=np.int64) - run_counts
    lengths = np.add.reduceat(runs, firsts, dtype=np.int32)
    span = np.repeat(np.concatenate([shape.spans for shape in shapes]), runs)
    counts = np.fromiter(map(len, own_texts), dtype=np.int32, count=len(own_texts))
    return Documents(
        tokens=_tokens(conversations, bodies),
        span=label_span(span, lengths),
        lengths=lengths,
        runs=runs,
        run_counts=run_counts,
        texts=counts,
        by_tiktoken=each_of(counts, by_tiktoken),
    )


def _runs(
    shapes: Sequence[Shape], bodies: Sequence[memoryview]
) -> tuple[encode.Tokens, encode.Tokens]:
    """Tokens of each run, and runs of each document."""
    runs = np.concatenate([shape.fixed for shape in shapes])
    has_body = np.concatenate([shape.has_body for shape in shapes])
    runs[has_body] += np.fromiter((body.nbytes >> 2 for body in bodies), np.int32, len(bodies))
    run_counts = np.fromiter((len(s.fixed) for s in shapes), dtype=np.int32, count=len(shapes))
    return runs, run_counts


def each_of(counts: encode.Tokens, places: Collection[int]) -> encode.Tokens:
    """How many of some places of texts belong to each document. counts: int32 [D]."""
    owners = np.searchsorted(np.cumsum(counts), sorted(places), side="right")
    return np.bincount(owners, minlength=len(counts)).astype(np.int32)


def _tokens(conversations: Sequence[Conversation], bodies: Sequence[memoryview]) -> encode.Tokens:
    """All templates and bodies in order."""
    buffers: list[memoryview] = []
    position = 0
    for shape, own, _, _ in conversations:
        templates = shape.templates
        for template, body in zip(templates, bodies[position : position + len(own)], strict=False):
            buffers.append(template)
            buffers.append(body)
        buffers.append(templates[-1])
        position += len(own)
    # All buffers hold int32. Joining bytes is ten times as fast as joining arrays.
    return np.frombuffer(b"".join(buffers), dtype=np.int32)


def label_span(span: npt.NDArray[np.uint8], lengths: encode.Tokens) -> npt.NDArray[np.uint8]:
    """Shift the span of each document by one, so that position t describes the token t + 1.

    The last position of a document has no label. Its span is 0, not the first span
    of the next document.
    """
    shifted = np.empty_like(span)
    shifted[:-1] = span[1:]
    shifted[np.cumsum(lengths, dtype=np.int64) - 1] = 0
    return shifted


_REMEMBERED: Final = 4096
"""Kinds of messages, or shapes, after which a renderer forgets all of them."""

_TEXT: Final = ', "content": [{"type": "text", "text": "'
_NEXT: Final = '"}]}, {"role": "'
_CHANNEL: Final = '"}], "channel": "'
_ROLES: Final = {f'{{"role": "{role}"{_TEXT}': role for role in harmony_tokens.ROLES}
"""What stands before, between and behind texts as our code writes JSON."""

_TEXT_KEYS: Final = 2
"""Keys of an item that is a text: `type` and `text`."""

Key = str | bytes
"""A kind of message: a key of `text_kinds`, or the JSON of a fixed message."""


class BadRow(Exception):
    """A conversation that cannot be rendered. The text is the rule that it breaks."""


class _Head(NamedTuple):
    """The beginning that conversations of one dataset share, up to the first user message."""

    text: str = '{"messages": ['
    keys: tuple[Key, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()


class Renderer:
    """Reads Harmony rows. It remembers a limited number of messages and shapes."""

    def __init__(self, vocabulary: Path) -> None:
        self._vocabulary = vocabulary
        self._forget()

    @property
    def _harmony(self) -> HarmonyEncoding:
        """openai-harmony, which few conversations need, and which takes long to load."""
        return harmony.encoding(self._vocabulary)

    def _forget(self) -> None:
        self._kinds: dict[Key, MessageKind | None] = text_kinds()
        self._shapes: dict[tuple[Key, ...], Shape] = {}
        self._head = _Head()

    def read(self, messages_json: str) -> Conversation:
        """Parse one row and find its shape. Raises BadRow with the rule that it breaks."""
        conversation = self._after_head(messages_json)
        if conversation is None:
            conversation = self._from_start(messages_json)
        return self._by_harmony(messages_json) if conversation is None else conversation

    def _after_head(self, text: str) -> Conversation | None:
        """The conversation, if it begins as the one before it, and the rest is as our code writes.

        All around the texts is then known, so that no key is twice, and each text is one string.
        """
        head = self._head
        if not text.startswith(head.text):
            return None
        keys: list[Key] = [*head.keys]
        bodies: list[str] = []
        at = len(head.text)
        while True:
            begin = text.find(_TEXT, at) + len(_TEXT)
            role = _ROLES.get(text[at:begin])
            stop = text.find(_CHANNEL if role == "assistant" else _NEXT, begin)
            if role is None or stop < 0:
                return None
            at = stop + 3
            if role == "assistant":
                at = text.find('"', stop + len(_CHANNEL)) + 1
                role = text[stop + len(_CHANNEL) : at - 1]
                if role not in harmony_tokens.CHANNELS:
                    return None
            try:
                bodies.append(orjson.loads(text[begin - 1 : stop + 1]))
            except ValueError:
                return None
            keys.append(role)
            if text.startswith("}]}", at) and len(text) == at + 3:
                break
            if not text.startswith("}, ", at):
                return None
            at += 3
        return self._made(keys, bodies, [*head.messages, *({} for _ in bodies)], is_strict=True)

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
        parts = _keys_and_bodies(messages)
        conversation = parts and self._made(*parts, messages)
        if conversation and len(value) == 1:
            self._head = _head(messages_json, messages)
        return conversation

    def _by_harmony(self, messages_json: str) -> Conversation:
        encoding = self._harmony  # an error of its load is no bad row
        try:
            messages = harmony.parse(messages_json)
            return without_bodies(harmony.render(messages, encoding))
        except CONVERSATION_ERRORS as error:
            raise BadRow(f"{type(error).__name__}: {error}") from error
        except BaseException as error:
            if not _is_panic(error):
                raise
            raise BadRow(f"openai-harmony gave up: {error}") from error

    def _made(
        self, keys: list[Key], bodies: list[str], messages: Sequence[Any], is_strict: bool = False
    ) -> Conversation | None:
        """The conversation of these messages, or None if it needs openai-harmony."""
        if keys and keys[-1] == "final":
            keys[-1] = "return"
        shape = self._shapes.get(tuple(keys)) or self._learn(tuple(keys), messages)
        if shape is None:
            return None
        control_texts = shape.control_texts
        for body in bodies:
            # Finding one character is many times as fast as finding two.
            if "|" in body and "<|" in body:
                control_texts += len(harmony_tokens.TEXT.findall(body))
        return Conversation(shape, bodies, control_texts, is_strict)

    def _learn(self, keys: tuple[Key, ...], messages: Sequence[Any]) -> Shape | None:
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
        if any("tools" in item or item["type"] == "text" for item in message["content"]):
            return None
        if (tokens := self._by_rule(message) or self._by_openai(message)) is None:
            return None
        return MessageKind(
            before=tuple(tokens),
            has_body=False,
            after=(),
            span=harmony_tokens.PROMPT,
            control_texts=harmony.control_texts([message]),
            unknown_keys=harmony.unknown_keys([message]),
        )

    def _by_rule(self, message: dict[str, Any]) -> list[int] | None:
        """The tokens of a message as our code writes it, without openai-harmony."""
        if (text := _own_text(message)) is None:
            return None
        try:
            (ids,) = encode.encoder(O200K, self._vocabulary, TIKTOKEN).encode([text]).ids
        except ValueError:
            return None
        head = harmony_tokens.START, harmony_tokens.ROLE_WORDS[message["role"]]
        body = np.frombuffer(ids, np.int32).tolist()
        return [*head, harmony_tokens.MESSAGE, *body, harmony_tokens.END]

    def _by_openai(self, message: dict[str, Any]) -> list[int] | None:
        from openai_harmony import Message

        encoding = self._harmony
        try:
            found: list[int] = encoding.render(Message.from_dict(message))
        except CONVERSATION_ERRORS:
            # The error is not lost: `harmony.render` meets this message again and raises it.
            return None
        except BaseException as error:
            if not _is_panic(error):
                raise
            return None
        return found


def _own_text(message: dict[str, Any]) -> str | None:
    """What a system or developer message says, if it is as our code writes it."""
    match message:
        case {
            "role": "developer",
            "content": [{"type": "developer_content", "instructions": str(instructions), **more}],
            **other,
        }:
            text = f"# Instructions\n\n{instructions}"
        case {
            "role": "system",
            "content": [
                {
                    "type": "system_content",
                    "model_identity": str(identity),
                    "reasoning_effort": "Low" | "Medium" | "High" as effort,
                    "conversation_start_date": str(date),
                    "knowledge_cutoff": str(cutoff),
                    "channel_config": {
                        "valid_channels": ["analysis", "commentary", "final"],
                        "channel_required": True,
                    } as channels,
                    **more,
                }
            ],
            **other,
        } if len(channels) == len(("valid_channels", "channel_required")):
            text = (
                f"{identity}\nKnowledge cutoff: {cutoff}\nCurrent date: {date}\n\n"
                f"Reasoning: {effort.lower()}\n\n# Valid channels: analysis, commentary, final. "
                "Channel must be included for every message."
            )
        case _:
            return None
    return None if more or other else text


def _keys_and_bodies(messages: list[Any]) -> tuple[list[Key], list[str]] | None:
    """The kind of each message, and the texts among them."""
    keys: list[Key] = []
    bodies: list[str] = []
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
            elif role in ("system", "developer"):
                keys.append(orjson.dumps(message))
            else:
                return None
    except (KeyError, TypeError, IndexError):
        return None
    return keys, bodies


def _is_panic(error: BaseException) -> bool:
    """Whether openai-harmony panicked; its class cannot be imported, and is no Exception."""
    return type(error).__name__ == "PanicException"


def _head(messages_json: str, messages: list[Any]) -> _Head:
    """The system and developer messages that begin a conversation, to compare the next one with."""
    end = messages_json.find(', {"role": "user"')
    try:
        fixed = harmony.strict_json(messages_json[:end] + "]}")["messages"]
    except (ValueError, KeyError, RecursionError):
        # This is not the end of a list of messages: a value before it looks like one.
        return _Head()
    if end < 0 or type(fixed) is not list or fixed != messages[: len(fixed)]:
        return _Head()
    has_text = any(type(m["content"]) is str or "text" in m["content"][0] for m in fixed)
    if has_text or len(fixed) == len(messages):
        return _Head()
    keys = tuple(orjson.dumps(message) for message in fixed)
    return _Head(messages_json[: end + 2], keys, tuple(fixed))
