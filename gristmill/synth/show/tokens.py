"""A document as shown tokens: their texts, their spans, and which of them the loss leaves out.

See also `drawing.py`: conversations in SVG; `terminal.py`: coloured text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput
from gristmill.printable import printable
from gristmill.synth.format import aligned, harmony_tokens, indexed
from gristmill.synth.read.trace import trace
from gristmill.vocabularies import encode

if TYPE_CHECKING:
    import tiktoken

_HEAD, _TAIL = 30, 6
_PROMPT_HEAD, _PROMPT_TAIL = 12, 4
_BELOW: Final = {
    "tokens": harmony_tokens.PADDED_VOCABULARY,
    "lossmask": 2,
    "span": len(harmony_tokens.SPANS),
}


@dataclass(frozen=True)
class ShownToken:
    """One token on a coloured ground, or a note in place of several tokens.

    text: of the token on one line.
    span: code of its span as a label; None for a note.
    masked: whether the loss leaves it out.
    control: whether it is a control token; default False.
    """

    text: str
    span: int | None
    masked: bool
    control: bool = False


@dataclass(frozen=True)
class Line:
    """One message.

    label: its role, or the channel of an assistant message.
    tokens: in order.
    """

    label: str
    tokens: list[ShownToken]


def conversation(
    root: Path, number: str, split: str, document: int, vocabulary: Path, whole: bool = False
) -> tuple[str, list[Line]]:
    """Return the title of a document, and its messages.

    root: the dataset.
    number: of the shard ("00").
    split: "train" or "valid".
    document: in the split of this shard, from 0.
    vocabulary: the vocabulary file.
    whole: whether to keep long bodies whole; default False, which shortens them.

    A shown token has the span and mask of its token as a label. The datasets hold
    them one place earlier; the first token of a document is not a label.
    Raises BadInput if there is no such document, or if it is damaged.
    Source: `docs/formats/synth.md#label-alignment`.
    """
    origin = trace(root, number, split, document)
    prefix = root / split / f"shard_{number}_tokens"
    tokens, mask, span = (
        _values(aligned.sibling(prefix, name), name, document, origin.offsets[-1] + 1)
        for name in _BELOW
    )
    bounds = [*origin.message_bounds(), (len(tokens) - 1, len(tokens))]
    about = " · ".join(x for x in (origin.language, origin.exercise) if x)
    title = (
        f"{split} document {document} · {origin.synth_id} · {len(tokens):,} tokens · "
        f"{origin.input} row {origin.row}" + (f" · {about}" if about else "")
    )
    return printable(title), lines(tokens, mask, span, bounds, vocabulary, whole)


def _values(prefix: Path, name: str, document: int, length: int) -> list[int]:
    """Return one document of a dataset. Raises BadInput for a wrong length or value."""
    values = indexed.read(prefix)[document]
    if len(values) != length or values.min() < 0 or values.max() >= _BELOW[name]:
        file = prefix.with_name(f"{prefix.name}.bin")
        rule = f"document {document} is damaged, see `gristmill verify`: build the shard again"
        raise BadInput(file, rule)
    return [int(value) for value in values]


def lines(
    tokens: Sequence[int],
    mask: Sequence[int],
    span: Sequence[int],
    bounds: Sequence[tuple[int, int]],
    vocabulary: Path,
    whole: bool,
) -> list[Line]:
    """Return the messages of one document, a line each.

    tokens: ids [T].
    mask, span: of the labels [T], as the datasets hold them.
    bounds: begin and end of each message in `tokens`.
    vocabulary: the vocabulary file.
    whole: whether to keep long bodies whole.

    Source: `docs/formats/synth.md#label-alignment`.
    """
    mask, span = [0, *mask[:-1]], [0, *span[:-1]]
    encoding = encode.encoding(vocabulary)
    messages = []
    for begin, end in bounds:
        shown = [
            ShownToken(
                written(token, encoding),
                span[place],
                not mask[place],
                token >= harmony_tokens.BODY_LIMIT,
            )
            for place, token in enumerate(tokens[begin:end], begin)
        ]
        label = _label(tokens[begin:end])
        messages.append(Line(label, shown if whole else _shortened(shown, span[begin])))
    return messages


def written(token: int, encoding: tiktoken.Encoding) -> str:
    """Return the text of a token on one line.

    token: its id.
    encoding: of the vocabulary.

    Spaces and line ends are visible. Bytes that are not UTF-8 are in hexadecimal.
    """
    if token >= harmony_tokens.BODY_LIMIT:
        return harmony_tokens.name(token)
    data = encoding.decode_single_token_bytes(token)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"‹{data.hex()}›"
    text = text.replace(" ", "·").replace("\n", "⏎").replace("\r", "␍").replace("\t", "⇥")
    return printable(text)


def _label(tokens: Sequence[int]) -> str:
    """Return the role of a message, or the channel of an assistant message, from its header."""
    if tokens[0] == harmony_tokens.ENDOFTEXT:
        return "end"
    roles = {word: role for role, word in harmony_tokens.ROLE_WORDS.items()}
    channels = {word: channel for channel, word in harmony_tokens.CHANNEL_WORDS.items()}
    if harmony_tokens.CHANNEL in tokens:
        place = list(tokens).index(harmony_tokens.CHANNEL)
        return channels.get(tokens[place + 1], "assistant")
    return roles.get(tokens[1], "message")


def _shortened(tokens: list[ShownToken], span: int) -> list[ShownToken]:
    """Return the head and tail of a long message, with a note between them."""
    head, tail = (_HEAD, _TAIL) if span else (_PROMPT_HEAD, _PROMPT_TAIL)
    if len(tokens) <= head + tail + 1:
        return tokens
    hidden = len(tokens) - head - tail
    return [*tokens[:head], ShownToken(f"… {hidden:,} more …", None, False), *tokens[-tail:]]
