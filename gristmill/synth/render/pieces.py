"""Pieces: a rendered conversation, divided into its own texts and those of the template.

Source: `docs/formats/chat.md#templates`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gristmill.synth.format.harmony_tokens import PROMPT, REASONING

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
