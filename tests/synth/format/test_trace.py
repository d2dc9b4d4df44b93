"""Trace files: their row groups, and what is refused as a trace file."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import trace


def rows(begin: int, stop: int) -> pa.RecordBatch:
    """Trace rows of documents `begin` to `stop` - 1, with two messages each."""
    values = [
        {
            "split": "train",
            "document": number,
            "input": "synth_harmony_shard_00.parquet",
            "row": number + 1,
            "synth_id": f"id {number}",
            "language": None,
            "exercise": "math",
            "offsets": [0, 5, 9],
        }
        for number in range(begin, stop)
    ]
    return pa.RecordBatch.from_pylist(values, schema=trace.schema())


def write(file: Path, edges: list[int]) -> str:
    with trace.TraceWriter(file) as writer:
        for begin, stop in pairwise(edges):
            writer.add(rows(begin, stop))
        return writer.content_sha256()


@pytest.mark.parametrize(
    ("total", "groups"), [(9, [9]), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])]
)
def test_row_groups_do_not_depend_on_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, groups: list[int]
) -> None:
    monkeypatch.setattr(trace, "_ROW_GROUP", 10)
    digests = set()
    for name, edges in (
        ("one", [0, total]),
        ("many", [0, 4, 5, total]),
        ("rows", [*range(total + 1)]),
    ):
        file = tmp_path / name / "trace_00.parquet"
        digests.add(write(file, edges))
        parquet = pq.ParquetFile(file)
        sizes = [parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups)]
        assert sizes == groups
        assert parquet.read()["document"].to_pylist() == list(range(total))
    assert len(digests) == 1


def test_a_trace_without_rows_is_readable(tmp_path: Path) -> None:
    file = tmp_path / trace.path("00")
    write(file, [0])
    with trace.opened(file) as parquet:
        assert parquet.metadata.num_rows == 0


def test_a_parquet_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace_00.parquet"
    pq.write_table(pa.table({"split": ["train"]}), file)
    with pytest.raises(BadInput, match="does not have the columns of a trace"):
        trace.opened(file)
