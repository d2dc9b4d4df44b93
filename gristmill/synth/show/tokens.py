"""A document as shown tokens: their texts, their spans, and which of them the loss leaves out."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from gristmill.contract import BadInput
from gristmill.printable import printable
from gristmill.synth.format import aligned, harmony_tokens, indexed
from gristmill.synth.read import distill
from gristmill.synth.read.trace import trace
from gristmill.vocabularies import encode
from gristmill.vocabularies.pinned import GPT2
from gristmill.vocabularies.tokenizer import open_tokenizer
from gristmill.vocabularies.tokenizer_file import FACTS

_HEAD, _TAIL = 30, 6
_PROMPT_HEAD, _PROMPT_TAIL = 12, 4
_SUBSCRIPTS: Final = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Words(NamedTuple):
    """What the ids of a tokenizer are written as.

    bytes_of: of an ordinary token. name_of: of a control token, None for an ordinary one.
    """

    bytes_of: Callable[[int], bytes]
    name_of: Callable[[int], str | None]
    eod: int
    size: int

    def text(self, tokens: Sequence[int]) -> str:
        """The text of the ordinary tokens."""
        bodies = [token for token in tokens if token >= 0 and self.name_of(token) is None]
        return b"".join(map(self.bytes_of, bodies)).decode("utf-8", "replace")


@lru_cache(maxsize=4)
def words_of(vocabulary: Path) -> Words:
    """What ids are written as. vocabulary: the file of o200k_harmony, or of another tokenizer."""
    if vocabulary.with_name(FACTS).is_file() or vocabulary.parent.name == GPT2.name:
        own = open_tokenizer(vocabulary.parent)
        names = {token: text for text, token in own.special.items()}
        return Words(own.token_bytes.__getitem__, names.get, own.eod, own.size)
    one = encode.encoding(vocabulary).decode_single_token_bytes
    return Words(one, _harmony_name, harmony_tokens.ENDOFTEXT, harmony_tokens.PADDED_VOCABULARY)


def _harmony_name(token: int) -> str | None:
    return harmony_tokens.name(token) if token >= harmony_tokens.BODY_LIMIT else None


@dataclass(frozen=True)
class ShownToken:
    """One token on a coloured ground, tokens that share a character, or a note in their place.

    span: code of its span as a label; None for a note.
    control: whether it is a control token; default False.
    count: number of tokens, default 1. Several together have the bytes of whole characters, and
        none of them has.
    """

    text: str
    span: int | None
    masked: bool
    control: bool = False
    count: int = 1

    @property
    def marked(self) -> str:
        """The text; that of several tokens in brackets, with their number as a subscript."""
        if self.count == 1:
            return self.text
        return f"‹{self.text}›{str(self.count).translate(_SUBSCRIPTS)}"


@dataclass(frozen=True)
class Line:
    """One message."""

    label: str
    tokens: list[ShownToken]


def conversation(
    root: Path, number: str, split: str, document: int, vocabulary: Path, whole: bool = False
) -> tuple[str, list[Line]]:
    """Return the title of a document, and its messages.

    whole: whether to keep long bodies whole; default False, which shortens them.

    A shown token has the span and mask of its token as a label. The datasets hold
    them one place earlier; the first token of a document is not a label.
    Raises BadInput if there is no such document, or if it is damaged.
    """
    origin = trace(root, number, split, document)
    prefix = root / split / f"shard_{number}_tokens"
    size = words_of(vocabulary).size
    tokens, mask, span = _values(prefix, document, origin.offsets[-1] + 1, size)
    bounds = [*origin.message_bounds(), (len(tokens) - 1, len(tokens))]
    about = " · ".join(x for x in (origin.language, origin.exercise) if x)
    title = (
        f"{split} document {document} · {origin.synth_id} · {len(tokens):,} tokens · "
        f"{origin.input} row {origin.row}" + (f" · {about}" if about else "")
    )
    return printable(title), lines(tokens, mask, span, bounds, vocabulary, whole)


def distilled(folder: Path, split: str, number: int, vocabulary: Path) -> tuple[str, list[Line]]:
    """Return the title of a row of a dataset of labels and spans, and its messages.

    number: of the row, from 0. Raises BadInput if there is no such row, or if it is damaged.
    """
    row = distill.row(folder, split, number)
    tokens, counts = row["input_ids"], list(row["spans"].values())
    stops = list(accumulate(counts))
    words = words_of(vocabulary)
    if not tokens or min(tokens) < 0 or max(tokens) >= words.size or stops[-1] != len(tokens):
        rule = f"row {number} is damaged, see `gristmill verify`: build the dataset again"
        raise BadInput(folder / distill.SPLITS[split], rule)
    mask = [int(label >= 0) for label in row["labels"]]
    span = [code for code, count in enumerate(counts) for _ in range(count)]
    prompt = [at for at in range(1, stops[0] - 2) if tokens[at] == harmony_tokens.START]
    bounds = pairwise([0, *prompt, *(stop for stop in stops if stop), len(tokens)])
    title = f"{distill.SPLITS[split]} row {number} · {row['id']} · {len(tokens):,} tokens"
    # As labels, which are one place before their tokens.
    mask, span = [*mask[1:], 0], [*span[1:], 0]
    shown = [(begin, end) for begin, end in bounds if begin < end]
    return printable(title), lines(tokens, mask, span, shown, vocabulary, True)


def _values(prefix: Path, document: int, length: int, size: int) -> list[list[int]]:
    """Return tokens, mask and span of one document. Raises BadInput for a wrong place or value."""
    found: list[list[int]] = []
    place: list[int] | None = None
    limits = {"tokens": size, "lossmask": 2, "span": len(harmony_tokens.SPANS)}
    for name, below in limits.items():
        data = indexed.opened(aligned.sibling(prefix, name))
        own = data.bounds(document, document + 1).tolist() if document < len(data) else [0, 0]
        place = own if place is None else place
        values = data.values[own[0] : own[1]] if own[0] >= 0 else data.values[:0]
        is_there = own == place and len(values) == length == own[1] - own[0]
        if not is_there or values.min() < 0 or values.max() >= below:
            rule = f"document {document} is damaged, see `gristmill verify`: build the shard again"
            raise BadInput(data.path, rule)
        found.append(values.tolist())
    return found


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
    """
    mask, span = [0, *mask[:-1]], [0, *span[:-1]]
    encoding = words_of(vocabulary)
    kinds = list(zip(mask, span, strict=True))
    messages = []
    for begin, end in bounds:
        shown = [
            ShownToken(
                written(tokens[first:stop], encoding),
                span[first],
                not mask[first],
                encoding.name_of(tokens[first]) is not None,
                stop - first,
            )
            for first, stop in _groups(tokens, kinds, (begin, end), encoding)
        ]
        label = _label(tokens[begin:end], span[begin], encoding)
        messages.append(Line(label, shown if whole else _shortened(shown, span[begin])))
    return messages


def _groups(
    tokens: Sequence[int],
    kinds: Sequence[object],
    bounds: tuple[int, int],
    encoding: Words,
) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each shown token: several tokens where they share a character."""
    place, end = bounds
    while place < end:
        stop = _character_end(tokens[place:end], encoding) + place
        if any(kind != kinds[place] for kind in kinds[place:stop]):
            stop = place + 1
        yield place, stop
        place = stop


def _character_end(tokens: Sequence[int], encoding: Words) -> int:
    """How many of the first tokens are whole characters together; 1 where none are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for count, token in enumerate(tokens, 1):
        if encoding.name_of(token) is not None:
            return 1
        try:
            decoder.decode(encoding.bytes_of(token))
        except UnicodeDecodeError:
            return 1
        if not decoder.getstate()[0]:
            return count
    return 1


def written(tokens: Sequence[int], encoding: Words) -> str:
    """Return the text of tokens on one line.

    Spaces and line ends are visible. Bytes that are not UTF-8 are in hexadecimal, and characters
    that are not printable are named, as `‹U+200D›`.
    """
    if (name := encoding.name_of(tokens[0])) is not None:
        return name
    data = b"".join(map(encoding.bytes_of, tokens))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"‹{data.hex()}›"
    text = text.replace(" ", "·").replace("\n", "⏎").replace("\r", "␍").replace("\t", "⇥")
    return "".join(char if char.isprintable() else f"‹U+{ord(char):04X}›" for char in text)


def _label(tokens: Sequence[int], span: int, words: Words) -> str:
    """Return the role of a message, or the channel of an assistant message, from its header."""
    if tokens[0] == words.eod:
        return "end"
    is_harmony = words.eod == harmony_tokens.ENDOFTEXT and tokens[0] == harmony_tokens.START
    if not is_harmony or harmony_tokens.MESSAGE not in tokens:
        return harmony_tokens.SPANS[span]
    roles = {word: role for role, word in harmony_tokens.ROLE_WORDS.items()}
    channels = {word: channel for channel, word in harmony_tokens.CHANNEL_WORDS.items()}
    if harmony_tokens.CHANNEL in tokens:
        place = list(tokens).index(harmony_tokens.CHANNEL)
        return channels.get(tokens[place + 1], "assistant")
    return roles.get(tokens[1], "message")


def shortened_line(line: Line) -> Line:
    """Return a message with the head and tail of a long body."""
    return Line(line.label, _shortened(line.tokens, line.tokens[0].span or 0))


def _shortened(tokens: list[ShownToken], span: int) -> list[ShownToken]:
    """Return the head and tail of a long message, with a note between them."""
    head, tail = (_HEAD, _TAIL) if span else (_PROMPT_HEAD, _PROMPT_TAIL)
    if len(tokens) <= head + tail + 1:
        return tokens
    hidden = sum(token.count for token in tokens[head:-tail])
    return [*tokens[:head], ShownToken(f"… {hidden:,} more …", None, False), *tokens[-tail:]]
