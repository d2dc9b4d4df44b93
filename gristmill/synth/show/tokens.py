"""A document as tokens to read: their texts and spans, which the loss leaves out, a picture."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill import markdown
from gristmill.browse.table import Picture, Token
from gristmill.contract import BadInput
from gristmill.provenance import RECORD, read_record
from gristmill.svg import small_card, small_text
from gristmill.synth.format import aligned, harmony_tokens, indexed
from gristmill.synth.read import distill
from gristmill.synth.read.trace import trace
from gristmill.synth.render import documents, strict
from gristmill.synth.render.templates import BadRow, Renderer
from gristmill.vocabularies import encode
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import FACTS, GPT2, O200K, find
from gristmill.vocabularies.tokenizer import open_tokenizer

_MOST: Final = 9
"""Messages of a picture."""
_FILLS: Final = ("#e3e7ea", "#ffd766", "#a9dfb0")
"""Of the spans: prompt, reasoning, final."""
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
class Message:
    """One message: the role or the channel, and its tokens as a person reads them.

    Tokens that share a character are one, in brackets, with their number as a subscript.
    """

    label: str
    tokens: list[Token]


def vocabulary_of(path: Path) -> Path:
    """The vocabulary of an artifact, in the data root above it. Raises what `find` raises."""
    above = path.absolute().parents
    root = next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])
    record = path / RECORD
    own = read_record(record).tokenizer if record.is_file() else None
    if own is not None and own.name != O200K.name:
        return root / own.path
    return find(O200K, root)


def harmony_row(
    shard: Path, row: int, values: Mapping[str, Any], vocabulary: Path
) -> list[Message]:
    """Return the messages of a row of a Harmony shard as they are rendered.

    row: from 0. values: its columns, by name. Raises BadInput if it cannot be rendered.
    """
    try:
        rendered = Renderer(vocabulary).read(values["messages_json"])
        strict.parse(values["messages_json"])
        made = documents.assemble([rendered], vocabulary, TIKTOKEN)
    except (BadRow, ValueError, RecursionError) as error:
        raise BadInput(shard, f"synth_id {values['synth_id']!r}: {error}", row + 1) from error
    bounds = list(pairwise([0, *np.cumsum(made.runs).tolist()]))
    span = made.span.tolist()
    mask = [int(value != 0) for value in span]
    return messages(made.tokens.tolist(), mask, span, bounds, vocabulary)


def document(root: Path, number: str, split: str, place: int, vocabulary: Path) -> list[Message]:
    """Return the messages of one document of a dataset.

    A token has the span and mask of its token as a label. The datasets hold them one place
    earlier; the first token of a document is not a label.
    Raises BadInput if there is no such document, or if it is damaged.
    """
    origin = trace(root, number, split, place)
    prefix = root / split / f"shard_{number}_tokens"
    size = words_of(vocabulary).size
    tokens, mask, span = _values(prefix, place, origin.offsets[-1] + 1, size)
    bounds = [*origin.message_bounds(), (len(tokens) - 1, len(tokens))]
    return messages(tokens, mask, span, bounds, vocabulary)


def distilled(folder: Path, split: str, number: int, vocabulary: Path) -> list[Message]:
    """Return the messages of a row of a dataset of labels and spans.

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
    # As labels, which are one place before their tokens.
    mask, span = [*mask[1:], 0], [*span[1:], 0]
    shown = [(begin, end) for begin, end in bounds if begin < end]
    return messages(tokens, mask, span, shown, vocabulary)


def _values(prefix: Path, document: int, length: int, size: int) -> list[list[int]]:
    """Return tokens, mask and span of one document. Raises BadInput for a wrong place or value.

    No other entry of the three indexes is read: a shard of the full run has millions. The trace
    and the other indexes must agree on the place.
    """
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


def messages(
    tokens: Sequence[int],
    mask: Sequence[int],
    span: Sequence[int],
    bounds: Sequence[tuple[int, int]],
    vocabulary: Path,
) -> list[Message]:
    """Return the messages of one document; the last token of each ends its line.

    tokens: ids [T].
    mask, span: of the labels [T], as the datasets hold them.
    bounds: begin and end of each message in `tokens`.
    """
    mask, span = [0, *mask[:-1]], [0, *span[:-1]]
    encoding = words_of(vocabulary)
    kinds = list(zip(mask, span, strict=True))
    found = []
    for begin, end in bounds:
        shown = [
            Token(
                _marked(tokens[first:stop], encoding) + "\n" * (stop == end),
                counts=bool(mask[first]),
                span=harmony_tokens.SPANS[span[first]],
            )
            for first, stop in _groups(tokens, kinds, (begin, end), encoding)
        ]
        found.append(Message(_label(tokens[begin:end], span[begin], encoding), shown))
    return found


def picture(title: str, shown: Sequence[Message]) -> Picture:
    """The messages of a document in the colours of their spans, as many as Dagster shows inline."""
    head = small_text(10, 20, title, " font-weight='700'")
    for count in range(min(_MOST, len(shown)), -1, -1):
        lines = [
            small_text(10, 39 + 17 * at, f"{message.label}: {text}", f" fill='{fill}'")
            for at, message in enumerate(shown[:count])
            for text, fill in [_body(message)]
        ]
        drawing = small_card(31 + 17 * count, [head, *lines])
        if len(markdown.image("tokens", drawing)) <= markdown.INLINE:
            break
    return Picture("tokens", drawing)


def _body(message: Message) -> tuple[str, str]:
    """The text of a message without its header, and the colour of its span."""
    text = "".join(token.text for token in message.tokens)
    *_, body = text.strip().split("<|message|>")
    return body, _FILLS[harmony_tokens.SPANS.index(message.tokens[0].span)]


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


def _marked(tokens: Sequence[int], encoding: Words) -> str:
    """The text of tokens; that of several in brackets, with their number as a subscript."""
    text, count = written(tokens, encoding), len(tokens)
    return text if count == 1 else f"‹{text}›{str(count).translate(_SUBSCRIPTS)}"


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
