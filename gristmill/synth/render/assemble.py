"""Conversations in pieces, and pieces to the arrays of one split: tokens and spans of labels.

Source: `docs/formats/chat.md#templates`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.synth.format import harmony_tokens
from gristmill.synth.format.harmony_tokens import PROMPT, REASONING
from gristmill.synth.render.documents import Documents, each_of, label_span
from gristmill.vocabularies import encode
from gristmill.vocabularies.encode import Encoder
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.proving import changed_by_form
from gristmill.vocabularies.tokenizer import Tokenizer

OUTSIDE: Final = -1
"""The message of a piece that is the template's."""
_OPENED: Final = re.compile(r"<think>\s*$")
_THINK, _THOUGHT = "<think>\n", "\n</think>\n\n"


class Piece(NamedTuple):
    """A part of a rendered conversation. message: number of the text's turn; `OUTSIDE` for none."""

    text: str
    span: int
    message: int = OUTSIDE


class Turn(NamedTuple):
    """What one speaker says at once."""

    role: str
    content: str
    span: int
    thought: str = ""
    thought_span: int = PROMPT


def turns_of(messages: Sequence[Mapping[str, str]], spans: str) -> list[Turn]:
    """The turns of normalised messages. spans: a code for each message."""
    turns: list[Turn] = []
    thought, thought_span = "", PROMPT
    for message, code in zip(messages, map(int, spans), strict=True):
        if message.get("channel") == "analysis":
            thought, thought_span = message["content"], code
            continue
        turns.append(Turn(message["role"], message["content"], code, thought, thought_span))
        thought, thought_span = "", PROMPT
    return turns


def by_turns(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """Yield the beginning of a conversation up to each answer that is trained on."""
    before: list[Turn] = []
    for turn in turns:
        if turn.role == "assistant" and (turn.span or turn.thought_span):
            yield [*before, turn]
        before.append(turn._replace(span=PROMPT, thought_span=PROMPT))


def chatml(turns: Sequence[Turn]) -> list[Piece]:
    """A conversation in ChatML; thoughts stand in `<think>` before the answer."""
    pieces = []
    for number, (role, content, span, thought, thought_span) in enumerate(turns):
        pieces.append(Piece(f"<|im_start|>{role}\n", PROMPT))
        if thought:
            pieces.append(Piece(_THINK, thought_span))
            pieces.append(Piece(thought, thought_span, number))
            pieces.append(Piece(_THOUGHT, thought_span))
        pieces.append(Piece(content, span, number))
        pieces += [Piece("<|im_end|>", span), Piece("\n", PROMPT)]
    return pieces


PLAIN_SYSTEM: Final = (
    "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\n"
    "Reasoning: {}\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message."
)
"""The system message of `chatgpt_plain`, with a place for the level of reasoning."""


def chatgpt_plain(turns: Sequence[Turn]) -> list[Piece]:
    """A conversation with Harmony's control tokens and a system message that is plain text.

    Texts are stripped. `<|start|>assistant` of a turn belongs to the prompt, that of an answer
    behind a thought to the answer. An own system message takes the place of the plain one.
    """
    pieces: list[Piece] = []
    if turns[0].role != "system":
        system = PLAIN_SYSTEM.format("high")
        pieces.append(Piece(f"<|start|>system<|message|>{system}<|end|>", PROMPT))
    last = len(turns) - 1
    for number, turn in enumerate(turns):
        content, thought = turn.content.strip(), turn.thought.strip()
        if turn.role != "assistant":
            pieces.append(Piece(f"<|start|>{turn.role}<|message|>", turn.span))
            pieces += [Piece(content, turn.span, number), Piece("<|end|>", turn.span)]
            continue
        pieces.append(Piece("<|start|>assistant", PROMPT))
        if thought:
            span = turn.thought_span
            pieces.append(Piece("<|channel|>analysis<|message|>", span))
            pieces += [Piece(thought, span, number), Piece("<|end|>", span)]
            pieces.append(Piece("<|start|>assistant", turn.span))
        pieces.append(Piece("<|channel|>final<|message|>", turn.span))
        end = "<|return|>" if number == last else "<|end|>"
        pieces += [Piece(content, turn.span, number), Piece(end, turn.span)]
    return pieces


TEMPLATES: Final[Mapping[str, Callable[[Sequence[Turn]], list[Piece]]]] = {
    "chatml": chatml,
    "chatgpt_plain": chatgpt_plain,
}
"""The built-in templates beside Harmony."""


def with_turn_ends(pieces: Sequence[Piece], control: re.Pattern[str]) -> list[Piece]:
    """Pieces of a template that says nothing of spans, with what the model must write itself.

    To the span of a text belong the control token that ends its turn and what stands before it,
    the text between thought and answer, and `<think>` before a thought.
    """
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        before = pieces[at - 1] if at else None
        after = pieces[at + 1] if at + 1 < len(pieces) else None
        if piece.message != OUTSIDE:
            found.append(piece)
            continue
        text, opened = piece.text, ""
        is_inside = before is not None and after is not None and before.message == after.message
        if before is not None and before.span and is_inside:
            found.append(piece._replace(span=before.span))
            continue
        if after is not None and after.span == REASONING and (match := _OPENED.search(text)):
            text, opened = text[: match.start()], match[0]
        if before is not None and before.span and (match := control.search(text)):
            found.append(Piece(text[: match.end()], before.span))
            text = text[match.end() :]
        if text:
            found.append(Piece(text, PROMPT))
        if opened:
            found.append(Piece(opened, REASONING))
    return found


_NOTHING: Final = re.compile("(?!)")
_REMEMBERED: Final = 4096


@dataclass(frozen=True)
class Words:
    """A tokenizer with its control tokens, loaded.

    encoder: of ordinary text. lengths: int64 [ids], bytes of each ordinary token.
    control: matches the texts of control tokens. begin: with which all of these begin.
    changes: whether the tokenizer changes a text before it cuts it; None where it changes none.
    """

    encoder: Encoder
    lengths: npt.NDArray[np.int64]
    control: re.Pattern[str]
    begin: str
    ids: Mapping[str, int]
    eod: int
    changes: Callable[[str], bool] | None = None

    def controls(self, text: str) -> int:
        """How many texts of control tokens a text has."""
        return len(self.control.findall(text)) if self.begin in text else 0

    @cached_property
    def divided(self) -> Callable[[str], Sequence[tuple[str, int, int]]]:
        """Divides a text of a template, of which there are few.

        Gives each text before a control token, the number of its bytes, and the id of the token;
        behind the last one -1.
        """

        def divide(text: str) -> Sequence[tuple[str, int, int]]:
            found, at = [], 0
            for match in self.control.finditer(text):
                before = text[at : match.start()]
                found.append((before, len(before.encode()), self.ids[match[0]]))
                at = match.end()
            return [*found, (text[at:], len(text[at:].encode()), -1)]

        return lru_cache(_REMEMBERED)(divide)


@lru_cache(maxsize=4)
def words_of(tokenizer: Tokenizer, engine: str = AUTO) -> Words:
    """A tokenizer, loaded once in a process.

    Raises GristmillError where a token is not the bytes of its place, and as `Tokenizer.encoder`.
    Where that is so only of texts that NFC or another form of Unicode changes, these are refused.
    """
    changes = changed_by_form(tokenizer) if tokenizer.no_offsets else None
    if tokenizer.no_offsets and changes is None:
        raise GristmillError(
            f"{tokenizer.path}: {tokenizer.no_offsets}, so that the spans of its tokens are not "
            "known: take another tokenizer"
        )
    ids, control = dict(tokenizer.special), _NOTHING
    if tokenizer.name == O200K.name:
        reserved = range(O200K.size - 1088, O200K.size)
        ids = {harmony_tokens.name(token): token for token in reserved} | ids
        control = harmony_tokens.TEXT
    elif ids:
        texts = sorted(ids, key=len, reverse=True)
        control = re.compile("|".join(map(re.escape, texts)))
    begins = {text[:2] for text in ids}
    begin = min(begins) if len(begins) == 1 else ""
    encoder = tokenizer.encoder(engine)
    return Words(encoder, tokenizer.token_lengths, control, begin, ids, tokenizer.eod, changes)


class _Made:
    """What is encoded together: the texts between control tokens, and the regions in them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sizes: list[int] = []
        self.spans: list[int] = []
        self.order: list[int] = []
        self.codes: list[int] = []

    def add(self, pieces: Sequence[Piece], words: Words) -> None:
        """Add a conversation. A text between control tokens is one, of however many pieces."""
        open_texts: list[str] = []
        add_text, add_size, add_span = open_texts.append, self.sizes.append, self.spans.append
        for text, span, message in pieces:
            if message == OUTSIDE:
                for before, size, token in words.divided(text):
                    if size:
                        add_text(before)
                        add_size(size)
                        add_span(span)
                    if token >= 0:
                        self._control(open_texts, token, span)
            elif text:
                add_text(text)
                add_size(len(text) if text.isascii() else len(text.encode()))
                add_span(span)
        self._control(open_texts, words.eod, 0)

    def _control(self, open_texts: list[str], token: int, span: int) -> None:
        if open_texts:
            self.texts.append("".join(open_texts))
            self.order.append(-1)
            open_texts.clear()
        self.order.append(token)
        self.codes.append(span)


def assemble(talks: Sequence[Sequence[Piece]], words: Words) -> Documents:
    """Encode conversations.

    A text of the template is divided at control tokens, a text of a message never is. What stands
    between two control tokens is encoded as one text, so that the ids are those of the whole
    conversation. A token that shares a byte with two regions has the greater span code.

    Raises ValueError if a text cannot be encoded, without naming the conversation.
    """
    if not talks:
        none = np.zeros(0, np.int32)
        return Documents(none, np.zeros(0, np.uint8), none, none, none)
    made, ends, numbers = _Made(), [], []
    for pieces in talks:
        before = len(made.texts)
        made.add(pieces, words)
        ends.append(len(made.order))
        numbers.append(len(made.texts) - before)
    counts = np.array(numbers, np.int32)
    if words.changes and any(map(words.changes, made.texts)):
        raise ValueError(
            "the tokenizer brings a text to another form of Unicode (such as NFC), so that the "
            "places of its tokens are not known: write the text in that form"
        )
    # Texts of a template are those of all conversations: each is encoded once.
    places = {text: place for place, text in enumerate(dict.fromkeys(made.texts))}
    found, by_reference = words.encoder.encode([*places])
    chosen = [places[text] for text in made.texts]
    ids = [found[place] for place in chosen]
    by_tiktoken = {at for at, place in enumerate(chosen) if place in by_reference}
    ordinary = np.frombuffer(b"".join(ids), np.int32)
    order = np.array(made.order, np.int32)
    sizes = np.ones(len(order), np.int64)
    sizes[order < 0] = [each.nbytes >> 2 for each in ids]
    stops = np.cumsum(sizes)
    control = stops[order >= 0] - 1
    is_text = np.ones(int(stops[-1]), np.bool_)
    is_text[control] = False
    tokens, code = np.empty(len(is_text), np.int32), np.empty(len(is_text), np.uint8)
    tokens[is_text], tokens[control] = ordinary, order[order >= 0]
    code[is_text], code[control] = _spans(made, words, ordinary), made.codes
    stops = stops[np.array(ends) - 1]
    lengths = np.diff(stops, prepend=0).astype(np.int32)
    runs, run_counts = _runs(code, stops)
    return Documents(
        tokens=tokens,
        span=label_span(code, lengths),
        lengths=lengths,
        runs=runs,
        run_counts=run_counts,
        texts=counts,
        by_tiktoken=each_of(counts, by_tiktoken),
    )


def _spans(made: _Made, words: Words, tokens: encode.Tokens) -> npt.NDArray[np.uint8]:
    """The span code of each token of the texts, uint8. Raises ValueError for other bytes."""
    stops = np.cumsum(words.lengths[tokens], dtype=np.int64)
    bounds = np.cumsum(made.sizes, dtype=np.int64)
    if len(bounds) and stops[-1] != bounds[-1]:
        raise ValueError("its tokens have other bytes than its text")
    code = np.array(made.spans, np.uint8)
    if not len(tokens):
        return np.zeros(0, np.uint8)
    begins = bounds - made.sizes
    # Few regions are looked up among many tokens. A token belongs to the region of its first byte,
    own = np.searchsorted(stops, begins, side="left") + 1
    own[begins == 0] = 0
    spans = np.repeat(code, np.diff(own, append=len(tokens)))
    # and one that a region begins in to that region, too.
    np.maximum.at(spans, np.searchsorted(stops, begins, side="right"), code)
    return spans


def _runs(
    code: npt.NDArray[np.uint8], stops: npt.NDArray[np.int64]
) -> tuple[encode.Tokens, encode.Tokens]:
    """The runs of tokens with one span; the EOD is one of its own. Also how many a document has."""
    begins = np.zeros(len(code), np.bool_)
    begins[1:] = code[1:] != code[:-1]
    begins[stops - 1] = True
    begins[np.concatenate([[0], stops[:-1]])] = True
    places = np.flatnonzero(begins)
    runs = np.diff(places, append=len(code)).astype(np.int32)
    counted = np.diff(np.searchsorted(places, stops), prepend=0).astype(np.int32)
    return runs, counted
