"""The recipe that a look proposes reads the rows that were looked at, records and conversations."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import corpus_of_table
from gristmill.corpora.raw.chat.messages import Messages, account, chat_of
from gristmill.corpora.raw.corpus_file import checked
from gristmill.corpora.raw.reader import Reader
from gristmill.corpora.trial import Trial, name_of, toml, tried
from gristmill.look.finding import Look, look, write
from gristmill.look.proposal import Whole, proposal, record_notes
from gristmill.look.report import lines
from gristmill.synth.raw import TEXTS
from gristmill.synth.samples import write_drop
from tests.json_lines import jsonl
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


HI = [{"role": "user", "content": "Hi there"}, {"role": "assistant", "content": "Hello to you."}]
SHARE = [{"from": "human", "value": "Hi there"}, {"from": "gpt", "value": "Hello to you."}]


def looked(folder: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> Look:
    """A look at a folder with these rows."""
    jsonl(folder / name, rows)
    return look(folder)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"prompt_id": "p{}", "id": "x"}, "prompt_id"),
        ({"prompt_id": "same", "conversation_hash": "h{}"}, "conversation_hash"),
        ({"id": "{}"}, "id"),
        ({"id": ""}, None),
        ({"row": "{}"}, None),
    ],
)
def test_a_column_of_ids_that_no_two_rows_share_is_proposed(tmp_path, ids, expected):
    drop = tmp_path / "mine"
    rows = [{name: said.format(at) for name, said in ids.items()} for at in range(4)]
    write(looked(drop, [{"messages": HI, **row} for row in rows]))
    assert tomllib.loads((drop / "corpus.toml").read_text()).get("id") == expected
    assert chat_of(drop).corpus.id == expected


@pytest.mark.parametrize(("files", "shards"), [(2, 2), (5, 4)])
def test_the_columns_of_synth_get_the_built_in_recipe(tmp_path, files, shards):
    drop = tmp_path / "mine"
    write_drop(drop, files=files, done=False)
    found = look(drop)
    assert (found.takers, found.proposal.rows) == ([], 60 * files)
    # The build leaves them out, too, and sets none aside.
    assert sum(found.proposal.left_out.values()) == 60 * files - found.proposal.good > 0
    assert set(found.proposal.left_out) <= {f"its {name} is null or empty" for name in TEXTS}
    assert not found.proposal.refused
    assert any("left out, and counted: its " in line for line in lines(found))
    write(found)
    table = tomllib.loads((drop / "corpus.toml").read_text())
    own = {"recipe": "synth"} | ({"shards": files} if files < 4 else {})
    assert table == {"schema": 1, "kind": "chat", "name": "mine"} | own
    assert chat_of(drop).partitions == [f"mine__{number:02d}" for number in range(shards)]
    assert set(account(drop).taken) == {"train", "validation"}


def test_files_of_synth_that_name_two_splits_keep_them(tmp_path):
    drop = tmp_path / "mine"
    first, second = write_drop(drop, files=2, done=False)
    first.rename(drop / "train.parquet")
    second.rename(drop / "validation.parquet")
    write(look(drop))
    assert account(drop).taken == {"train": ["train.parquet"], "validation": ["validation.parquet"]}


def test_messages_of_trees_get_a_recipe(tmp_path):
    drop = tmp_path / "mine"
    rows = [
        {"message_id": f"{at}{role}", "parent_id": parent, "text": f"text {at}", "role": role}
        for at in range(5)
        for role, parent in (("prompter", None), ("assistant", f"{at}prompter"))
    ]
    jsonl(
        drop / "train.jsonl",
        [{**row, "rank": 0, "message_tree_id": row["message_id"][0]} for row in rows],
    )
    write(look(drop))
    assert chat_of(drop).tree == {"id": "message_id", "parent": "parent_id", "best": "rank"}


def test_rows_that_are_no_conversations_get_no_such_recipe(tmp_path):
    other = tmp_path / "other"
    jsonl(other / "train.jsonl", [{"question": "What is it?", "answer": "It is this."}] * 3)
    assert look(other).proposal.inbox == "reasoning"
    assert looked(other, [{"messages": HI}] * 4, "more.jsonl").proposal.inbox == "reasoning"


WHAT, PLUM = "What is it, and who has it?", "It is a plum, and Mira has it."
READ = [("user", WHAT), ("assistant", PLUM)]
HUMAN = f"\n\nHuman: {WHAT}\n\nAssistant:"
FOUND = {"messages": "m"}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I think."}]}
PLAIN = {"role": "assistant", "content": PLUM}
GAVE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": PLUM}]}
ASKED, SAYS = HI
SYSTEM = {"role": "system", "content": "Be kind."}
NO = {"role": "assistant", "content": "No."}


def two(prompt: str, completion: str, **more: str) -> dict[str, str]:
    """What a recipe says of a conversation in two columns."""
    return {"prompt": prompt, "completion": completion, **more}


def said(**more: Any) -> dict[str, Any]:
    """A row whose answer has these keys, too."""
    return {"messages": [ASKED, {**SAYS, **more}]}


def of_talks(folder: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> dict[str, Any]:
    """The recipe that a look proposes for rows, eight times each."""
    found = looked(folder, [{**row, "row": at} for at in range(8) for row in rows], name)
    assert found.proposal.good == found.proposal.rows
    return tomllib.loads(found.proposal.text)


@pytest.mark.parametrize(
    ("row", "stated"),
    [
        (said(reasoning_content="I greet."), {"keys": {"thinking": "reasoning_content"}}),
        (said(reasoning_content=["I"]), {}),
        (said(weight=0), {"keys": {"weight": "weight"}}),
        (said(weight=None), {}),
        ({"messages": HI, "system": "Be kind."}, {"system": "system"}),
        ({"messages": HI, "system": ""}, {}),
        (said(content="<think>I see.</think>Yes."), {}),
        (
            said(content="<reasoning>I see.</reasoning>Yes."),
            {"thinking": ["<reasoning>", "</reasoning>"]},
        ),
        (
            {"prompt": [ASKED], "completion": "[THINK]a[/THINK]b"},
            {"thinking": ["[THINK]", "[/THINK]"]},
        ),
        (
            said(content="<answer>a</answer>", reasoning="b"),
            {
                "keys": {"thinking": "reasoning"},
                "thinking": ["<think>", "</think>", "<answer>", "</answer>"],
            },
        ),
        (said(role="model"), {"roles": {"model": "assistant"}}),
        # What is stated twice is read once, and numbers but 0 and 1 weigh nothing.
        ({"messages": [SYSTEM, *HI], "system": "Be kind."}, {}),
        (said(content="<think>a</think>b", reasoning="a"), {}),
        *(
            (said(**{key: weight}), {"keys": {"weight": key}} if known else {})
            for key in ("train", "loss", "trainable")
            for weight, known in ((False, True), (0.5, False))
        ),
        (said(content="It.</s>"), {"marks": {"control": ["</s>"]}}),
        (
            {"conversations": [{"from": "Human", "value": "a"}, {"from": "GPT", "value": "b"}]},
            {"roles": {"GPT": "assistant", "Human": "user"}},
        ),
    ],
)
def test_what_messages_say_besides_their_texts_is_proposed(tmp_path, row, stated):
    table = of_talks(tmp_path / "mine", [row])
    assert {
        key: table[key] for key in ("keys", "roles", "system", "thinking", "marks") if key in table
    } == stated


@pytest.mark.parametrize("name", ["eval.jsonl", "train_eval.jsonl"])
def test_a_file_of_another_split_is_never_train_and_the_drop_says_the_key(tmp_path, name):
    found = looked(tmp_path / "mine", [{"messages": HI, "n": n} for n in range(8)], name)
    table = tomllib.loads(found.proposal.text)
    assert ("train" in table.get("files", {}), table["leave"]) == (False, [name])
    assert "name in `files` what is to be read" in found.proposal.text
    rule = "leaves out every data file: name in `files` what"
    assert any("is refused" in note and rule in note for note in found.notes)
    write(found)
    with pytest.raises(BadInput, match=rule):
        account(tmp_path / "mine")


@pytest.mark.parametrize(
    ("names", "train", "left"),
    [
        (["train_sft-0.jsonl", "test_sft-0.jsonl", "train_gen-0.jsonl"], [0], [1, 2]),
        (["all/train-0.jsonl", "all/test-0.jsonl", "some/train-0.jsonl"], [0], [1, 2]),
        (["train.jsonl", "code.jsonl", "eval.jsonl"], [0], [1, 2]),
        (["train.jsonl", "test.jsonl"], [0], [1]),
        (["a_train.jsonl", "b_train.jsonl", "test.jsonl"], [0, 1], [2]),
        (["code.jsonl", "train_eval.jsonl"], [0], [1]),
        (["all/train-0.jsonl", "code/train-0.jsonl", "math/train-0.jsonl"], [0], [1, 2]),
        (["a/train-0.jsonl", "b/train-0.jsonl"], [0, 1], []),
        (["all/train-0.jsonl", "more/code.jsonl"], [0], [1]),
        (["data.jsonl", "benchmark.jsonl"], [0], [1]),
        (["code.jsonl", "math.jsonl"], [0, 1], []),
        (["chat.jsonl", "heldout.jsonl"], [0], [1]),
        (["chat.jsonl", "held_out/x.jsonl"], [0], [1]),
        (["chat.jsonl", "my_holdout.jsonl"], [0], [1]),
    ],
)
def test_a_file_is_left_only_where_it_names_another_split(tmp_path, names, train, left):
    drop = tmp_path / "mine"
    for name in names:
        jsonl(drop / name, [{"messages": HI, "n": f"{name}{n}"} for n in range(3)])
    found = look(drop)
    write(found)
    taken = account(drop)
    assert taken.taken == {"train": sorted(names[at] for at in train)}
    assert taken.left_out == dict.fromkeys([names[at] for at in left], "`leave` names it")


def test_what_nothing_reads_of_messages_is_said(tmp_path):
    more = {"id": "x", "type": "message", "reasoning_details": [{"text": "I think."}]}
    thought = {"role": "assistant", "content": "See. <think>A plum.</think> It is."}
    jsonl(
        tmp_path / "mine/train.jsonl",
        [{"messages": [ASKED, {**SAYS, **more}], "n": n} for n in range(3)],
    )
    found = looked(tmp_path / "mine", [{"messages": [ASKED, thought], "n": 9}], "train_2.jsonl")
    assert [*found.proposal.unread.values()] == [3, 1]
    text = "\n".join(lines(found))
    assert "  3 with messages whose key reasoning_details nothing reads: name it in `keys`" in text
    assert "  1 with <think> or </think> inside an answer, which stays text" in text
    moss = "<|Human|>: Hi there<eoh>\n<|Inner Thoughts|>: None<eot>\n<|MOSS|>: Hello to you.<eom>"
    (what,) = looked(tmp_path / "moss", [{"text": moss}] * 3).proposal.unread
    assert what.startswith("<|Inner Thoughts|> in a message, which stays text")


def test_files_without_conversations_beside_those_that_are_most_are_left(tmp_path):
    drop = tmp_path / "mine"
    jsonl(drop / "conversations.json", [{"messages": HI, "n": n} for n in range(9)])
    jsonl(drop / "user.json", [{"id": "u", "email": "x@y.z"}])
    (drop / "feedback.json").write_text("[]")
    found = look(drop)
    for name in ("feedback.json", "user.json"):
        assert f"{name}: holds no conversations: `leave` names it" in found.notes
    write(found)
    assert account(drop).taken == {"train": ["conversations.json"]}
    jsonl(drop / "user.json", [{"id": "u" * 2000, "email": "x@y.z"}])
    assert "leave" not in tomllib.loads(look(drop).proposal.text) or (
        look(drop).proposal.inbox == "reasoning"
    )


def test_conversations_in_a_column_a_file_are_noted(tmp_path):
    jsonl(tmp_path / "mine/train-a.jsonl", [{"messages": HI}] * 3)
    jsonl(tmp_path / "mine/train-b.jsonl", [{"conversations": SHARE}] * 3)
    note = "conversations are in messages and conversations: make a folder of each"
    assert any(each.startswith(note) for each in look(tmp_path / "mine").notes)


ASKS = {"role": "user", "content": WHAT}
PREFERRED = {"preferred_output": [PLAIN], "non_preferred_output": [NO]}
PARTED = [{"role": r, "parts": [{"text": t}]} for r, t in (("user", WHAT), ("model", PLUM))]
BOTS = [{"speaker": who, "text": said} for who, said in (("user", WHAT), ("bot", PLUM))]
GPT = [{"from": "human", "value": WHAT}, {"from": "gpt", "value": PLUM}]
MOSS = {"Human": f"<|Human|>: {WHAT}<eoh>\n", "MOSS": f"<|MOSS|>: {PLUM}<eom>"}
CLOSED = ["<|Human|>:", "<eoh>", "<|MOSS|>:", "<eom>"]
WRITTEN = [json.dumps(ASKS), json.dumps(PLAIN)]
OLD = {"instruction": WHAT, "input": "", "output": PLUM, "history": [[WHAT, PLUM]]}


def keys(user: str, assistant: str, **more: str) -> dict[str, Any]:
    return {"keys": {**more, "user": user, "assistant": assistant}}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"m": [[WHAT, PLUM]], "n": 1}, FOUND),
        ({"messages": [["human", WHAT], ["ai", PLUM]]}, {"roles": {"ai": "assistant"}}),
        ({"data": [WHAT, PLUM]}, {"messages": "data"}),
        ({"conversation": [{"human": WHAT, "assistant": PLUM}]}, keys("human", "assistant")),
        (
            {"conversation": [{"system": "", "input": WHAT, "output": PLUM}]},
            keys("input", "output", system="system"),
        ),
        # Keys of turns that nobody has listed say by their words who asks.
        ({"chat": [{"task": WHAT, "final_reply": PLUM}]}, keys("task", "final_reply")),
        ({"text": HUMAN + PLUM}, {"messages": "text"}),
        ({"chosen": HUMAN + PLUM, "rejected": HUMAN}, {"messages": "chosen"}),
        (
            {"prompt": HUMAN, "chosen": f" {PLUM}", "rejected": " No."},
            {"messages": "{prompt}{chosen}"},
        ),
        ({"prompt": HUMAN, "response": PLUM}, {"messages": "{prompt}{response}"}),
        (
            {"conversations": GPT[:1], "chosen": GPT[1], "rejected": {**GPT[1], "value": "No."}},
            two("conversations", "chosen"),
        ),
        ({"prompt": [ASKS], "chosen": [PLAIN], "rejected": [NO]}, two("prompt", "chosen")),
        ({"input": {"messages": [ASKS]}, **PREFERRED}, two("input", "preferred_output")),
        (
            {"dialog": BOTS},
            {"keys": {"role": "speaker", "content": "text"}, "roles": {"bot": "assistant"}},
        ),
        ({"contents": PARTED}, {"messages": "contents", "roles": {"model": "assistant"}}),
        (OLD, {"turns": {"history": "history", "user": "instruction", "assistant": "output"}}),
        (
            {"chat": {"turn_1": MOSS}},
            {"messages": "chat", **keys("Human", "MOSS"), "marks": {"control": CLOSED}},
        ),
        ({"input": [ASKS, THOUGHT, GAVE]}, {"messages": "input"}),
        ({"input": [ASKS], "output": [THOUGHT, GAVE]}, two("input", "output")),
        ({"messages": WRITTEN}, {"messages": "messages"}),
        ({"input": WHAT, "output": [THOUGHT, GAVE]}, two("input", "output")),
    ],
)
def test_every_form_of_a_conversation_gets_a_recipe_that_reads_it(tmp_path, row, expected):
    drop = tmp_path / "mine"
    found = looked(drop, [row] * 8)
    assert (found.proposal.inbox, found.proposal.good) == ("chat", 8), found.proposal.refused
    table = tomllib.loads(found.proposal.text)
    assert {key: table.get(key) for key in expected} == expected
    write(found)
    talk = Messages(chat_of(drop)).read(row)
    said = [(each.role, each.content) for each in talk.messages if each.channel != "analysis"]
    assert said[-2:] == READ


@pytest.mark.parametrize(
    "row",
    [
        {"context": WHAT, "history": [1, 2], "question": WHAT, "answer": PLUM},
        {"names": ["Mira", "Ada"], "question": WHAT, "answer": PLUM},
        {"dialogue": f"User: {WHAT}\nAssistant: {PLUM}", "summary": "They speak of a plum."},
        {"instruction": WHAT, "output": PLUM, "history": []},
    ],
)
def test_other_rows_stay_questions_with_answers(tmp_path, row):
    assert looked(tmp_path / "mine", [row] * 8).proposal.inbox == "reasoning"


def test_an_instruction_has_its_input_in_a_question_behind_turns(tmp_path):
    row = {"instruction": WHAT, "input": "A hint.", "output": PLUM, "system": "Be kind."}
    found = looked(tmp_path / "mine", [{**row, "history": [["a", "b"]], "k": n} for n in range(8)])
    table = tomllib.loads(found.proposal.text)
    assert table["turns"]["user"] == "{instruction}\n\n{input}"
    assert table["turns"]["system"] == "system"
    assert "which nothing reads" not in "\n".join(lines(found))


def test_a_system_prompt_is_read_without_its_mark_or_out_of_its_parts(tmp_path):
    chat = f"USER: {WHAT}\n\n\nASSISTANT: {PLUM}"
    found = looked(tmp_path / "mine", [{"system": "SYSTEM: Be kind.", "chat": chat}] * 8)
    table = tomllib.loads(found.proposal.text)
    assert table["system"] == {"column": "system", "after": "SYSTEM:"}
    write(found)
    talk = Messages(chat_of(tmp_path / "mine")).read({"system": "SYSTEM: Be kind.", "chat": chat})
    assert talk.messages[0].content == "Be kind."
    row = {"systemInstruction": {"parts": [{"text": "Be kind."}]}, "contents": PARTED}
    found = looked(tmp_path / "parts", [row] * 8)
    assert tomllib.loads(found.proposal.text)["system"] == "systemInstruction"
    assert found.proposal.good == 8


def test_a_tree_of_nodes_gets_a_recipe_that_reads_its_branch(tmp_path):
    texts = [("user", WHAT), ("assistant", "No."), ("assistant", PLUM)]
    nodes: dict[str, Any] = {"r": {"parent": None, "message": None}}
    for number, (role, text) in enumerate(texts):
        parent = "0" if number == 2 else str(number - 1) if number else "r"
        content = {"content_type": "text", "parts": [text]}
        nodes[str(number)] = {
            "parent": parent,
            "message": {"author": {"role": role}, "content": content},
        }
    # More nodes than columns are looked at.
    nodes |= {f"x{number}": {"parent": "r", "message": None} for number in range(600)}
    row = {"title": "t", "mapping": nodes, "current_node": "2", "moderation_results": []}
    found = looked(tmp_path / "mine", [row, row])
    table = tomllib.loads(found.proposal.text)
    assert (table["messages"], table["branch"]) == ("mapping", "current_node")
    assert len(found.reading.columns.by_name) == 4
    write(found)
    talk = Messages(chat_of(tmp_path / "mine")).read(row)
    assert [(each.role, each.content) for each in talk.messages] == READ


PROMPT = [SYSTEM, ASKED, SAYS, {"role": "user", "content": "And now?"}]
CHOSEN = {"prompt": "Hi there", "chosen": HI, "rejected": [ASKED, NO]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # A completion is the answer to all of its prompt, and so is one in another column.
        ({"prompt": PROMPT, "completion": [NO]}, two("prompt", "completion")),
        (
            {"input": [ASKED, SAYS, ASKED], "output": "The end.", "system_prompt": "Be kind."},
            two("input", "output", system="system_prompt"),
        ),
        ({"input": HI, "output": "The end."}, {"messages": "input"}),
        # Of pairs for preferences the chosen conversation is read.
        (CHOSEN, {"messages": "chosen"}),
        ({**CHOSEN, "prompt": [ASKED]}, {"messages": "chosen"}),
        ({"prompt": "Hi there", "chosen": [SAYS], "rejected": [NO]}, two("prompt", "chosen")),
        *(
            ({"id": "p", "messages": talk}, {"messages": "messages"})
            for talk in (
                json.dumps(HI),
                {"messages": HI},
                {"role": ["user", "assistant"], "content": ["Hi there", "Hello to you."]},
            )
        ),
    ],
)
def test_the_columns_with_the_messages_are_named(tmp_path, row, expected):
    table = of_talks(tmp_path / "mine", [row])
    assert {key: table.get(key) for key in expected} == expected
    assert not any("written as text" in note for note in look(tmp_path / "mine").notes)


CHAT = f"USER: {WHAT}\n\n\nASSISTANT: {PLUM}\n\n\n"
CALLED = f"{CHAT}FUNCTION RESPONSE: 1\n\n\nASSISTANT: {PLUM}"
CALL = {"type": "function_call", "name": "f"}
ODD = [{"from": "human", "value": "Hi there"}, {"from": "oracle", "value": "Hello."}]
PARTS = [{"type": "text", "text": "What is it?"}, {"type": "image", "text": None}]


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ([{"messages": [ASKED, *HI]}] + [{"messages": HI}] * 4, "broken"),
        ([{"dialog": [WHAT, PLUM, WHAT]}] * 4 + [{"dialog": [WHAT, PLUM]}] * 4, "broken"),
        ([{"chat": CALLED}] * 2 + [{"chat": CHAT}] * 6, "tools"),
        ([{"input": [ASKED, CALL, GAVE]}] * 2 + [{"input": [ASKED, GAVE]}] * 6, "tools"),
    ],
)
def test_some_rows_that_are_none_are_left_out_beside_whole_ones(tmp_path, rows, key):
    found = looked(tmp_path / "mine", [{**row, "k": n} for n, row in enumerate(rows)])
    assert tomllib.loads(found.proposal.text)[key] == "drop"
    left = sum(row == rows[0] for row in rows)
    assert (found.proposal.refused, found.proposal.left_out.total()) == ({}, left)
    assert found.proposal.good == len(rows) - left


@pytest.mark.parametrize("whole", [0, 3])
def test_texts_of_which_most_lack_an_answer_are_no_turns(tmp_path, whole):
    rows = [{"dialog": [WHAT, PLUM, WHAT][: 2 if n < whole else 3], "k": n} for n in range(8)]
    assert looked(tmp_path / "mine", rows).proposal.text == ""


@pytest.mark.parametrize(
    ("rows", "good", "rule"),
    [
        ([{"messages": [SAYS, ASKED, SAYS]}] * 8, 0, "assistant speaks after nothing"),
        (
            [{"messages": [SYSTEM, SAYS, ASKED, SAYS]}] * 8,
            0,
            "assistant speaks after nothing",
        ),
        ([{"messages": [*HI, SYSTEM, *HI]}] * 3, 0, "a system speaks after assistant"),
        (
            [{"messages": [ASKED, *HI]}] * 5,
            0,
            'broken = "drop" in corpus.toml leaves such conversations out',
        ),
        (
            [{"messages": [ASKED, {"role": "function_call", "content": "{}"}, SAYS]}] * 8,
            0,
            "uses tools (a message of function_call)",
        ),
        (
            [{"messages": [{"role": "user", "content": PARTS}, SAYS]}] * 3,
            0,
            "a message has a part that is no text, as a picture",
        ),
        (
            [{"conversations": ODD}] + [{"conversations": SHARE}] * 4,
            4,
            "the role 'oracle': write roles = {",
        ),
        (
            [{"messages": [{**ASKED, "role": "Nutzer"}, {**SAYS, "role": "Helfer"}]}] * 3,
            0,
            'write roles = { "Nutzer" = "user" }',
        ),
    ],
)
def test_why_rows_are_no_conversations_is_said_and_no_recipe_loses_it(tmp_path, rows, good, rule):
    found = looked(tmp_path / "mine", [{**row, "n": n} for n, row in enumerate(rows)])
    assert (found.proposal.inbox, found.proposal.good) == ("chat", good)
    (said,) = found.proposal.refused
    assert rule in said
    assert "broken = " not in found.proposal.text


TURN = f"<|turn|>one {WHAT}<|turn|>two {PLUM}"
STAYS = "which stays text: if they are conversations, a recipe with"
VERDICT = {"prompt": [ASKED], "completion": [SAYS]}
IN_MARKS = f"USER: {WHAT}\nASSISTANT: {PLUM}</s>"


@pytest.mark.parametrize(
    ("rows", "note", "is_said"),
    [
        ([{"messages": HI, "images": ["a.png"]}] * 3, 'not read: images (as ["a.png"])', True),
        ([{"messages": HI}, {"conversations": HI}] * 2, "not read: conversations (as ", True),
        (
            [{**VERDICT, "label": n % 2 == 0} for n in range(4)],
            'keep = [{ column = "label", equals = true }]',
            True,
        ),
        (
            [{"instruction": f"Do {n}.", "input": "nan", "output": "It is so."} for n in range(4)],
            "input: texts that may stand for nothing, and stay texts: nan (4): write null",
            True,
        ),
        ([{"text": TURN}] * 8, f"text: texts with <|turn|>, {STAYS}", True),
        (
            [{"text": f"Benutzer: {WHAT}\nAssistent: {PLUM}"}] * 8,
            f"text: texts with Assistent: and Benutzer:, {STAYS}",
            True,
        ),
        ([{"text": f"Titel: {WHAT}\n{PLUM}"}] * 8, "stays text", False),
        ([{"text": TURN}] + [{"text": WHAT + PLUM}] * 10, "stays text", False),
        (
            [{"data": [WHAT, PLUM]}] * 8,
            "# The texts of data take turns: the first one is a user's.",
            True,
        ),
        ([{"text": IN_MARKS}] * 8, "`control` has texts", False),
        (
            [{"text": f"Be kind.\n{IN_MARKS}"}] * 8,
            "# `control` has texts before the first mark",
            True,
        ),
    ],
)
def test_what_a_person_should_look_at_is_said(tmp_path, rows, note, is_said):
    found = looked(tmp_path / "mine", [{**row, "k": n} for n, row in enumerate(rows)])
    assert (note in "\n".join([*found.notes, *found.columns, found.proposal.text])) is is_said


def test_parts_of_a_dataset_that_are_not_there_are_noted(tmp_path):
    found = looked(tmp_path / "mine", [{"messages": HI}] * 3, "train-00000-of-00002.jsonl")
    assert "1 of the 2 files train-*-of-00002.jsonl are there" in "\n".join(found.notes)
