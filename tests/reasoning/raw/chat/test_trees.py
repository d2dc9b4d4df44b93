"""Trees of messages to conversations."""

from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.reasoning.raw.chat.recipe import chat_of_table
from gristmill.reasoning.raw.chat.trees import Trees
from gristmill.reasoning.raw.flatten import Unfit

ROWS = [
    ("q1", None, "prompter", 0),
    ("a1", "q1", "assistant", 1),
    ("a2", "q1", "assistant", 0),
    ("q2", "a2", "prompter", 0),
    ("a3", "q2", "assistant", 0),
    ("q3", "a1", "prompter", 0),
    ("lost", "gone", "assistant", 0),
    ("c1", "c2", "prompter", 0),
    ("c2", "c1", "assistant", 0),
]


def trees(best: str | None, rows: list[tuple[Any, ...]], **more: Any) -> Trees:
    """The trees of messages: id, parent, role and rank."""
    tree = {"id": "i", "parent": "p"} | ({} if best is None else {"best": best})
    raw = {"schema": 1, "kind": "chat", "name": "mine", "tree": tree}
    found = Trees(chat_of_table(raw), **more)
    for number, (name, parent, role, rank) in enumerate(rows, 1):
        row = {"i": name, "p": parent, "role": role, "text": name, "r": rank}
        found.add(row, (0, number))
    return found


def spoken(found: Trees) -> list[tuple[int, str]]:
    """Row of the last message, and the texts."""
    return [
        (place[1], " ".join(item["content"] for item in items))
        for place, items in found.conversations()
    ]


def test_every_path_to_a_last_answer_is_a_conversation() -> None:
    assert spoken(trees(None, ROWS)) == [(2, "q1 a1"), (5, "q1 a2 q2 a3")]


def test_the_best_answer_is_taken_each_time() -> None:
    assert spoken(trees("r", ROWS)) == [(5, "q1 a2 q2 a3")]
    worse = [(n, p, role, {"a2": 2}.get(n, rank)) for n, p, role, rank in ROWS]
    assert spoken(trees("r", worse)) == [(2, "q1 a1")]
    unranked = [(n, p, role, None) for n, p, role, _ in ROWS]
    assert spoken(trees("r", unranked)) == [(2, "q1 a1")]


def test_messages_that_no_root_leads_to_are_named() -> None:
    assert trees(None, ROWS).lost() == [(0, 7), (0, 8), (0, 9)]


@pytest.mark.parametrize(
    ("row", "rule"), [((None, None, "x", 0), "its i is empty"), (ROWS[0], "that of a row before")]
)
def test_a_message_without_an_id_of_its_own_is_refused(row: tuple[Any, ...], rule: str) -> None:
    with pytest.raises(Unfit, match=rule):
        trees(None, [ROWS[0], row])


def test_trees_that_are_too_large_or_too_deep_end_the_build() -> None:
    with pytest.raises(GristmillError, match="divide the drop by trees"):
        trees(None, ROWS, most_bytes=2000)
    deep = [(str(at), None if at == 0 else str(at - 1), "prompter", 0) for at in range(1001)]
    with pytest.raises(GristmillError, match="more than 1,000 messages below one another"):
        spoken(trees(None, deep))
