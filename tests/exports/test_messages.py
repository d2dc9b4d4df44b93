"""Conversations as messages: whose thought and training is whose, and calls of tools."""

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from gristmill.exports.card import Part
from gristmill.exports.messages import Talks, messages_of, row
from gristmill.exports.project import project


def said(role: str, text: str, channel: str = "", **other: str) -> dict[str, Any]:
    own = {"channel": channel} if channel else {}
    return {"role": role, "content": [{"type": "text", "text": text}], **own, **other}


def test_harmony_becomes_turns_with_thoughts_calls_and_results():
    own = {"type": "system_content", "model_identity": "You are X."}
    asked = {"type": "developer_content", "instructions": "Be brief."}
    found = messages_of(
        [
            {"role": "system", "content": [own]},
            {"role": "developer", "content": [asked]},
            said("user", "How warm?"),
            said("assistant", "Ask.", "analysis"),
            said("assistant", '{"at": "x"}', "commentary", recipient="functions.warmth"),
            said("tool", "7", "commentary", name="functions.warmth"),
            said("assistant", "7 is cold.", "analysis"),
            said("assistant", "Cold.", "final"),
            said("assistant", "alone", "analysis"),
        ],
        [0, 0, 0, 1, 1, 0, 1, 1, 1],
    )
    call = {"type": "function", "function": {"name": "warmth", "arguments": '{"at": "x"}'}}
    assert found == [
        {"role": "system", "content": "Be brief.", "train": False},
        {"role": "user", "content": "How warm?", "train": False},
        {"role": "assistant", "content": "", "thinking": "Ask.", "train": True}
        | {"tool_calls": [call]},
        {"role": "tool", "content": "7", "name": "functions.warmth", "train": False},
        {"role": "assistant", "content": "Cold.", "thinking": "7 is cold.", "train": True},
        {"role": "assistant", "content": "", "thinking": "alone", "train": True},
    ]


@pytest.mark.parametrize(("codes", "is_trained"), [([0, 1, 2], True), ([0, 0, 2], False)])
def test_an_answer_is_trained_on_where_its_thought_is(codes, is_trained):
    talk = [said("user", "q"), said("assistant", "t", "analysis"), said("assistant", "a", "final")]
    assert [each["train"] for each in messages_of(talk, codes)] == [False, is_trained]


def test_a_developer_beside_a_system_message_stays_one():
    talk = [said("system", "s"), said("developer", "d"), said("user", "q")]
    roles = [each["role"] for each in messages_of(talk, [0, 0, 0])]
    assert roles == ["system", "developer", "user"]


@pytest.mark.parametrize("has_call", [False, True])
def test_tables_have_the_keys_of_messages_and_no_empty_split(has_call, tmp_path, monkeypatch):
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "a", **({"tool_calls": [call]} if has_call else {})}
    talk = row("id1", "mine", "mit", [{"role": "user", "content": "q"}, message])
    talks = [
        Talks("train", lambda: iter([talk, None]), "mit"),
        Talks("validation", lambda: iter([None])),
    ]
    monkeypatch.setattr("gristmill.exports.project.parts_at", lambda _: [Part(".", [], talks, {})])
    notes: list[str] = []
    monkeypatch.setattr("gristmill.exports.project.body", lambda *_: "")
    counts = project(tmp_path, tmp_path / "out", "messages", notes=notes)
    assert counts == {"train.jsonl": 1, "data/train-00000-of-00001.parquet": 1}
    (line,) = (tmp_path / "out/train.jsonl").read_text().splitlines()
    assert json.loads(line) == talk
    (read,) = pq.read_table(tmp_path / "out/data/train-00000-of-00001.parquet").to_pylist()
    if has_call:
        assert read["messages"][0].pop("tool_calls") is None
    assert read == talk
    info = json.loads((tmp_path / "out/dataset_info.json").read_bytes())
    assert info["train"]["formatting"] == ("openai" if has_call else "sharegpt")
    assert list(info) == ["train"]
    assert notes == ["2 records without a question or an answer are left out"]
