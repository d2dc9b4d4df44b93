"""The texts of conversations, from their JSON and from what was read of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.synth.builders.distill.plain import Texts, ends_in_answer, texts_in, texts_of
from gristmill.synth.render.templates import Renderer
from tests.synth.builders.distill.rows import message

ASKED = message("user", "q")
ANSWERED = message("assistant", "a", "final")
THOUGHT = message("assistant", "t", "analysis")
TALKS: list[tuple[list[dict[str, Any]], Texts]] = [
    ([ASKED, THOUGHT, ANSWERED], Texts("q", "t", "a", True)),
    ([ASKED, ANSWERED], Texts("q", "", "a", True)),
    ([message("system", "s"), ASKED, ANSWERED], Texts("q", "", "a", True)),
    ([message("developer", "d"), THOUGHT, ANSWERED], Texts("", "t", "a", False)),
    ([ASKED, ANSWERED, message("user", "r"), THOUGHT, ANSWERED], Texts("r", "t", "a", False)),
    ([ASKED, THOUGHT, THOUGHT, ANSWERED], Texts("q", "t", "a", False)),
    ([ASKED | {"content": ASKED["content"] * 2}, ANSWERED], Texts("qq", "", "a", True)),
]


@pytest.mark.parametrize(("messages", "texts"), TALKS)
def test_the_texts_are_those_of_the_messages(
    messages: list[dict[str, Any]], texts: Texts, vocabulary: Path
) -> None:
    text = json.dumps({"messages": messages})
    assert texts_of(text) == texts
    assert texts_in(Renderer(vocabulary).read(text), text) == texts


@pytest.mark.parametrize(
    ("answer", "is_sure"),
    [
        *(("A", True), (".", True), ("x y", True), ("", False), (" ", False), ("\n", False)),
        *(("\x0b", False), ("\xa0", False), ("\\", False), ('"', False), ("\t  ", False)),
    ],
)
def test_an_answer_is_surely_not_blank_or_is_parsed(answer: str, is_sure: bool) -> None:
    text = json.dumps({"messages": [ASKED, message("assistant", answer, "final")]})
    assert ends_in_answer(text) == is_sure
    assert not ends_in_answer(text + " ")
