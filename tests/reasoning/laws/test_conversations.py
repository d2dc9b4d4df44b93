"""The laws of normalised conversations see each thing that breaks them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.families import Subject
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


def test_other_columns_damage_and_no_shard_are_found(tmp_path: Path) -> None:
    assert laws(tmp_path, [{"a": "b"}], pa.schema([("a", pa.string())])) == ["columns"]
    (tmp_path / "shard_00.parquet").write_bytes(b"PAR1")
    subject = Subject(tmp_path, None, [])
    assert [each.law for each in conversation_laws(subject)] == ["readable"]
    (tmp_path / "shard_00.parquet").unlink()
    assert [each.law for each in conversation_laws(subject)] == ["shards"]
