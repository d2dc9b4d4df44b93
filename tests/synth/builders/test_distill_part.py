"""Which rows stay, by the values of the project's rules."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gristmill.synth.builders import distill_part
from gristmill.synth.builders.distill_part import Shares, Texts, ends_in_answer, texts_in, texts_of
from gristmill.synth.config import DistillConfig
from gristmill.synth.render.documents import Renderer
from tests.synth.builders.distill_rows import message

CONFIG = DistillConfig(Path())


def test_draws_have_the_check_values():
    drawn = [distill_part.draw(1337, salt, "abc") for salt in ("mem", "lang", "global", "split")]
    assert [round(each, 6) for each in drawn] == [0.753794, 0.634166, 0.625753, 0.8034]


def test_the_split_is_the_draw_below_its_share():
    name, drawn = "abc", distill_part.draw(1337, "split", "abc")
    assert not distill_part.is_valid(DistillConfig(Path(), drawn - 1e-9), name)
    assert distill_part.is_valid(DistillConfig(Path(), drawn + 1e-9), name)
    ids = [f"row{number}" for number in range(20_000)]
    valid = [name for name in ids if distill_part.is_valid(CONFIG, name)]
    assert valid == [name for name in ids if distill_part.draw(1337, "split", name) < 1 - 0.99]
    assert 150 < len(valid) < 250


@pytest.mark.parametrize(
    ("constraints", "answer", "wrong"),
    [
        ("result: 24", "It is 24.", False),
        ("result: 24", "It is 25, not 24.", True),
        ("Result :-2.5;x", "-2.5", False),
        ("result: 1,000", "1000", True),  # read as 1
        ("result: 1000", "1,000 in all", False),
        ("result: 1000000", "1000000.9", False),
        ("result: 1000000", "1000001.1", True),
        ("result: b", "**B** is right", False),
        ("result: C", "B, of course", True),
        ("result: C", "Because of B", False),
        ("result: A", "It is 7", False),
        ("result: blue", "7", False),
        ("result: 7", "blue", False),
        ("forty words", "7", False),
    ],
)
def test_an_answer_is_compared_with_the_result(constraints, answer, wrong):
    assert distill_part.is_wrong(constraints, answer) == wrong


def test_faults_are_named_in_their_order():
    failed = "result: 3, Failed after maximum ATTEMPTS"
    assert distill_part.fault(CONFIG, failed, " \n") == "empty_answer"
    assert distill_part.fault(CONFIG, failed, "4") == "failed"
    assert distill_part.fault(CONFIG, "result: 3", "4") == "wrong_answer"
    assert distill_part.fault(CONFIG, "result: 3", "3") == ""
    lax = DistillConfig(Path(), drop_failed=False, drop_wrong=False)
    assert distill_part.fault(lax, failed, "4") == ""


def test_shares_keep_memorization_below_its_cap_and_english_above_its_share():
    counts = Counter({("memorization", "en"): 900, ("math", "en"): 60, ("math", "fr"): 40})
    assert distill_part.shares(CONFIG, counts).memorization == pytest.approx(0.7 * 100 / 0.3 / 900)
    assert distill_part.shares(CONFIG, counts).other_languages == 1
    counts = Counter({("memorization", "de"): 600, ("math", "en"): 400})
    assert distill_part.shares(CONFIG, counts) == Shares(1.0, 1000 * 0.25 / 600)
    assert distill_part.shares(CONFIG, Counter({("math", "unknown"): 9})) == Shares()
    assert distill_part.shares(CONFIG, Counter()) == Shares()
    free = DistillConfig(Path(), memorization_cap=1.0, english_share=0.0)
    assert distill_part.shares(free, counts) == Shares()


def test_a_row_above_a_share_is_left_out_by_the_first_draw():
    few = Shares(0.7, 0.6)

    def out(kind: str, language: str, keep: float = 1.0) -> str:
        config = DistillConfig(Path(), keep=keep)
        return distill_part.sampled_out(config, few, "abc", kind, language)

    assert out("memorization", "fr") == "memorization"
    assert out("math", "fr") == "language"
    assert (out("math", "en"), out("math", "en", 0.63), out("math", "en", 0.62)) == (
        "",
        "",
        "share",
    )


def test_labels_are_compared_in_lower_case():
    assert [distill_part.label(each) for each in (" EN ", "", None, 3)] == [
        "en",
        "unknown",
        "unknown",
        "3",
    ]


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
def test_the_texts_are_those_of_the_messages(messages, texts, vocabulary):
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
def test_an_answer_is_surely_not_blank_or_is_parsed(answer, is_sure):
    text = json.dumps({"messages": [ASKED, message("assistant", answer, "final")]})
    assert ends_in_answer(text) == is_sure
    assert not ends_in_answer(text + " ")
