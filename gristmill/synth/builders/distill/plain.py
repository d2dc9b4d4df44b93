"""The texts of a conversation, and its rendering with a system message that is plain text.

See also `filters.py`: which conversations stay. Source: `docs/formats/synth.md#distill-template`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import orjson

from gristmill.synth.format.harmony_tokens import FINAL, PROMPT, REASONING, ROLE_WORDS
from gristmill.synth.render import harmony
from gristmill.synth.render.chat.pieces import PLAIN_SYSTEM, Piece, Turn, chatgpt_plain
from gristmill.synth.render.shapes import Conversation

_SINGLE: Final = (bytes([PROMPT, REASONING, FINAL]), bytes([PROMPT, FINAL]))
_END: Final = '"}], "channel": "final"}]}'
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Texts:
    """What a conversation asks and answers.

    query, reasoning, answer: the last of each; "" without one.
    is_single: whether it has one question, one answer and at most one thought.
    """

    query: str
    reasoning: str
    answer: str
    is_single: bool


def texts_of(messages_json: str) -> Texts:
    """The texts of a row of Harmony. Raises ValueError where it is no list of messages."""
    try:
        messages = orjson.loads(messages_json)["messages"]
    except ValueError:
        messages = harmony.parse(messages_json)
    found: dict[str, list[str]] = {"user": [], "analysis": [], "final": []}
    for message in messages:
        name = message.get("channel") if message["role"] == "assistant" else message["role"]
        if name in found:
            content = message["content"]
            if not isinstance(content, str):
                content = "".join(item.get("text") or "" for item in content)
            found[name].append(content)
    counts = [len(texts) for texts in found.values()]
    query, reasoning, answer = (texts[-1] if texts else "" for texts in found.values())
    return Texts(query, reasoning, answer, counts[0] == counts[2] == 1 and counts[1] <= 1)


def texts_in(conversation: Conversation, messages_json: str) -> Texts:
    """The same of a row that was read. conversation: what was read of it."""
    shape, bodies = conversation.shape, conversation.bodies
    codes = shape.spans[shape.has_body].tobytes()
    if codes not in _SINGLE or shape.templates[0][-2] != ROLE_WORDS["user"]:
        return texts_of(messages_json)
    return Texts(bodies[0], bodies[1] if len(bodies) > 2 else "", bodies[-1], True)


def ends_in_answer(messages_json: str) -> bool:
    """Whether a row surely ends in an answer that is not blank; False where it must be parsed."""
    end = messages_json[-len(_END) - 6 : -len(_END)]
    return messages_json.endswith(_END) and "\\" not in end and end[-1:] not in ('"', " ")


def _clean(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text.replace("\0", "")).strip()


def rendered(texts: Texts, seed_text: str, level: str) -> list[Piece]:
    """The pieces of a conversation of one question and its answer.

    seed_text: what the question refers to; "" for nothing. level: of the reasoning.
    """
    query, reasoning, answer, seed = map(
        _clean, (texts.query, texts.reasoning, texts.answer, seed_text)
    )
    if seed:
        query = f"{query}\n\nReference:\n{seed}"
    return chatgpt_plain(
        [
            Turn("system", PLAIN_SYSTEM.format(level), PROMPT),
            Turn("user", query, PROMPT),
            Turn("assistant", answer, FINAL, reasoning, REASONING),
        ]
    )
