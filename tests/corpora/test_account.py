"""Each column has a state by its values: read, a fact of its row, ignored, or read by nothing."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.corpora.account import Head, chat_columns, corpus_columns, fact_of, states_of
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.chat import messages
from gristmill.inbox.listing import FACT, READ, UNREAD, ColumnState
from gristmill.untrusted.files import REFUSE_LINKS

READS = {"question": "question", "answer": "answer"}


def rows(count: int = 12, **columns: Any) -> list[dict[str, Any]]:
    """Rows with a question, an answer and other columns; a list has a value a row."""
    return [
        {
            "question": f"Which town had the {number}th market?",
            "answer": f"Town {number}",
            **{
                name: value[number % len(value)] if isinstance(value, list) else value
                for name, value in columns.items()
            },
        }
        for number in range(count)
    ]


def state(name: str, heads: list[Head], **given: Any) -> ColumnState:
    return {each.name: each for each in states_of(heads, READS, **given)}[name]


def of(values: Any, name: str = "x", split: str = "") -> ColumnState:
    return state(name, [Head(split, rows(**{name: values}))])


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        (["https://a.example/1", "https://a.example/2"], "address"),
        (["2024-01-02", "2024-01-03 10:00:00"], "time"),
        (["a1" * 16, "b2" * 16], "hash"),
        (["123e4567-e89b-12d3-a456-426614174000"], "hash"),
        (["MIT", "Apache-2.0"], "licence"),
        (["row-1", "row-2", "row-3"], "id"),
        ([7, 8, 9], "number of the row"),
        ([1700000000, 1700000500, 1700000100], "time"),
        (["one two", "three"], ""),
        (["row-1", "row-1", "row-3"], ""),
        (["12", "7", "1/2", "40%"], ""),  # results are no ids
        ([4, 1, 4], ""),
        ([0.5, 1.5, 2.5], ""),
        ([], ""),
    ],
)
def test_what_values_say_of_their_rows(values, fact):
    assert fact_of("column", values, []) == fact


def test_a_number_that_is_the_length_of_another_column_is_a_fact():
    made = [{"text": "so " * n, "n": 3 * n, "words": n} for n in (2, 5, 3)]
    for name in ("n", "words"):
        assert fact_of(name, [row[name] for row in made], made) == "length"
    made[1]["n"] = 2
    assert fact_of("n", [row["n"] for row in made], made) == ""


@pytest.mark.parametrize("form", ["x{}", "{}"])
def test_what_ends_another_text_in_most_rows_is_a_result_and_no_id(form):
    values = [form.format(n) if form != "{}" else n for n in range(3, 9)]
    made = [{"text": f"So it is {value}.", "result": value} for value in values]
    assert fact_of("result", values, made) == ""
    apart = [{"text": "So it is.", "result": value} for value in values]
    assert fact_of("result", values, apart) in ("id", "number of the row")


def test_the_numbers_of_rows_begin_again_in_each_file():
    heads = [Head(split, rows(n=[*range(100, 112)])) for split in ("train", "test")]
    assert state("n", heads) == ColumnState("n", FACT, "number of the row")
    # A file of two rows says nothing of its own; both together show an id.
    few = [Head("", rows(2, key=["a1", "a2"])), Head("", rows(2, key=["a3", "a4"]))]
    assert state("key", few).state == FACT
    mixed = [Head("", rows(key=[f"k{n}" for n in range(12)])), Head("", rows(key="k1"))]
    assert state("key", mixed).state == UNREAD


def test_a_column_that_is_read_in_part_has_a_state_for_each_place():
    made = [{"doc": {"text": f"A story, {n}.", "kind": "x"}, "seen": {"b": [n]}} for n in range(9)]
    found = states_of([Head("", made)], {"doc": "question", "doc.text": "question"})
    assert [(each.name, each.state) for each in found] == [
        ("doc.text", READ),
        ("doc.kind", UNREAD),
        ("seen", UNREAD),
    ]
    listed = [{"talk": [{"text": "A"}, {"text": "B"}]}]
    assert states_of([Head("", listed)], {"talk": "answer", "talk.1.text": "answer"}) == [
        ColumnState("talk", READ, "answer")
    ]


def test_an_example_of_a_few_values_names_each_and_is_cut():
    assert of(["b", "a", "c"]).what == 'as "b", "a", "c"'
    assert (
        of("so\n it " * 40).what
        == 'as "so it so it so it so it so it so it so i… and 199 more characters"'
    )
    assert of({"a": [1]}).what == 'as {"a": [1]}'


@pytest.mark.parametrize(
    ("values", "said", "test"),
    [
        ([0, 1], "0 (6), 1 (6)", "equals = 1"),
        ([0.0, 1.0], "0 (6), 1 (6)", "equals = 1.0"),
        (["0", "1", "1"], "0 (4), 1 (8)", 'equals = "1"'),
        (["no", "yes"], "no (6), yes (6)", 'equals = "yes"'),
        ([False, True], "false (6), true (6)", "equals = true"),
        (["False", "True"], "false (6), true (6)", 'equals = "True"'),
        (
            ["Incorrect", "Correct", "correct"],
            "incorrect (4), correct (8)",
            'in = ["Correct", "correct"]',
        ),
        (["bad", "good"], "bad (6), good (6)", 'equals = "good"'),
    ],
)
def test_two_verdicts_are_named_with_the_rule_that_takes_the_right_rows(values, said, test):
    found = of(values, "of me")
    assert (found.state, found.values, found.is_split) == (UNREAD, said, False)
    assert found.keep == f'keep = [{{ column = "of me", {test} }}]'


@pytest.mark.parametrize(
    "values",
    [
        [1],
        ["yes"],
        [0, 1, 2],
        ["no", "yes", "?"],
        [0, [1]],
        ["no", "true"],
        [float("nan"), 1.0],
        [{}, 1],
    ],
)
def test_other_values_are_no_verdict(values):
    assert of(values).keep == ""


@pytest.mark.parametrize(
    ("name", "values", "said", "test"),
    [
        ("x", ["train", "test"], "train (6), test (6)", 'equals = "train"'),
        (
            "fold",
            ["Dev", "Training", "val"],
            "training (4), dev (4), val (4)",
            'equals = "Training"',
        ),
        ("is_test", [True, False, False], "false (8), true (4)", "equals = false"),
        ("isTrain", [1, 0], "0 (6), 1 (6)", "equals = 1"),
        ("for_validation", ["true", "false"], "false (6), true (6)", 'equals = "false"'),
        ("in_gsm8k_train", [True, False], "false (6), true (6)", "equals = true"),
        ("split", [1, 1, 0], "0 (4), 1 (8)", "equals = 1"),
        ("part", ["train", "held-out", "eval_hard"], None, 'equals = "train"'),
    ],
)
def test_a_column_that_names_splits_is_named_with_the_rule_that_takes_train(
    name, values, said, test
):
    found = of(values, name)
    assert (said is None or found.values == said) and found.is_split
    assert found.keep == f'keep = [{{ column = "{name}", {test} }}]'


def test_rows_that_name_the_split_of_their_own_file_are_not_mixed():
    apart = [Head("train", rows(set="train")), Head("test", rows(set="test"))]
    assert state("set", apart).keep == ""
    assert of("train").keep == ""
    wrong = [Head("train", rows(set="test"))]
    assert state("set", wrong).keep == 'keep = [{ column = "set", equals = "test" }]'
    assert of(["train", "other"]).keep == ""


def test_what_is_read_or_ignored_makes_no_rule():
    heads = [Head("", rows(ok=[0, 1]))]
    assert state("ok", heads, ignored=["ok"]).keep == ""
    assert {e.name: e.keep for e in states_of(heads, {**READS, "ok": "keep"})}["ok"] == ""


PLAIN = 'schema = 1\nname = "mine"\nquestion = "q"\nanswer = "a"\n'
CHAT = 'schema = 1\nkind = "chat"\nname = "mine"\nmessages = "m"\n'


def drop(folder: Path, recipe: str, **files: Any) -> Path:
    """A drop with a recipe, and a file of each name: rows of JSON lines, or its text."""
    made = folder / "mine"
    made.mkdir()
    (made / "corpus.toml").write_text(recipe)
    for name, rows in files.items():
        ending, text = (".csv", rows) if isinstance(rows, str) else (".jsonl", None)
        (made / f"{name}{ending}").write_text(text or "".join(json.dumps(r) + "\n" for r in rows))
    return made


def states(made: Path, **counts: int) -> dict[str, tuple[str, str]]:
    """State and what is said of each column of a drop."""
    of_chat = "kind" in (made / "corpus.toml").read_text()
    module, columns = (messages, chat_columns) if of_chat else (drops, corpus_columns)
    account = module.account(made)
    return said(columns(made, REFUSE_LINKS, account, counts))


def said(found: list[ColumnState]) -> dict[str, tuple[str, str]]:
    return {each.name: (each.state, each.what) for each in found}


def asked(count: int = 4, **more: Any) -> list[dict[str, Any]]:
    return [{"q": f"How many are {n}?", "a": f"It is {n}.", **more} for n in range(count)]


def test_every_column_of_json_lines_and_tables_has_a_state(tmp_path):
    recipe = PLAIN + 'extras = ["kept"]\nkept = "b.c"\nignore = ["dull"]\n'
    recipe += 'keep = [{ column = "lang", in = ["en"] }]\nid = "key"\n'
    own = asked(b={"c": 1, "d": "so"}, lang="en", key="k", dull=1, other="x")
    assert states(drop(tmp_path, recipe, train=own)) == {
        "q": ("read", "question"),
        "a": ("read", "answer"),
        "b.c": ("read", "kept"),
        "b.d": ("unread", 'as "so"'),
        "lang": ("read", "keep"),
        "key": ("read", "id"),
        "dull": ("ignored", ""),
        "other": ("unread", 'as "x"'),
    }


def test_the_names_that_a_build_counted_stand_beside_the_first_asked(tmp_path):
    made = drop(tmp_path, PLAIN, train=asked(2000) + asked(1, late="x"), test="q,a,n\n1,2,so\n")
    found = states(made, **{"unknown_keys/late": 1, "rejected_by/late2": 3})
    assert found["late"] == ("unread", "") and found["n"] == ("unread", 'as "so"')
    assert "late2" not in found and "late" not in states(made)


def test_files_of_a_split_are_looked_at_evenly_and_damaged_ones_say_nothing(tmp_path):
    made = drop(tmp_path, PLAIN, **{f"train-{n:02}": asked(2, **{f"n{n}": "x"}) for n in range(20)})
    (made / "train-19.jsonl").write_text("{")
    found = states(made)
    assert {"n0", "n2", "n16"} <= found.keys() and "n1" not in found and "n19" not in found
    assert found["q"] == ("read", "question")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    made = drop(tmp_path, PLAIN)
    count = 3000
    columns = {
        "q": [f"How many are {n}?" for n in range(count)],
        "a": ["yes"] * count,
        "picture": pa.array([b"\xff\x00"] * count, pa.binary()),
        "ok": [n % 2 == 0 for n in range(count)],
        "late": [None] * 2100 + ["x"] * 900,
    }
    pq.write_table(pa.table(columns), made / "train.parquet")
    return made


def test_the_columns_of_parquet_are_those_of_its_schema_and_bytes_are_not_decoded(table):
    found = states(table, **{"unknown_keys/picture": 3000, "unknown_keys/late": 3000})
    assert found == {
        "q": ("read", "question"),
        "a": ("read", "answer"),
        "picture": ("unread", ""),
        "ok": ("unread", "as true, false"),
        "late": ("unread", ""),
    }


def test_a_column_that_is_there_twice_has_no_value(tmp_path):
    made, words = drop(tmp_path, PLAIN), pa.array(["one", "two"])
    both = pa.Table.from_arrays([words, words, words, words], names=["q", "a", "x", "x"])
    pq.write_table(both, made / "train.parquet")
    assert states(made, **{"unknown_keys/x": 2}) == {
        "q": ("read", "question"),
        "a": ("read", "answer"),
        "x": ("unread", ""),
    }


def test_parquet_that_is_damaged_or_no_parquet_says_nothing(table):
    account = drops.account(table)
    octets = (table / "train.parquet").read_bytes()
    for text in (
        b"PAR1",
        b"none",
        octets[: len(octets) // 2],
        b"PAR1" + b"\0" * 99 + octets[-300:],
    ):
        (table / "train.parquet").write_bytes(text)
        assert corpus_columns(table, REFUSE_LINKS, account) == []


def test_conversations_have_states_for_columns_and_for_keys_of_messages(tmp_path):
    turn = [
        {"role": "user", "content": "How?", "id": "m1", "mood": "so"},
        {"role": "assistant", "content": "So.", "id": "m2", "w": 1, "tool_calls": None},
    ]
    recipe = CHAT + 'keys = { weight = "w" }\nsystem = "s"\nignore = ["messages[].x", "dull"]\n'
    recipe = recipe.replace("messages[].x", "m[].mood")
    own = [{"m": turn, "s": "Be kind.", "lang": "en", "dull": 1, "tools": None}] * 3
    assert states(drop(tmp_path, recipe, train=own)) == {
        "m": ("read", "messages"),
        "s": ("read", "system"),
        "lang": ("unread", 'as "en"'),
        "dull": ("ignored", ""),
        "tools": ("read", "tools"),
        "m[].role": ("read", "messages"),
        "m[].content": ("read", "messages"),
        "m[].id": ("unread", 'as "m1", "m2"'),
        "m[].mood": ("ignored", ""),
        "m[].w": ("read", "keys.weight"),
    }


@pytest.mark.parametrize(
    ("recipe", "rule"),
    [
        (PLAIN + 'ignore = "x"\n', 'ignore = "x": must be a list of texts'),
        (PLAIN + 'ignore = ["x", "x"]\n', "must be up to 1,000 names of columns, each once"),
        (PLAIN + 'ignore = ["q"]\n', '"q" is read, by question: leave it out of one of'),
        (
            PLAIN + 'keep = [{ column = "k", present = true }]\nignore = ["k"]\n',
            '"k" is read, by keep',
        ),
        (CHAT + 'ignore = ["m"]\n', 'ignore: "m" is read, by messages'),
        (CHAT + 'system = "{s} x"\nignore = ["s"]\n', 'ignore: "s" is read, by system'),
        (CHAT + "ignore = [1]\n", "must be a list of texts"),
    ],
)
def test_a_column_that_is_read_or_named_twice_is_not_ignored(tmp_path, recipe, rule):
    made = drop(tmp_path, recipe, train=asked())
    with pytest.raises(BadInput) as raised:
        (messages.chat_of if "chat" in recipe else drops.corpus_of)(made)
    assert rule in str(raised.value)
