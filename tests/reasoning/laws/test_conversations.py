"""The laws of normalised conversations see each thing that breaks them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.corpora.raw.chat.recipe import KEPT
from gristmill.families import Subject
from gristmill.inbox import division
from gristmill.reasoning.format import conversations as form
from gristmill.reasoning.laws.conversations import conversation_laws

USER = '{"role":"user","content":"q"}'
THOUGHT = '{"role":"assistant","content":"t","channel":"analysis"}'
FINAL = '{"role":"assistant","content":"a","channel":"final"}'


def row(*messages: str, **changed: Any) -> dict[str, Any]:
    """A row with these messages."""
    text = '{"messages":[' + ",".join(messages) + "]}"
    good = {"messages_json": text, "synth_id": "i", "spans": "012", "split": "train"}
    return {**good, "file": "a", "row": 1, **changed}


def laws(folder: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> list[str]:
    """The laws that rows break."""
    table = pa.Table.from_pylist(rows, schema or form.schema())
    pq.write_table(table, folder / "shard_00.parquet")
    return [each.law for each in conversation_laws(Subject(folder, None, []))]


GOOD = row(USER, THOUGHT, FINAL)


def test_good_rows_break_nothing(tmp_path: Path) -> None:
    masked = row(USER, THOUGHT, FINAL, spans="000", split="validation")
    assert laws(tmp_path, [GOOD, masked, row(USER, FINAL, spans="22")]) == []


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (row(USER, THOUGHT, FINAL, synth_id=" "), "no nulls"),
        (row(USER, THOUGHT, FINAL, file=None), "no nulls"),
        (row(USER, THOUGHT, FINAL, row=None), "no nulls"),
        (row(USER, THOUGHT, FINAL, messages_json=None), "no nulls"),
        (row(USER, THOUGHT, FINAL, split="test"), "split"),
        (row(USER, THOUGHT, FINAL, spans="01"), "spans"),
        (row(USER, THOUGHT, FINAL, spans="022"), "spans"),
        (row(USER, FINAL, FINAL, spans="022"), "turns"),
        (row(THOUGHT, FINAL, spans="12"), "turns"),
        (row(USER, THOUGHT, spans="01"), "turns"),
        (row(USER, FINAL.replace('"channel":"final"', '"x":1'), spans="02"), "messages"),
        (row(USER.replace("user", "tool"), FINAL, spans="02"), "messages"),
        (row(USER, FINAL, messages_json="{", spans="02"), "messages"),
    ],
)
def test_a_broken_row_is_found(tmp_path: Path, broken: dict[str, Any], law: str) -> None:
    assert laws(tmp_path, [GOOD, broken]) == [law]


def test_columns_of_synth_may_be_null_and_its_ids_say_the_split(tmp_path: Path) -> None:
    kept = [{**GOOD, "language": None, "exercise": "x"}]
    assert laws(tmp_path, kept, form.schema(KEPT)) == []
    assert laws(tmp_path, [GOOD], form.schema(KEPT[:1])) == ["columns"]
    valid, train = (row(USER, FINAL, spans="02", synth_id=each) for each in ("id4", "id0"))
    assert division.value("id4") < division.threshold(0.3) < division.value("id0")
    for rows, broken in (([train, {**valid, "split": "validation"}], 0), ([valid, train], 1)):
        laws(tmp_path, rows)
        table = {"recipe": "synth", "split": {"validation": 0.3}}
        for said, expected in (
            (table, broken),
            ({**table, "split": {}}, 1 - broken),
            ({"recipe": "synth", "files": {"train": "*"}}, 0),
            ({"split": {"validation": 0.3}}, 0),
        ):
            subject = Subject(tmp_path, config={"recipe": json.dumps(said)})
            found = [each.law for each in conversation_laws(subject)]
            assert found == ["split rule"] * expected, (said, broken)


def test_other_columns_damage_and_no_shard_are_found(tmp_path: Path) -> None:
    assert laws(tmp_path, [{"a": "b"}], pa.schema([("a", pa.string())])) == ["columns"]
    (tmp_path / "shard_00.parquet").write_bytes(b"PAR1")
    subject = Subject(tmp_path, None, [])
    assert [each.law for each in conversation_laws(subject)] == ["readable"]
    (tmp_path / "shard_00.parquet").unlink()
    assert [each.law for each in conversation_laws(subject)] == ["shards"]
