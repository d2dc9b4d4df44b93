"""What columns mean is guessed by their names and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gristmill.look.columns import Columns
from gristmill.look.roles import Guess, guess, words
from tests.look.cards import Card, cards

CARDS = list(cards())


def guessed(rows: Sequence[Mapping[str, object]]) -> Guess:
    columns = Columns()
    for row in rows:
        columns.add(row)
    return guess(columns)


@pytest.mark.parametrize("card", CARDS, ids=[card.line[:60] for card in CARDS])
def test_the_columns_of_a_public_dataset_are_guessed(card: Card) -> None:
    found = guessed(card.rows)
    wrong = {
        role: str(getattr(found, role))
        for role, right in card.right.items()
        if "*" not in right and str(getattr(found, role)) not in right
    }
    assert wrong == {}, found


def test_of_three_columns_whose_names_say_nothing_the_longer_one_is_the_thought() -> None:
    row = {"frage": "Wie viele sind es?", "weg": "Erst eins, dann zwei. " * 4, "antwort": "3"}
    assert guessed([row]) == Guess("qa", "frage", "antwort", "weg")
    short = row | {"weg": "Erst eins."}
    assert guessed([short]) == Guess("qa", "frage", "weg")


def test_no_form_is_guessed_of_no_rows() -> None:
    assert guessed([]) == Guess("unknown")


def test_a_column_that_says_something_about_a_row_has_no_role() -> None:
    row = {"question_type": "long words of a type", "answer_id": "x", "is_correct": True}
    assert guessed([row]).form == "unknown"


def test_choices_are_the_list_of_which_a_short_answer_is_one() -> None:
    row = {"question": "Which one is an animal of these?", "answer": 1, "choices": ["oak", "dog"]}
    assert guessed([row]).choices == "choices"
    longer = row | {"answer": "because " * 40}
    assert guessed([longer]).choices is None


def test_columns_of_a_letter_each_are_choices_and_no_answer() -> None:
    row = {"question": "Which one is an animal of these?", "A": "oak", "B": "dog", "C": "sea"}
    assert guessed([row | {"answer": "B"}]).letters == ("A", "B", "C")
    assert guessed([row | {"answer": "B"}]).answer == "answer"
    nested = {"question": row["question"], "answer": "b", "opa": "oak", "opb": "dog", "opc": "sea"}
    assert guessed([nested]).letters == ("opa", "opb", "opc")
    assert guessed([{"question": row["question"], "a": "oak", "b": "dog"}]).answer == "a"
    assert guessed([row | {"answer": "because " * 40}]).letters == ()


def test_what_a_model_said_has_the_role_of_its_name() -> None:
    row = {"Question": "How many are there?", "Model Reasoning": "One, two. " * 9, "Answer": "2"}
    assert guessed([row]) == Guess("qa", "Question", "Answer", "Model Reasoning")
    assert guessed([row | {"Reasoning Model": "m" * 90}]).cot == "Model Reasoning"


def test_words_of_names_are_divided_at_capitals_and_marks() -> None:
    assert words("Final Answers") == ["final", "answer"]
    assert words("finalAnswer_2") == ["final", "answer", "2"]
    assert words("CoT") == ["cot"]


def test_texts_of_few_values_are_no_question() -> None:
    rows = [
        {"source": ("math", "web")[place % 2], "target": f"{place} plums"} for place in range(9)
    ]
    assert guessed(rows).question is None


def test_names_without_a_word_have_no_role() -> None:
    columns = Columns()
    columns.add({"": ["a"], "--": ["b"], "a.": [{"x": 1}], "?": "Why is it so?"})
    assert guess(columns).form == "unknown"


ASKED = "Which one of them is it?"


@pytest.mark.parametrize(
    ("row", "roles"),
    [
        (
            {"question": ASKED, "student_answer": "x", "reference_answer": "y"},
            ("question", "reference_answer"),
        ),
        (
            {"question": ASKED, "model_answer": "x", "ground_truth": "y"},
            ("question", "ground_truth"),
        ),
        ({"question": ASKED, "model_answer": "x"}, ("question", "model_answer")),
        ({"respuesta": "x", "pregunta": ASKED}, ("pregunta", "respuesta")),
        ({"pregunta": ASKED, "respuesta": "x"}, ("pregunta", "respuesta")),
        ({"col1": "one", "col2": "two"}, ("col1", "col2")),
    ],
)
def test_the_answer_is_no_answer_of_a_student_and_a_question_asks(
    row: dict[str, str], roles: tuple[str, str]
) -> None:
    found = guessed([row] * 3)
    assert (found.question, found.answer) == roles


def test_a_question_without_an_answer_is_no_plain_text() -> None:
    assert guessed([{"passage": "A long story.", "question": ASKED}] * 3).form == "question-only"
    assert guessed([{"passage": "A long story.", "title": "A title of it"}] * 3).form == "text"


def test_a_prompt_of_the_system_is_neither_question_nor_answer() -> None:
    assert guessed([{"system": "Be kind to all.", "chat": "One says something."}] * 3).form == (
        "unknown"
    )


def test_words_for_no_answer_are_none() -> None:
    row = {"instruction": ASKED, "correct_answers": ["None"]}
    assert guessed([row] * 3).answer is None
    assert guessed([row, row | {"correct_answers": ["two"]}]).answer == "correct_answers"
    assert guessed([{"question": ASKED, "answer": "N/A"}] * 3).answer is None
    assert guessed([{"question": ASKED, "answer": "no"}] * 3).answer == "answer"


def test_spans_of_answers_are_answers() -> None:
    row = {"passage": "They ran.", "question": ASKED, "answers_spans": {"spans": ["two"]}}
    assert guessed([row] * 3).answer == "answers_spans.spans"


def test_a_hypothesis_asks_and_its_premise_is_the_context() -> None:
    found = guessed([{"premise": "A man sits.", "hypothesis": "A man is there.", "label": 1}] * 3)
    assert (found.question, found.context) == ("hypothesis", "premise")


def test_a_context_asks_where_nothing_else_does() -> None:
    found = guessed([{"context": ASKED, "response": "This one."}] * 3)
    assert (found.question, found.answer) == ("context", "response")
    found = guessed([{"context": "A story.", "question": ASKED, "response": "This one."}] * 3)
    assert (found.question, found.context) == ("question", "context")


@pytest.mark.parametrize("name", ["article", "story", "theory", "table"])
def test_what_a_question_speaks_of_is_its_context(name: str) -> None:
    row = {name: "A story. " * 9, "question": ASKED, "answer": "This one."}
    assert guessed([row] * 3).context == name


def test_a_story_alone_is_plain_text() -> None:
    found = guessed([{"title": "A tale", "story": "Once upon a time. " * 9}] * 3)
    assert (found.form, found.question) == ("text", "story")


def test_inputs_and_outputs_of_a_test_are_no_answer() -> None:
    row = {"question": ASKED, "solutions": "print(1)", "input_output": "1, 2"}
    assert guessed([row] * 3).answer == "solutions"
