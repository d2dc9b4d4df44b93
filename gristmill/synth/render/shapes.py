"""Shapes: the tokens, spans and message lengths that conversations have around their bodies.

See also `templates.py`: which conversations are rendered by shapes.

Source: `docs/formats/synth.md#templates`, `docs/formats/synth.md#message-form`,
`docs/formats/synth.md#final-terminator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.synth.format import harmony_tokens
from gristmill.synth.render.harmony import Rendered
from gristmill.vocabularies import encode

UNKNOWN: Final = -1


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
    keys: number of keys in the JSON of the fixed messages.
    """

    templates: tuple[memoryview, ...]
    fixed: encode.Tokens
    has_body: npt.NDArray[np.bool_]
    spans: npt.NDArray[np.uint8]
    control_texts: int
    unknown_keys: tuple[str, ...]
    keys: int


class Conversation(NamedTuple):
    """A conversation that can be assembled.

    shape: everything but its bodies.
    bodies: texts in order, not yet encoded.
    control_texts: number of control-token texts in all its contents.
    keys: number of keys in its JSON, each once in its object; default UNKNOWN, for one that
        openai-harmony rendered.
    """

    shape: Shape
    bodies: Sequence[str]
    control_texts: int
    keys: int = UNKNOWN


@dataclass(frozen=True)
class MessageKind:
    """The tokens of a kind of message around its body, or those of a fixed message.

    before: token ids before the body, or all token ids of a fixed message.
    control_texts: number of control-token texts in a fixed message.
    unknown_keys: of a fixed message, as `harmony.unknown_keys`.
    keys: number of keys in the JSON of a fixed message.
    """

    before: tuple[int, ...]
    has_body: bool
    after: tuple[int, ...]
    span: int
    control_texts: int = 0
    unknown_keys: tuple[str, ...] = ()
    keys: int = 0


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
        keys=sum(kind.keys for kind in kinds),
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
        keys=0,
    )
    return Conversation(shape, (), rendered.control_texts)
