"""Laws of the files of a shard: present, readable, of equal boundaries."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.inbox import division
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import megatron, trace
from gristmill.synth.format.trace import trace as trace_document
from gristmill.synth.laws import HashBounds, kd_law, kd_laws
from tests.synth.conversations import as_json, conversation
from tests.synth.damage import broken_laws, train_tokens

Change = Callable[[dict[str, list]], None]


def test_a_built_shard_breaks_no_law(kd_root: Path) -> None:
    assert list(kd_laws(kd_root, "00", 0.3)) == []
    assert list(kd_laws(kd_root)) == []
    assert list(kd_law(Subject(kd_root, "00", config={"valid_fraction": 0.3}))) == []


def test_the_law_of_a_shard_takes_the_fraction_of_its_config(kd_root: Path) -> None:
    subject = Subject(kd_root, "00", config={"valid_fraction": 0.001})
    assert {violation.law for violation in kd_law(subject)} == {"split rule"}


def test_other_lengths_break_equal_boundaries(kd_copy: Path) -> None:
    path = kd_copy / "train/shard_00_span"
    lengths = train_tokens(kd_copy).lengths.copy()
    lengths[:2] += [1, -1]
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1")
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with megatron.IndexedWriter(path, "u1") as writer:
        writer.add(values, lengths)
    assert broken_laws(kd_copy) == {"equal boundaries"}


def test_a_wrong_dtype_breaks_dtypes(kd_copy: Path) -> None:
    path = kd_copy / "train/shard_00_span"
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1").astype("<i4")
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with megatron.IndexedWriter(path, "<i4") as writer:
        writer.add(values, train_tokens(kd_copy).lengths)
    assert broken_laws(kd_copy) == {"dtypes"}


@pytest.mark.parametrize(
    ("path", "law"),
    [
        ("train/shard_00_tokens.idx", "empty split"),
        ("train/shard_00_span.bin", "readable"),
        ("trace/trace_00.parquet", "trace"),
    ],
)
def test_a_missing_file_breaks_its_law(kd_copy: Path, path: str, law: str) -> None:
    (kd_copy / path).unlink()
    assert law in broken_laws(kd_copy)


def test_an_empty_folder_has_no_shard_and_no_trace(tmp_path: Path) -> None:
    assert broken_laws(tmp_path, None) == {"trace"}
    assert [v.law for v in kd_laws(tmp_path)] == ["shards"]


def test_each_file_of_a_split_without_tokens_is_a_violation(kd_copy: Path) -> None:
    (kd_copy / "valid/shard_00_tokens.idx").unlink()
    names = ["lossmask.bin", "lossmask.idx", "span.bin", "span.idx", "tokens.bin"]
    assert list(kd_laws(kd_copy, "00"))[:5] == [
        Violation("empty split", f"valid/shard_00_{name}", "there is no tokens index")
        for name in names
    ]


def test_a_missing_split_is_no_violation_but_for_its_trace(kd_copy: Path) -> None:
    shutil.rmtree(kd_copy / "valid")
    assert broken_laws(kd_copy) == {"trace"}


def test_another_fraction_breaks_rule_and_share(kd_root: Path) -> None:
    assert broken_laws(kd_root, 0.01) == {"split rule"}


def swap_ids(table: dict[str, list]) -> None:
    """Give one valid document the id of a train one."""
    at = {split: table["split"].index(split) for split in ("train", "valid")}
    table["synth_id"][at["valid"]] = table["synth_id"][at["train"]]


def lose_a_row(table: dict[str, list]) -> None:
    for column in table.values():
        column.pop()


def move_a_message(table: dict[str, list]) -> None:
    table["offsets"][3] = [x + (i == 2) for i, x in enumerate(table["offsets"][3])]


def move_the_end(table: dict[str, list]) -> None:
    table["offsets"][3] = [*table["offsets"][3][:-1], table["offsets"][3][-1] - 1]


def empty_offsets(table: dict[str, list]) -> None:
    table["offsets"][3] = []


def null_offset(table: dict[str, list]) -> None:
    table["offsets"][3] = [None, *table["offsets"][3][1:]]


def unknown_split(table: dict[str, list]) -> None:
    """Add a row of a third split: train and valid stay complete."""
    for name, column in table.items():
        column.append("test" if name == "split" else column[0])


def renumber(table: dict[str, list]) -> None:
    table["document"][0] += 1


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (swap_ids, "disjoint splits"),
        (lose_a_row, "trace"),
        (move_a_message, "trace"),
        (move_the_end, "trace"),
        (renumber, "trace"),
        (empty_offsets, "trace"),
        (null_offset, "trace"),
        (unknown_split, "trace"),
    ],
)
def test_a_wrong_trace_breaks_its_law(kd_copy: Path, change: Change, law: str) -> None:
    path = kd_copy / trace.path("00")
    table = pq.read_table(path).to_pydict()
    change(table)
    pq.write_table(pa.table(table, schema=trace.schema()), path)
    assert law in broken_laws(kd_copy)


@pytest.mark.parametrize("damage", ["cut", "pages", "columns", "nulls", "bytes"])
def test_a_damaged_trace_breaks_the_law_and_cannot_be_read(kd_copy: Path, damage: str) -> None:
    path = kd_copy / trace.path("00")
    table = pq.read_table(path)
    ids = table["synth_id"].to_pylist()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "pages":
        data = bytearray(path.read_bytes())
        data[4:900] = bytes(896)
        path.write_bytes(data)
    elif damage == "columns":
        pq.write_table(table.drop_columns(["offsets"]), path)
    elif damage == "nulls":
        pq.write_table(table.set_column(4, "synth_id", pa.array([None, *ids[1:]])), path)
    else:
        buffers = pa.array([b"\xff", *(i.encode() for i in ids[1:])], pa.binary()).buffers()
        column = pa.Array.from_buffers(pa.string(), len(ids), buffers)
        pq.write_table(table.set_column(4, "synth_id", column), path)
    assert broken_laws(kd_copy) == {"trace"}
    if damage in ("cut", "columns", "pages"):
        with pytest.raises(BadInput, match=r"trace_00\.parquet"):
            trace_document(kd_copy, "00", "train", 0)


@pytest.mark.parametrize("answers", [1, 60])
def test_answers_of_one_prompt_have_one_id_and_one_split(
    vocabulary: Path, tmp_path: Path, write_rows: Callable[..., Path], answers: int
) -> None:
    """Three of six prompts are valid by the rule at 0.1: with 60 answers each, 180 of 360 rows."""
    ids = ["p11", "p15", "p31", "p0", "p1", "p2"]
    limit = division.threshold(0.1)
    rows = [
        (name, as_json(conversation(f"question {name}", f"thought {n}", "an answer")))
        for name in ids
        for n in range(answers)
    ]
    out = tmp_path / "kd"
    build_kd_shard(write_rows(rows), out, KDConfig(vocabulary, 0.1))
    assert sum(division.is_valid(name, limit) for name in ids) == 3
    assert list(kd_laws(out, "07", 0.1)) == []


IDS = sorted((f"id_{number}" for number in range(50)), key=division.value)


@pytest.mark.parametrize("valid", [0, 1, 20, 50])
def test_a_threshold_divides_the_lowest_hashes_from_the_others(valid: int) -> None:
    bounds = HashBounds()
    bounds.add("valid", IDS[:valid])
    bounds.add("train", iter(IDS[valid:]))
    assert bounds.divide()


def test_an_id_in_both_splits_cannot_be_divided() -> None:
    bounds = HashBounds()
    bounds.add("valid", [IDS[0], IDS[20]])
    bounds.add("train", [IDS[30], IDS[20]])
    bounds.add("valid", [IDS[1]])
    bounds.add("train", [IDS[40]])
    assert not bounds.divide()


def test_only_a_fraction_between_the_bounds_divides_at_its_threshold() -> None:
    bounds = HashBounds()
    bounds.add("valid", ["memorization_82_52457"])  # 0.297650
    bounds.add("train", ["memorization_german_10_150696"])  # 0.356852
    assert [f for f in (0.2, 0.29765, 0.2977, 0.3, 0.3568, 0.357, 1) if bounds.divide_at(f)] == [
        0.2977,
        0.3,
        0.3568,
    ]


def test_the_threshold_itself_is_train() -> None:
    value = division.threshold(0.3)
    bounds = HashBounds()
    bounds.lowest_train = value
    assert bounds.divide_at(0.3)
    bounds.highest_valid = value
    assert not bounds.divide_at(0.3)
    assert not bounds.divide()
