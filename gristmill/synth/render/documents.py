"""Assembles conversations into the arrays of one split: tokens, spans of labels, lengths.

Source: `docs/formats/synth.md#label-alignment`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.synth.format import harmony_tokens
from gristmill.synth.render.harmony import Rendered
from gristmill.vocabularies import encode
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import O200K

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
        """Return the first documents.

        count: how many, at most D.
        """
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
    """Encode the bodies of conversations and place them between their templates.

    engine: one of `engine.ENGINES`; default gigatoken where it is proven equal.

    Raises ValueError if a body cannot be encoded, without naming the conversation.
    """
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
    """How many of some places of texts belong to each document.

    counts: int32 [D], number of texts of each document.
    """
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
