"""The account of the columns of a drop, by the first rows of its files and its own recipe."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.chat import messages
from gristmill.corpora.raw.heads import chat_columns, corpus_columns
from gristmill.inbox.listing import ColumnState
from gristmill.untrusted.files import REFUSE_LINKS

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


def rows(count: int = 4, **more: Any) -> list[dict[str, Any]]:
    return [{"q": f"How many are {n}?", "a": f"It is {n}.", **more} for n in range(count)]


def test_every_column_of_json_lines_and_tables_has_a_state(tmp_path):
    recipe = PLAIN + 'extras = ["kept"]\nkept = "b.c"\nignore = ["dull"]\n'
    recipe += 'keep = [{ column = "lang", in = ["en"] }]\nid = "key"\n'
    own = rows(b={"c": 1, "d": "so"}, lang="en", key="k", dull=1, other="x")
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


def test_the_names_that_a_build_counted_stand_beside_the_first_rows(tmp_path):
    made = drop(tmp_path, PLAIN, train=rows(2000) + rows(1, late="x"), test="q,a,n\n1,2,so\n")
    found = states(made, **{"unknown_keys/late": 1, "rejected_by/late2": 3})
    assert found["late"] == ("unread", "") and found["n"] == ("unread", 'as "so"')
    assert "late2" not in found and "late" not in states(made)


def test_files_of_a_split_are_looked_at_evenly_and_damaged_ones_say_nothing(tmp_path):
    made = drop(tmp_path, PLAIN, **{f"train-{n:02}": rows(2, **{f"n{n}": "x"}) for n in range(20)})
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
    made = drop(tmp_path, recipe, train=rows())
    with pytest.raises(BadInput) as raised:
        (messages.chat_of if "chat" in recipe else drops.corpus_of)(made)
    assert rule in str(raised.value)
