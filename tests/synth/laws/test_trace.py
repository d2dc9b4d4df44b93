"""Laws between the trace of a shard and its datasets."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import trace
from gristmill.synth.laws import trace as trace_laws
from gristmill.synth.read.trace import trace as trace_document
from tests.synth.damage import broken_laws

Change = Callable[[dict[str, list]], None]


def test_another_fraction_breaks_rule_and_share(kd_root: Path) -> None:
    assert broken_laws(kd_root, 0.01) == {"split rule", "split share"}


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


@pytest.mark.parametrize(
    ("valid", "allowed"),
    [(39, False), (40, True), (100, True), (160, True), (161, False)],
)
def test_a_split_may_deviate_by_six_standard_deviations_and_one(valid: int, allowed: bool) -> None:
    """Of 10,000 synth_ids at 0.01: 100 expected, 1 + 6 * sqrt(99) = 60.7 more or fewer."""
    counts = {"train": 10_000 - valid, "valid": valid}
    violations = list(trace_laws._fraction("t", counts, 0.01))
    assert (violations == []) is allowed


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
