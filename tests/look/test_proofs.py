"""Roles that values prove over all rows, whatever the names of columns say."""

from collections.abc import Sequence
from typing import Any

import pytest

from gristmill.look.columns import Columns
from gristmill.look.proofs import place_of, proved
from gristmill.look.roles import Guess, guess

ASKED = "Which town had the market number {}?"
STORY = (
    "The records speak of a flood, after which the stalls were carried up the hill to number {}."
)


def proved_of(rows: Sequence[dict[str, Any]]) -> Guess:
    columns = Columns()
    for row in rows:
        columns.add(row)
    return proved(guess(columns), columns, rows)


def test_what_most_texts_end_with_is_the_answer_and_they_are_the_thought() -> None:
    rows = [
        {"problem": ASKED.format(n), "worked_solution": STORY.format(n), "result": n}
        for n in range(30)
    ]
    said = proved_of(rows)
    assert (said.answer, said.cot) == ("result", "worked_solution")
    for row in rows[:10]:
        row["result"] = 999
    assert proved_of(rows).cot is None


@pytest.mark.parametrize("name", ["test", "schema", "report", "email", "retrieved"])
def test_a_long_text_that_does_not_end_with_the_answer_is_no_thought(name: str) -> None:
    rows = [
        {"question": ASKED.format(n), "answer": f"Town {n}", name: STORY.format("one") * 4}
        for n in range(9)
    ]
    assert proved_of(rows).cot is None
    for row in rows:
        row[name] += f" So it is {row['answer']}."
    assert proved_of(rows).cot == name


@pytest.mark.parametrize(
    "label", [lambda n: n % 3, lambda n: "ABC"[n % 3], lambda n: str(n % 3 + 1)]
)
def test_a_list_beside_the_place_of_one_of_it_is_one_of_choices(label: Any) -> None:
    rows = [
        {"question": ASKED.format(n), "answers": [f"{n} a", f"{n} b", f"{n} c"], "label": label(n)}
        for n in range(12)
    ]
    said = proved_of(rows)
    assert (said.choices, said.answer) == ("answers", "label")
    rows[5]["label"] = 9
    assert proved_of(rows).choices is None


def test_a_number_that_is_the_same_everywhere_chooses_nothing() -> None:
    rows = [{"question": ASKED.format(n), "answers": ["a", "b"], "count": 2} for n in range(9)]
    assert proved_of(rows).choices is None


def test_a_context_that_questions_hold_is_none() -> None:
    rows = [
        {"Body": STORY.format(n), "Question": STORY.format(n) + " How many?", "Answer": n}
        for n in range(9)
    ]
    assert proved_of(rows).context is None
    for row in rows[:5]:
        row["Question"] = "How many are there then?"
    assert proved_of(rows).context == "Body"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (0, 0),
        (3, 3),
        (4, None),
        ("b", 1),
        ("(C)", 2),
        ("D.", None),
        ("x y", None),
        (True, None),
        (0.5, None),
    ],
)
def test_the_place_that_a_value_names(value: Any, place: int | None) -> None:
    assert place_of(value, 3) == place
