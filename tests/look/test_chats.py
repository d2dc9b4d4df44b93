"""The recipe that a look proposes for conversations."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gristmill.look.finding import look, write
from gristmill.look.report import lines
from gristmill.reasoning.raw.chat.drops import account, chat_of

HI = [{"role": "user", "content": "Hi there"}, {"role": "assistant", "content": "Hello to you."}]
SHARE = [{"from": "human", "value": "Hi there"}, {"from": "gpt", "value": "Hello to you."}]


def put(folder: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"messages": HI, "prompt_id": "p"}, {"messages": "messages"}),
        ({"conversations": SHARE, "id": "p"}, {"messages": "conversations"}),
        (
            {"messages": [HI[0], {**HI[1], "tool_calls": [{"name": "f"}]}]},
            {"messages": "messages", "tools": "drop"},
        ),
    ],
)
def test_conversations_get_a_recipe_that_reads_them(
    tmp_path: Path, row: dict[str, Any], expected: dict[str, str]
) -> None:
    drop = tmp_path / "mine"
    plain = {"messages": HI} if "tools" in expected else row
    put(drop, [{**row, "n": 0}, *({**plain, "n": number} for number in range(1, 9))])
    found = look(drop)
    table = tomllib.loads(found.proposal.text)
    assert {key: table[key] for key in expected} == expected
    assert table["kind"] == "chat"
    assert found.proposal.good == (8 if "tools" in expected else 9)
    assert f"gristmill drop --family chat --name mine {drop}" in "\n".join(lines(found))
    write(found)
    assert chat_of(drop).messages == expected["messages"]
    assert account(drop).taken == {"train": ["train.jsonl"]}


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
def test_a_column_of_ids_that_no_two_rows_share_is_proposed(
    tmp_path: Path, ids: dict[str, str], expected: str | None
) -> None:
    drop = tmp_path / "mine"
    rows = [{name: said.format(at) for name, said in ids.items()} for at in range(4)]
    put(drop, [{"messages": HI, **row} for row in rows])
    write(look(drop))
    assert tomllib.loads((drop / "corpus.toml").read_text()).get("id") == expected
    assert chat_of(drop).corpus.id == expected


def test_messages_of_trees_get_a_recipe(tmp_path: Path) -> None:
    drop = tmp_path / "mine"
    rows = [
        {"message_id": f"{at}{role}", "parent_id": parent, "text": f"text {at}", "role": role}
        for at in range(5)
        for role, parent in (("prompter", None), ("assistant", f"{at}prompter"))
    ]
    put(drop, [{**row, "rank": 0, "message_tree_id": row["message_id"][0]} for row in rows])
    write(look(drop))
    assert chat_of(drop).tree == {"id": "message_id", "parent": "parent_id", "best": "rank"}


def test_files_of_another_split_are_left_and_other_rows_get_no_such_recipe(tmp_path: Path) -> None:
    drop = tmp_path / "mine"
    put(drop, [{"messages": HI}] * 4)
    put(drop, [{"messages": HI}] * 5, "test.jsonl")
    write(look(drop))
    found = account(drop)
    assert found.taken == {"train": ["train.jsonl"]}
    assert found.left_out == {"test.jsonl": "`leave` names it"}
    other = tmp_path / "other"
    put(other, [{"question": "What is it?", "answer": "It is this."}] * 3)
    assert look(other).proposal.inbox == "reasoning"
    put(other, [{"messages": HI}] * 4, "more.jsonl")
    assert look(other).proposal.inbox == "reasoning"
