"""Drops of conversations to shards: counts that add up, splits, caps, damage, and the page."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.corpora.raw.chat import messages
from gristmill.families import Subject
from gristmill.reasoning.builders.conversations import ConversationsSummary, normalize_conversations
from gristmill.reasoning.config import ChatConfig
from gristmill.reasoning.laws.texts import conversation_laws
from tests.paths import CHECKOUT

PAGE = (CHECKOUT / "docs/chat.md").read_text()
RECIPE = re.compile(r"`(\w+)/corpus\.toml`[^\n]*\n\n```toml\n(.*?)```.*?```json\n(.*?)```", re.S)
HEAD = 'schema = 1\nkind = "chat"\nname = "mine"\nmessages = "m"\n'


def talk(text: str, answer: str = "yes", **more: Any) -> dict[str, Any]:
    """A row with one turn."""
    turn = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
    return {"m": turn, **more}


def write(folder: Path, recipe: str, rows: list[Any], name: str = "a.jsonl") -> Path:
    """A drop `mine` with a file."""
    drop = folder / "mine"
    drop.mkdir(exist_ok=True)
    (drop / "corpus.toml").write_text(recipe)
    (drop / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return drop


def build(
    drop: Path, out: Path, number: int = 0, bad_rows: int = 0
) -> tuple[ConversationsSummary, list[dict[str, Any]]]:
    """One shard of a drop: its summary and its rows; its laws hold."""
    chat = messages.chat_of(drop)
    taken = messages.account(drop).taken
    files = {split: [drop / name for name in names] for split, names in taken.items()}
    config = ChatConfig(bad_rows=bad_rows, recipe=chat.table)
    key = f"{drop.name}__{number:02d}"
    made = normalize_conversations(drop, files, out, key, config)
    assert list(conversation_laws(Subject(out, None, []))) == []
    return made, pq.read_table(out / f"shard_{number:02d}.parquet").to_pylist()


def test_the_recipes_of_the_page_read_the_rows_that_it_shows(tmp_path):
    recipes = RECIPE.findall(PAGE)
    assert len(recipes) == 12
    for name, recipe, rows in recipes:
        drop = tmp_path / name
        drop.mkdir()
        (drop / "corpus.toml").write_text(recipe + "shards = 1\n" * (name == "synth_like"))
        (drop / "train_sft.jsonl").write_text(rows)
        made, found = build(drop, tmp_path / f"{name}_out")
        assert made.rejected == (name in ("synth_like", "thoughts_like"))
        assert not made.rejected_by
        texts = [each["content"] for each in json.loads(found[0]["messages_json"])["messages"]]
        assert texts[-1] in ("Hello.", "house"), name


def test_each_row_is_in_one_shard_and_the_counters_add_up(tmp_path):
    rows: list[Any] = []
    random = Random(3)
    for number in range(200):
        rows.append(talk(f"q{random.randrange(120)}", lang=random.choice(["en", "fr"]), n=number))
    for at in (7, 50):
        rows[at]["m"].pop()
    recipe = HEAD + 'shards = 3\nid = "n"\nkeep = [{ column = "lang", equals = "en" }]\n'
    recipe += "split = { validation = 0.3 }\ndedup = ['m.0.content']\n"
    drop = write(tmp_path, recipe, rows)
    made = [build(drop, tmp_path / str(at), at, bad_rows=2) for at in range(3)]
    ids = [row["synth_id"] for _, found in made for row in found]
    assert len(ids) == len(set(ids))
    assert sum(each.raw_rows for each, _ in made) == 200
    for number, (each, found) in enumerate(made):
        assert each.raw_rows == each.rows + each.rejected
        assert all(row["row"] % 3 == (number + 1) % 3 for row in found)
        assert each.validation == sum(row["split"] == "validation" for row in found) > 0
    # What is a double is decided over all shards.
    first: dict[str, str] = {}
    for row in rows:
        if row["lang"] == "en" and len(row["m"]) == 2:
            first.setdefault(row["m"][0]["content"], str(row["n"]))
    assert sorted(ids) == sorted(first.values())


def test_a_cap_holds_over_all_shards_and_is_drawn_by_hashes(tmp_path):
    rows = [talk(f"q{number}", n=str(number)) for number in range(60)]
    recipe = HEAD + 'shards = 2\nid = "n"\nsample = { cap = 10 }\n'
    drop = write(tmp_path, recipe, rows)
    made = [build(drop, tmp_path / str(at), at) for at in range(2)]
    kept = {row["synth_id"] for _, found in made for row in found}
    assert len(kept) == 10
    assert sum(each.left_out_by["cap"] for each, _ in made) == 50
    assert not (tmp_path / "0" / "shard_00.parquet.tmp").exists()
    drop = write(tmp_path, recipe, rows[::-1])
    again = [build(drop, tmp_path / f"again{at}", at) for at in range(2)]
    assert {row["synth_id"] for _, found in again for row in found} == kept


def test_files_say_their_split_and_a_conversation_has_an_id_by_its_text(tmp_path):
    recipe = HEAD + 'files = { train = "a*", validation = "b*" }\n'
    write(tmp_path, recipe, [talk("one"), talk("one")])
    drop = write(tmp_path, recipe, [talk("two")], "b.jsonl")
    made, found = build(drop, tmp_path / "out")
    assert [(row["split"], row["file"], row["row"]) for row in found] == [
        ("train", "a.jsonl", 1),
        ("train", "a.jsonl", 2),
        ("validation", "b.jsonl", 1),
    ]
    assert found[0]["synth_id"] == found[1]["synth_id"] != found[2]["synth_id"]
    assert (made.messages, made.thoughts, made.masked) == (6, 0, 0)


def test_damaged_rows_are_named_listed_and_bounded(tmp_path):
    rows = [talk("one"), {"m": [{"role": "bot", "content": "x"}]}, talk("two", "<think>")]
    drop = write(tmp_path, HEAD, rows)
    with pytest.raises(BadInput, match=r"2 records .* below \[chat.conversations\] in ") as refused:
        build(drop, tmp_path / "no")
    assert refused.value.row == 2
    made, found = build(drop, tmp_path / "out", bad_rows=2)
    assert (made.rows, dict(made.rejected_by)) == (1, {"role": 1, "thinking": 1})
    listed = [json.loads(line) for line in (tmp_path / "out/rejected.jsonl").open()]
    assert [(each["reason"], each["file"], each["row"]) for each in listed] == [
        ("role", "a.jsonl", 2),
        ("thinking", "a.jsonl", 3),
    ]
    assert [row["row"] for row in found] == [1]


def test_broken_conversations_are_refused_with_the_cure_or_left_out_and_counted(tmp_path):
    rows = [talk("one"), talk(""), {"m": [{"role": "user", "content": "x"}]}, {"m": []}]
    drop = write(tmp_path, HEAD, rows[:-1])
    cure = r'it is 0; broken = "drop" in corpus\.toml leaves such conversations out:'
    with pytest.raises(BadInput, match=cure) as refused:
        build(drop, tmp_path / "no")
    assert refused.value.row == 2
    assert refused.value.rule.count("broken =") == 1
    made, found = build(write(tmp_path, HEAD + 'broken = "drop"\n', rows), tmp_path / "out")
    assert [row["row"] for row in found] == [1]
    left = {"drop:question": 1, "drop:turns": 1, "drop:messages": 1}
    assert (dict(made.rejected_by), dict(made.left_out_by)) == ({}, left)
    listed = [json.loads(line) for line in (tmp_path / "out/rejected.jsonl").open()]
    assert [each["row"] for each in listed] == [2, 3, 4]


def test_rows_are_objects_and_columns_that_nothing_reads_are_counted(tmp_path):
    drop = write(tmp_path, HEAD, [talk("one"), 3])
    with pytest.raises(BadInput, match=r"is no JSON object .*it is 0; write an object a line, as "):
        build(drop, tmp_path / "no")
    rows = [talk("a", note=1), talk("b", dull=1), talk("c", dull=1, note=2), {"m": [], "rare": 1}]
    recipe = HEAD + 'broken = "drop"\nignore = ["dull"]\n'
    made, found = build(write(tmp_path, recipe, rows), tmp_path / "out")
    assert len(found) == 3
    assert made.unknown_keys == {"note": 2, "rare": 1}


def test_trees_are_counted_by_their_messages(tmp_path):
    tree = 'schema = 1\nkind = "chat"\nname = "mine"\ntree = { id = "i", parent = "p" }\n'
    rows = [
        {"i": "a", "p": None, "role": "prompter", "text": "q"},
        {"i": "b", "p": "a", "role": "assistant", "text": "x"},
        {"i": "c", "p": "a", "role": "assistant", "text": "y"},
        {"i": "d", "p": "gone", "role": "assistant", "text": "z"},
    ]
    made, found = build(write(tmp_path, tree, rows), tmp_path / "out")
    assert (made.raw_rows, made.held, made.from_trees, made.rows) == (4, 4, 2, 2)
    assert made.left_out_by == {"tree:parent": 1}
    assert [row["row"] for row in found] == [2, 3]


def test_a_shard_without_a_conversation_and_an_empty_file_are_refused(tmp_path):
    drop = write(tmp_path, HEAD + "shards = 4\n", [talk("one")])
    with pytest.raises(BadInput, match=r"give shard 03 no conversation: lower `shards`.*is 4"):
        build(drop, tmp_path / "out", 3)
    with pytest.raises(BadInput, match="holds no row"):
        build(write(tmp_path, HEAD, []), tmp_path / "none")
    pq.write_table(pa.table({"m": pa.array([], pa.string())}), drop / "b.parquet")
    made, _ = build(write(tmp_path, HEAD, [talk("one")]), tmp_path / "beside")
    assert (made.rows, made.raw_rows) == (1, 1)
    (drop / "b.parquet").unlink()
    blanks = [talk("one"), talk(" " * 100_001 + "x")]
    with pytest.raises(BadInput, match="more than 100,000 white space characters in a row"):
        build(write(tmp_path, HEAD, blanks), tmp_path / "blanks")


IDS = [talk("a", i="1"), talk("b", i="2"), talk("c", i="1"), talk("a", i="1"), talk("d", i=None)]


def test_an_id_that_comes_again_is_refused_with_the_place_of_the_first(tmp_path):
    drop = write(tmp_path, HEAD + 'id = "i"\n', [*IDS, talk("d")])
    made, found = build(drop, tmp_path / "out", bad_rows=2)
    assert made.rejected_by == {"id": 2} and made.rows == 4
    assert [row["row"] for row in found] == [1, 2, 5, 6]
    lines = [json.loads(line) for line in (tmp_path / "out/rejected.jsonl").open()]
    rules = [(each["reason"], each["row"], each["rule"]) for each in lines]
    first = "its i '1' is that of a.jsonl:1, "
    cure = ': leave `id` out of corpus.toml, or write dedup = ["i"], which keeps the first'
    assert rules == [
        ("id", 3, f"{first}with other messages{cure}"),
        ("id", 4, f"{first}and has the same messages{cure}"),
    ]
    with pytest.raises(BadInput, match=r"a\.jsonl:3: .*2 records are refused \(2 id\)"):
        build(drop, tmp_path / "fails")
    # Both cures.
    for more, rows in (("", [1, 2, 3, 4, 5]), ('id = "i"\ndedup = ["i"]\n', [1, 2, 5])):
        drop = write(tmp_path, HEAD + more, IDS)
        made, found = build(drop, tmp_path / f"out{len(rows)}")
        assert ([row["row"] for row in found], made.rejected_by) == (rows, {})


def test_an_id_of_a_refused_row_or_of_another_file_is_none_or_one(tmp_path):
    broken = {"m": talk("a")["m"][:1], "i": "1"}
    write(tmp_path, HEAD + 'id = "i"\n', [broken, talk("a", i="1")])
    drop = write(tmp_path, HEAD + 'id = "i"\n', [talk("b", i="2"), talk("c", i="1")], "b.jsonl")
    made, found = build(drop, tmp_path / "out", bad_rows=2)
    assert made.rejected_by == {"turns": 1, "id": 1} and len(found) == 2
    assert "that of a.jsonl:2" in (tmp_path / "out/rejected.jsonl").read_text()


def test_a_column_that_no_row_has_is_not_ignored_whichever_shard_has_it(tmp_path):
    rows = [talk("a", late={"x": 1}), talk("b")]
    for name, is_there in (("late", True), ("late.x", True), ("m[].mood", True), ("lat", False)):
        recipe = HEAD + f'shards = 2\nignore = ["{name}"]\n'
        drop = write(tmp_path, recipe, rows)
        for number in range(2):
            out = tmp_path / f"{name}_{number}"
            if is_there:
                build(drop, out, number)
                continue
            with pytest.raises(BadInput, match='ignore: no row has a column "lat"') as raised:
                build(drop, out, number)
            assert raised.value.file == str(drop / "corpus.toml")


def test_a_key_of_messages_that_is_ignored_is_not_counted_and_not_refused(tmp_path):
    row = talk("a")
    row["m"][0] |= {"mood": "so", "id": "1"}
    made, _ = build(write(tmp_path, HEAD + 'ignore = ["m[].mood"]\n', [row]), tmp_path / "out")
    assert made.ignored == {"id": 1}
    recipe = HEAD + 'unknown_keys = "refuse"\nignore = ["m[].mood", "m[].id"]\n'
    made, _ = build(write(tmp_path, recipe, [row]), tmp_path / "refused")
    assert made.ignored == {}
