"""The recipe that a look proposes reads the rows that were looked at."""

import tomllib
from typing import Any

import pytest

from gristmill.corpora.corpus import corpus_of_table
from gristmill.corpora.raw.corpus_file import checked
from gristmill.corpora.raw.reader import Reader
from gristmill.corpora.trial import Trial, toml, tried
from gristmill.look.proposal import Whole, name_of, proposal, record_notes
from tests.look.cards import part

GLOBS = {"train": ["*"]}


def proposed(*rows: dict[str, Any]) -> Trial:
    return proposal(Whole("own"), [part(list(rows))], GLOBS)


def values(made: Trial) -> dict[str, Any]:
    return tomllib.loads(made.text)


@pytest.mark.parametrize(("size", "least"), [(10**9, None), (10**9 + 1, 10**9)])
def test_a_recipe_makes_parts_of_more_than_a_gigabyte(size, least):
    rows = [{"question": "q", "answer": "a"}]
    made = proposal(Whole("own", size=size), [part(rows)], GLOBS)
    assert values(made).get("part_bytes") == least and made.good == 1


ANIMAL = {"question": "Which one is an animal?"}
TREES = {**ANIMAL, "options": ["oak", "dog"], "answer": "B"}
ENDS = {"cot": "Oaks are trees, and so it is not the first. The answer is B."}
LABELS = {"text": ["oak", "dog", "sea"], "label": ["1", "2", "3"]}
PLUMS = {"question": "How many plums has she?"}
SAID = "<think>\none and one\n</think>\n\ntwo"
SUM = {"prompt": "What is 2 and 2?"}
TRIED: dict[str, Any] = {"problem": "What is 2 and 2?", "answer": "4"}
TRIED["generations"] = [
    "<think>No, it is something else, I am sure of it.</think>5",
    "<think>It is four, as anybody can see at once.</think>4",
]
TAGGED = {"generations": None, "reasoning": f"<thought>{'I see. ' * 9}</thought>"}
SOLVED = {"problem": "How many are there?", "solution": "Not \\boxed{1}: $\\boxed{\\frac{1}{2}}$."}
EVEN = {"question": "Which are even?", "choices": ["two", "three", "four"], "answer": ["A", "C"]}
SEES = "An oak is a tree, as one sees by its leaves. " * 6
HINTED = {"question": "Is it so, as he says?", "answer": True, "context": "He says it."}
ROOF = {"ctx_a": "A man sits on a roof.", "ctx": "A man sits on a roof. He", "label": "1"}
TRANSLATED = {"instruction": "Translate it, please.", "input": "Haus", "output": "house"}


def choice(of: Any, answer: str = "answer", shown: str = "text", **more: Any) -> dict[str, Any]:
    return {"choice": answer, "of": of, "as": shown, **more}


def between(column: str, tag: str, **more: Any) -> dict[str, Any]:
    return {"column": column, "between": [f"<{tag}>", f"</{tag}>"], **more}


@pytest.mark.parametrize(
    ("row", "expected", "record"),
    [
        (
            ANIMAL | {"options": ["A) oak", "B) dog"], "answer": "B"},
            {"answer": choice("options"), "question": {"template": "{question}\n\n{options}"}},
            ("Which one is an animal?\n\nA) oak\nB) dog", "dog", None),
        ),
        *(
            (
                {**TREES, "rationale": SEES + end},
                {"answer": choice("options", shown=shown), "cot": "rationale"},
                None,
            )
            for end, shown in (("The answer is B.", "both"), ("It barks.", "text"))
        ),
        # Choices get letters where answers have some, and several are all read.
        (TREES | ENDS, {}, ("Which one is an animal?\n\nA) oak\nB) dog", "B) dog", ENDS["cot"])),
        (TREES | ENDS | {"options": ["A) oak", "B) dog"]}, {"parts": None}, None),
        (EVEN, {}, ("Which are even?\n\nA) two\nB) three\nC) four", "A, C", None)),
        (
            {"question": "Where is it?", "answers": ["Paris", "in Paris"]},
            {"answer": "answers.0"},
            ("Where is it?", "Paris", None),
        ),
        (
            ANIMAL | {"A": "oak", "B": "dog", "C": "sea", "answer": "B"},
            {
                "question": {"template": "{question}\n\nA) {A}\nB) {B}\nC) {C}"},
                "answer": choice(["A", "B", "C"]),
            },
            None,
        ),
        (
            ANIMAL | {"choices": LABELS, "answerKey": "3"},
            {"answer": choice("choices.text", "answerKey", labels="choices.label")},
            None,
        ),
        # Choices in one text stand behind the question; a letter at the end of a name is none.
        (
            {"Problem": "What is half of ten?", "options": "a ) 4 , b ) 5", "correct": "b"},
            {"question": {"template": "{Problem}\n\n{options}"}, "answer": "correct"},
            None,
        ),
        (
            ROOF | {"endings": ["falls.", "sings."]},
            {"question": {"template": "{ctx}\n\n{endings}"}, "answer": choice("endings", "label")},
            None,
        ),
        (
            HINTED,
            {"answer": {"column": "answer", "map": {"true": "yes", "false": "no"}}},
            ("He says it.\n\nIs it so, as he says?", "yes", None),
        ),
        (TRANSLATED, {"question": {"template": "{instruction}\n\n{input}"}}, None),
        ({"text": "long " * 90, "url": "u"}, {"texts": "{text}"}, None),
        *(
            (
                PLUMS | {"answer": f"One, two.\n{mark} 2"},
                {"cot": {"column": "answer", "before_line": mark}},
                ("How many plums has she?", "2", "One, two."),
            )
            for mark in ("The answer is:", "####")
        ),
        # Thoughts in tags; of an empty one the answer is no thought.
        (
            PLUMS | {"answer": SAID},
            {"cot": between("answer", "think")},
            ("How many plums has she?", "two", "one and one"),
        ),
        (PLUMS | {"answer": SAID.partition(">")[2]}, {"cot": {"think": "answer"}}, None),
        (PLUMS | {"answer": "<think></think>\nTwo."}, {}, ("How many plums has she?", "Two.", "")),
        (
            SUM | {"response": "<reasoning>I see.</reasoning>\n<answer>4</answer>"},
            {
                "answer": between("response", "answer", which="last"),
                "cot": between("response", "reasoning"),
            },
            ("What is 2 and 2?", "4", "I see."),
        ),
        (
            SUM | {"response": "<thinking>I see.</thinking>4"},
            {"answer": {"column": "response", "after": "</thinking>", "which": "last"}},
            ("What is 2 and 2?", "4", "I see."),
        ),
        # Of several generations the first that is right.
        (
            TRIED | {"correctness": [False, True]},
            {"cot": {"pick": "generations", "where": [["correctness"]], "think": True}},
            ("What is 2 and 2?", "4", "It is four, as anybody can see at once."),
        ),
        (TRIED, {"cot": {"think": "generations.0"}}, None),
        (TRIED | TAGGED, {"cot": between("reasoning", "thought")}, None),
        # The last box of a solution is the answer where no other is there.
        (SOLVED, {}, ("How many are there?", "\\frac{1}{2}", SOLVED["solution"])),
        (SOLVED | {"answer": "1/2"}, {"answer": "answer"}, None),
    ],
)
def test_rows_get_a_recipe_that_reads_them(row, expected, record):
    made = proposed(row)
    assert made.good == 1
    assert {key: values(made).get(key) for key in expected} == expected
    if record is not None:
        read = Reader(checked(values(made), "own")).read(row, (0, 1))
        assert (read.question, read.answer, read.cot) == record


@pytest.mark.parametrize("is_beside", [False, True])
def test_signs_of_steps_in_answers_are_named(is_beside):
    signs = [("+", "+"), ("+", "-"), ("-", "-")] * 4
    rows = [
        {
            "input": f"How is {n}?" + (f" Step 1: {n} ki\nStep 2: so ki" if is_beside else ""),
            "label": f"How is {n}? Step 1: {n} {one}\nStep 2: so {two}",
        }
        for n, (one, two) in enumerate(signs)
    ]
    said = "label repeats input but for a few words" if is_beside else "lines of label end in +, -"
    assert f"{said}: if they are marks of its steps" in "\n".join(record_notes(part(rows)))
    lists = [{"question": ANIMAL["question"], "label": ["+", *own]} for own in signs]
    assert part(lists).guess.form == "stepwise"


@pytest.mark.parametrize("answer", ["A,C", "AB", "1.0", "-1", 4821, 2.5])
def test_letters_and_numbers_that_fit_no_choice_are_refused_with_what_they_are(answer):
    row = {"question": "Which one is an animal?", "choices": ["oak", "dog", "sea"]}
    made = proposed(*[row | {"answer": answer}] * 5, *[row | {"answer": "B"}] * 2)
    assert proposed(row | {"choices": [], "answer": answer}, row | {"answer": answer}).good == 0
    assert values(made)["answer"] == choice("choices")
    assert made.refused == {f"answer is '{answer}', none of 3 choices": 5} and made.good == 2


@pytest.mark.parametrize(
    ("answers", "is_said"), [("ABC", True), ((0, 1), True), (("AB", "C"), False)]
)
def test_answers_of_one_sign_are_named_with_what_makes_words_or_choices_of_them(answers, is_said):
    rows = [{"question": "Which one?", "answer": each, "hint": "A b."} for each in [*answers] * 6]
    notes = " ".join(record_notes(part(rows)))
    words = 'if they stand for words, write answer = { column = "answer", map = {'
    choice = 'if they name a choice, { choice = "answer", of = COLUMN }'
    assert (words in notes, choice in notes) == (is_said, is_said)


@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize("in_columns", [False, True])
def test_choices_that_are_numbered_from_1_get_labels(kind, in_columns):
    asked = {"question": "Which one is an animal?"}
    given = {"optA": "oak", "optB": "dog", "optC": "sea"}
    row = {**asked, **(given if in_columns else {"options": ["oak", "dog", "sea"]})}

    def answered(*numbers: int) -> Any:
        return proposed(*({**row, "answer": kind(n)} for n in numbers))

    from_one = answered(1, 3, 2)
    assert values(from_one)["answer"]["labels"] == ["1", "2", "3"]
    assert from_one.good == 3
    assert "labels" not in values(answered(0, 2, 1))["answer"]
    unknown = answered(1, 2)
    assert "labels" not in values(unknown)["answer"]
    assert "no row has a 0" in unknown.text


def test_rows_without_a_question_are_refused_and_refusals_counted_by_rule():
    made = proposed({"question": "How many plums?", "answer": "3"}, {"question": "", "answer": "4"})
    (rule,) = made.refused
    assert 'keep = [{ column = "question", present = true }]' in rule
    corpus = corpus_of_table(
        {"name": "own", "files": {"train": "*"}, "question": "q", "answer": "a"}
    )
    rows = [{"q": "x", "a": "y"}, {"q": "x"}, {"z": 1}, {"q": " ", "a": ""}]
    made = tried(corpus, part(rows).sample)
    assert (made.rows, made.good, made.refused.total()) == (4, 2, 2)
    assert any("lacks the column a" in rule for rule in made.refused)
    assert made.unread == {"no text, which are kept": 1}


def test_marks_in_few_rows_divide_nothing_and_answers_that_are_all_one_are_named():
    rows = [{"question": f"How many are {n}?", "answer": f"{n} {'.' * 9}"} for n in range(9)]
    rows.append({"question": "How many plums?", "answer": "a\n#### 2"})
    assert values(proposed(*rows))["answer"] == "answer"
    rows = [SOLVED] * 7 + [SOLVED | {"solution": "It is none."}] * 3
    assert values(proposed(*rows))["answer"] == "solution"
    other = proposed({"question": "Where is it?", "answers": ["Paris", "in Paris"]})
    assert "though 1 rows have several: answer = { join" in other.text
    rows = [{"question": f"What is {n}?", "answer": n, "rationale": "so " * 20} for n in ("a", "")]
    assert proposed(*rows).unread == {"a thought and an empty answer, which are kept": 1}
    made = proposed(*({"question": f"What is {n} and {n}?", "answer": "four"} for n in range(5)))
    assert made.unread == {'one and the same answer, "four"': 5}
    pair = {"sentence1": "A cat sat there.", "sentence2": "There sat a cat.", "label": 1}
    assert "of" not in str(values(proposed(pair)))
    stated = {"question": "Is it so?", "option1": "yes it is", "option2": "no"}
    assert values(proposed(stated | {"answer": "It is so."}))["answer"] == "answer"


@pytest.mark.parametrize(
    ("other", "forms"),
    [
        (
            {"problem": "How many are there?", "solution": "2"},
            [{"when": ["question", "answer"]}, {"when": ["problem", "solution"]}],
        ),
        # Columns that are all in another form are known by what they lack.
        (
            {"question": "How many are there?", "answer": "2", "rationale": "so " * 30},
            [{"unless": ["rationale"]}, {}],
        ),
    ],
)
def test_files_with_other_columns_have_forms_that_tell_them_apart(other, forms):
    one = part([{"question": "How many are there?", "answer": "2"}])
    made = proposal(Whole("own"), [one, part([other])], GLOBS)
    assert made.good == 2
    for form, own in zip(values(made)["form"], forms, strict=True):
        assert own.items() <= form.items()


@pytest.mark.parametrize(
    ("end", "is_mark"),
    [("\n#### 4", True), ("\n#### Then\nit is 4", False), ("\n#### " + "so " * 40, False)],
)
def test_a_mark_has_one_short_line_behind_it(end, is_mark):
    made = proposed(*({"question": f"How many are {n}?", "answer": f"{n} so{end}"} for n in "12"))
    assert (values(made)["answer"] == {"column": "answer", "after_line": "####"}) is is_mark


def test_odd_names_of_folders_and_columns_become_names_of_toml():
    assert name_of("My Math-v1.1") == "my_math_v1_1"
    assert name_of("gsm8k") == "gsm8k_own"
    assert name_of("数学") == "corpus"
    assert len(name_of("a" * 90)) == 36
    table = {"a b": ['x"\n', True, 0.5], "c": {"d\x7f": "e"}}
    assert tomllib.loads(f"v = {toml(table)}") == {"v": table}


@pytest.mark.parametrize("answer", ["4", "9" * 5000])
def test_choices_that_are_numbers_get_no_labels(answer):
    row = {"question": "What is 2 and 2?", "options": ["2", "3", "4", answer]}
    other = {**row, "options": ["9", "12"], "answer": "12"}
    made = proposed({**row, "answer": answer}, {**row, "answer": "3"}, other)
    assert "labels" not in values(made)["answer"]
    assert "no row has a 0" not in made.text
    assert made.good == 3


@pytest.mark.parametrize("kind", [str, int])
def test_numbers_that_are_places_and_texts_of_choices_are_left_to_a_person(kind):
    rows = [
        {"question": f"Which is it, {n}?", "options": ["2", "3", "4", "1"], "answer": kind(n)}
        for n in (1, 2, 3, 4)
    ]
    made = proposed(*rows)
    ways = 'of choices: write labels = ["1", "2", "3", "4"] from 1, or by = "text".'
    assert ways in made.text and "by" not in values(made)["answer"]
    assert made.refused.total() >= 3


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("stem", ["sol", "option", "ending"])
def test_choices_with_numbered_columns_are_read_by_their_number(start, stem):
    rows = [
        {"goal": f"How is jar {n} opened?", f"{stem}1": f"twist {n}", f"{stem}2": "hit it"}
        | {"label": n % 2 + start}
        for n in range(4)
    ]
    made = proposed(*rows)
    labels = {"labels": ["1", "2"]} if start else {}
    assert values(made)["answer"] == choice([f"{stem}1", f"{stem}2"], "label", **labels)
    assert made.good == 4


def test_numbered_texts_that_are_compared_are_no_choices():
    pair = {"sentence1": "A cat sat there.", "sentence2": "There sat a cat.", "label": 1}
    assert "of" not in str(values(proposed(pair)))
    stated = {"question": "Is it so?", "option1": "yes it is", "option2": "no"}
    assert values(proposed(stated | {"answer": "It is so."}))["answer"] == "answer"
