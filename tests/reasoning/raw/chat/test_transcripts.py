"""Conversations in one text: marks, what stands around messages, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gristmill.reasoning.raw.chat.transcripts import Transcripts
from tests.reasoning.drops import unfit

LINES = {"user": "\n\nHuman:", "assistant": "\n\nAssistant:"}
CHATML = {
    "system": "<|im_start|>system",
    "user": "<|im_start|>user",
    "assistant": "<|im_start|>assistant",
    "control": "<|im_end|>",
}
INST = {
    "user": ["[INST]", "<</SYS>>"],
    "assistant": "[/INST]",
    "system": "[INST] <<SYS>>",
    "control": ["<s>", "</s>"],
}
FAR = {"user": "\n\n\nQ:", "assistant": "\n\n\nA:", "tool": "\n\n\nT:"}
PAIR = [("user", "hi"), ("assistant", "hello")]


@pytest.mark.parametrize(
    ("marks", "text", "expected"),
    [
        (LINES, "\n\nHuman: hi\n\nAssistant: hello", PAIR),
        (LINES, "Human: hi\n\nAssistant: hello\n", PAIR),
        (
            LINES,
            "Human: say\nHuman: x\n\nAssistant: b",
            [("user", "say\nHuman: x"), ("assistant", "b")],
        ),
        (LINES, "Human: hi\n\nAssistant:", [("user", "hi"), ("assistant", "")]),
        (LINES, "Human: hi\n\nAssistant: hello\n\nHuman: \n", PAIR),
        (LINES, "Human: \n\nAssistant: hello", [("user", ""), PAIR[1]]),
        (FAR, "Q: hi\n\n\nT:\n\n\nA: hello", [PAIR[0], ("tool", ""), PAIR[1]]),
        (
            {"user": ["User:", "User 2:"], "assistant": ["Bot:", "Bot: Final:"]},
            "User: hi\nBot: a\nUser 2: b\nBot: Final: hello",
            [PAIR[0], ("assistant", "a"), ("user", "b"), PAIR[1]],
        ),
        (
            {"user": "### Human:", "assistant": "### Assistant:"},
            "### Human: hi### Assistant: hello",
            PAIR,
        ),
        (
            CHATML,
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\nhello<|im_end|>\n",
            [("system", "Be kind."), *PAIR],
        ),
        (
            CHATML,
            "<|im_start|>system\n<|im_end|><|im_start|>user\nhi<|im_start|>assistant hello",
            PAIR,
        ),
        (
            INST,
            "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nhi [/INST] hello </s>",
            [("system", "Be kind."), *PAIR],
        ),
        (
            INST,
            "<s>[INST] hi [/INST] hello </s><s>[INST] a [/INST] b </s>",
            [*PAIR, ("user", "a"), ("assistant", "b")],
        ),
        (
            INST,
            "[INST] hi [/INST] see </s> here</s>",
            [("user", "hi"), ("assistant", "see </s> here")],
        ),
    ],
)
def test_marks_divide_a_text(
    marks: dict[str, Any], text: str, expected: list[tuple[str, str]]
) -> None:
    assert [*Transcripts(marks).divided(text)] == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("hello", r"has none of the marks '\n\nHuman:', '\n\nAssistant:': write in `marks`"),
        ("", "has none of the marks"),
        ("A talk.\n\nHuman: hi", "before the first mark, 'A talk.': name it in `marks.control`"),
    ],
)
def test_a_text_that_is_no_transcript_is_refused(text: str, rule: str) -> None:
    with unfit("messages", rule):
        _ = [*Transcripts(LINES).divided(text)]


def test_what_stands_before_the_first_mark_is_found() -> None:
    reader = Transcripts({**LINES, "control": ["A talk."]})
    assert reader.head("x\n\nHuman: hi") == "\n\nx"
    assert reader.head("x") is None
    assert reader.bare(" A talk. \nA talk.x") == "x"
    assert [*reader.divided("A talk.\n\nHuman: hi\n\nAssistant: hello")] == PAIR
