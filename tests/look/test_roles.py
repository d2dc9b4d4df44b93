"""What columns mean is guessed by their names and values."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gristmill.look.roles import Guess, words
from tests.look.cards import cards, part

CARDS = list(cards())
ASKED = "Which one of them is it?"
THREE = {"frage": "Wie viele sind es?", "weg": "Erst eins, dann zwei. " * 4, "antwort": "3"}
MODEL = {"Question": "How many are there?", "Model Reasoning": "One, two. " * 9, "Answer": "2"}
LETTERS = {"question": ASKED, "A": "oak", "B": "dog", "C": "sea"}
LISTED = {"question": ASKED, "answer": 1, "choices": ["oak", "dog"]}
SPANS = {"passage": "They ran.", "question": ASKED, "answers_spans": {"spans": ["two"]}}
TESTED = {"question": ASKED, "solutions": "print(1)", "input_output": "1, 2"}


def guessed(rows: Sequence[Mapping[str, Any]]) -> Guess:
    return part(rows).guess


@pytest.mark.parametrize("card", CARDS, ids=[card.line[:60] for card in CARDS])
def test_the_columns_of_a_public_dataset_are_guessed(card):
    found = guessed(card.rows)
    wrong = {
        role: str(getattr(found, role))
        for role, right in card.right.items()
        if "*" not in right and str(getattr(found, role)) not in right
    }
    assert wrong == {}, found


def test_names_and_numbers_that_say_nothing_have_no_role_and_answers_may_be_missing():
    row = {"": ["a"], "--": ["b"], "a.": [{"x": 1}], "?": "Why is it so?"}
    assert guessed([row]).form == "unknown"
    rows = [{"question": ASKS.format(n), "answers": ["a", "b"], "count": 2} for n in range(9)]
    assert guessed(rows).choices is None
    rows = [
        {"question": ASKS.format(n), "answer": STORY.format(n), "x": float("nan")} for n in "ab"
    ]
    assert guessed(rows).cot is None
    row = {"instruction": ASKED, "correct_answers": ["None"]}
    assert guessed([row, row | {"correct_answers": ["two"]}]).answer == "correct_answers"
    sources = ("math", "web") * 5
    rows = [{"source": sources[n], "target": f"{n} plums"} for n in range(9)]
    assert guessed(rows).question is None
    assert guessed([]) == Guess("unknown")


@pytest.mark.parametrize(
    ("row", "roles"),
    [
        # Of three columns whose names say nothing, the longer one is no answer, nor a thought.
        (THREE, {"form": "qa", "question": "frage", "answer": "antwort", "cot": None}),
        (THREE | {"weg": "Erst."}, {"form": "qa", "question": "frage", "answer": "weg"}),
        # A column that says something about a row has no role.
        ({"question_type": "a type", "answer_id": "x", "is_correct": True}, {"form": "unknown"}),
        # Choices are the list of which a short answer is one, or columns of a letter each.
        (LISTED, {"choices": "choices"}),
        (LISTED | {"answer": "because " * 40}, {"choices": None}),
        (
            {"question": ASKED, "answer": "oak", "choices": [{"label": "A", "text": "oak"}] * 2},
            {"choices": "choices"},
        ),
        (LETTERS | {"answer": "B"}, {"letters": ("A", "B", "C"), "answer": "answer"}),
        (
            {"question": ASKED, "answer": "b", "opa": "oak", "opb": "dog", "opc": "sea"},
            {"letters": ("opa", "opb", "opc")},
        ),
        ({"question": ASKED, "a": "oak", "b": "dog"}, {"answer": "a"}),
        (LETTERS | {"answer": "because " * 40}, {"letters": ()}),
        # What a model said has the role of its name.
        (MODEL, {"question": "Question", "answer": "Answer", "cot": "Model Reasoning"}),
        (MODEL | {"Reasoning Model": "m" * 90}, {"cot": "Model Reasoning"}),
        # The answer is no answer of a student, and a question asks.
        (
            {"question": ASKED, "student_answer": "x", "reference_answer": "y"},
            {"question": "question", "answer": "reference_answer"},
        ),
        (
            {"question": ASKED, "model_answer": "x", "ground_truth": "y"},
            {"question": "question", "answer": "ground_truth"},
        ),
        (
            {"question": ASKED, "model_answer": "x"},
            {"question": "question", "answer": "model_answer"},
        ),
        ({"respuesta": "x", "pregunta": ASKED}, {"question": "pregunta", "answer": "respuesta"}),
        ({"pregunta": ASKED, "respuesta": "x"}, {"question": "pregunta", "answer": "respuesta"}),
        ({"col1": "one", "col2": "two"}, {"question": "col1", "answer": "col2"}),
        # A question without an answer is no plain text, and a story alone is.
        ({"passage": "A long story.", "question": ASKED}, {"form": "question-only"}),
        ({"passage": "A long story.", "title": "A title of it"}, {"form": "text"}),
        (
            {"title": "A tale", "story": "Once upon a time. " * 9},
            {"form": "text", "question": "story"},
        ),
        # A prompt of the system is neither question nor answer.
        ({"system": "Be kind to all.", "chat": "One says something."}, {"form": "unknown"}),
        ({"system_prompt": ASKED, "output": "It is so."}, {"question": None}),
        # Words for no answer are none; spans of answers are, and outputs of a test are not.
        ({"instruction": ASKED, "correct_answers": ["None"]}, {"answer": None}),
        ({"question": ASKED, "answer": "N/A"}, {"answer": None}),
        ({"question": ASKED, "answer": "no"}, {"answer": "answer"}),
        (SPANS, {"answer": "answers_spans.spans"}),
        (TESTED, {"answer": "solutions"}),
        # A hypothesis asks and its premise is the context; a context asks where nothing else does.
        (
            {"premise": "A man sits.", "hypothesis": "A man is there.", "label": 1},
            {"question": "hypothesis", "context": "premise"},
        ),
        ({"context": ASKED, "response": "One."}, {"question": "context", "answer": "response"}),
        (
            {"context": "A story.", "question": ASKED, "response": "This one."},
            {"question": "question", "context": "context"},
        ),
        *(
            ({name: "A story. " * 9, "question": ASKED, "answer": "One."}, {"context": name})
            for name in ("article", "story", "theory", "table")
        ),
    ],
)
def test_the_columns_of_a_row_have_these_roles(row, roles):
    found = guessed([row] * 3)
    assert {name: getattr(found, name) for name in roles} == roles


def test_words_of_names_are_divided_and_a_text_is_a_corpus_by_its_whole_name():
    assert words("Final Answers") == ["final", "answer"]
    assert words("finalAnswer_2") == ["final", "answer", "2"]
    assert words("CoT") == ["cot"]
    rows = [{"statement_of": ASKS.format(n) * 3, "hints_text": f"{n}", "code_x": n} for n in "12"]
    assert guessed(rows).form != "text"
    assert guessed([{"text": "a", "patch": ASKS}]).form == "text"


ASKS = "Which town had the market number {}?"
STORY = (
    "The records speak of a flood, after which the stalls were carried up the hill to number {}."
)


def test_what_most_texts_end_with_is_the_answer_and_they_are_the_thought() -> None:
    rows = [
        {"problem": ASKS.format(n), "worked_solution": STORY.format(n), "result": n}
        for n in range(30)
    ]
    said = guessed(rows)
    assert (said.answer, said.cot) == ("result", "worked_solution")
    for row in rows[:10]:
        row["result"] = 999
    assert guessed(rows).cot is None


@pytest.mark.parametrize("name", ["test", "schema", "report", "email", "retrieved"])
def test_a_long_text_that_does_not_end_with_the_answer_is_no_thought(name: str) -> None:
    rows = [
        {"question": ASKS.format(n), "answer": f"Town {n}", name: STORY.format("one") * 4}
        for n in range(9)
    ]
    assert guessed(rows).cot is None
    for row in rows:
        row[name] += f" So it is {row['answer']}."
    assert guessed(rows).cot == name


@pytest.mark.parametrize(
    ("names", "count", "named"),
    [
        *(
            (("answers", "label"), 3, named)
            for named in (int, float, "ABC".__getitem__, lambda n: str(n + 1))
        ),
        # Whatever its name.
        *((("ways_out", "gold"), 2, named) for named in (int, "ab".__getitem__)),
    ],
)
def test_a_list_beside_a_place_has_choices(names: tuple[str, str], count: int, named: Any) -> None:
    of, answer = names
    rows = [
        {"question": ASKS.format(n), of: [f"{n} {end}" for end in "abc"[:count]]}
        | {answer: named(n % count)}
        for n in range(12)
    ]
    said = guessed(rows)
    assert (said.choices, said.answer) == names
    assert said.proofs == (f"{answer} names one of {of} in 12 of 12 rows",)
    rows[5][answer] = 9
    assert guessed(rows).choices is None


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0, 1, "b", "x y"], 2),
        ([1, -1, 2, None], 0),
        ([["A", "b"], ["A", "x y"], [], 1.0], 1),
        # Letters and numbers that fit no choice are of choices by their names alone.
        (["A,C", "C", "(d)", "c, d"], 0),
        (["1.0", "0.0", "2.0", "AC"], 0),
        ([4821, 7.5, -1, "-1"], 0),
        (["A,C", "an oak", "so it is"], None),
        (["ABUT", "A is so"], None),
    ],
)
def test_signs_that_answers_name_choices_are_counted(values: list[Any], shown: int | None) -> None:
    rows = [{"question": ASKED, "choices": ["oak", "dog"], "answer": each} for each in values]
    rows.append({"question": ASKED, "choices": ["oak", "dog"], "answer": None})
    said = guessed(rows)
    proof = f"answer names one of choices in {shown} of {len(rows)} rows"
    assert said.choices == (None if shown is None else "choices")
    assert said.proofs == ((proof,) if shown else ())
    # A number that is no answer by its name is none by that of the choices.
    for n, row in enumerate(rows):
        row["id"] = n + 7
        del row["answer"]
    assert guessed(rows).answer is None


def test_a_text_that_is_always_one_of_some_columns_chooses_of_them() -> None:
    rows = [
        {"q_no": f"{n:032x}", "q_text": ASKS.format(n), "q_op1": "a", "q_op2": "b", "q_op3": "c"}
        | {"q_ans": "abc"[n % 3], "taskA_pos": STORY.format(n)}
        for n in range(9)
    ]
    said = guessed(rows)
    assert (said.question, said.answer) == ("q_text", "q_ans")
    assert said.letters == ("q_op1", "q_op2", "q_op3")
    rows[4]["q_ans"] = "d"
    assert guessed(rows).letters == ()
    # A number is no place among columns that no name calls choices.
    hints = {f"hint{n}": STORY.format(n) for n in (1, 2, 3)}
    rows = [{"question": ASKS.format(n), "answer": n % 3, **hints} for n in range(9)]
    assert guessed(rows).letters == ()


def test_a_context_that_questions_hold_and_a_hash_have_no_role() -> None:
    rows = [
        {"Body": STORY.format(n), "Question": STORY.format(n) + " How many?", "Answer": n}
        for n in range(9)
    ]
    assert guessed(rows).context is None
    for row in rows[:5]:
        row["Question"] = "How many are there then?"
    assert guessed(rows).context == "Body"
    rows = [{"question_no": f"{n:032x}", "answer": STORY.format(n)} for n in range(5)]
    assert guessed(rows).question is None
    steps = [STORY.format(n) for n in range(4)]
    for kind in (float, int):
        rows = [
            {"problem": ASKS.format(n), "steps": steps, "label": kind(n % 5 - 1)} for n in range(9)
        ]
        assert guessed(rows).form == "unknown"
    rows[0]["label"] = 9
    assert guessed(rows).form == "qa"


def test_a_text_beside_others_is_a_corpus_by_its_whole_name_alone() -> None:
    rows = [{"statement_of": ASKS.format(n) * 3, "hints_text": f"{n}", "code_x": n} for n in "12"]
    assert guessed(rows).form != "text"
    assert guessed([{"text": "a", "patch": ASKS}]).form == "text"


def test_a_context_that_questions_hold_is_none() -> None:
    rows = [
        {"Body": STORY.format(n), "Question": STORY.format(n) + " How many?", "Answer": n}
        for n in range(9)
    ]
    assert guessed(rows).context is None
    for row in rows[:5]:
        row["Question"] = "How many are there then?"
    assert guessed(rows).context == "Body"


def test_a_number_that_no_record_may_have_says_no_role() -> None:
    rows = [
        {"question": ASKS.format(n), "answer": STORY.format(n), "x": float("nan")} for n in "ab"
    ]
    assert guessed(rows).cot is None


def test_what_tells_the_question_again_or_is_a_list_as_text_is_no_thought() -> None:
    rows = [
        {"instruction": ASKS.format(n), "output": STORY.format(n), "result": n} for n in range(9)
    ]
    for row in rows:
        row["text"] = f"Below is one.\n{row['instruction']}\n{row['output']}"
    said = guessed([{**row, "result": None} for row in rows])
    assert (said.answer, said.cot) == ("output", None)
    listed = [{"query": ASKS.format(n), "answers": f'["{STORY}", {n}]', "id": n} for n in range(9)]
    assert (guessed(listed).answer, guessed(listed).cot) == ("answers", None)
