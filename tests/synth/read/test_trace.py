"""One document back to its row."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format.trace import Trace, TraceWriter, path, trace
from tests.synth.format.test_trace import rows, write


def write_splits(file: Path, documents: list[tuple[str, int]]) -> None:
    """Writes a trace file with a row of each (split, document)."""
    batch = rows(0, len(documents))
    splits, numbers = zip(*documents, strict=True) if documents else ((), ())
    batch = batch.set_column(0, batch.schema.field(0), pa.array(splits, pa.string()))
    batch = batch.set_column(1, batch.schema.field(1), pa.array(numbers, pa.int64()))
    with TraceWriter(file) as writer:
        writer.add(batch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset whose trace has three row groups of 10, 10 and 5 documents."""
    monkeypatch.setattr("gristmill.synth.format.trace._ROW_GROUP", 10)
    write(tmp_path / path("03"), [0, 25])
    return tmp_path


@pytest.mark.parametrize("document", [0, 9, 10, 24])
def test_a_document_leads_to_its_row_in_every_row_group(folder: Path, document: int) -> None:
    traced = trace(folder, "03", "train", document)
    assert traced == Trace(
        input="synth_harmony_shard_00.parquet",
        row=document + 1,
        synth_id=f"id {document}",
        language=None,
        exercise="math",
        offsets=[0, 5, 9],
    )
    assert traced.message_bounds() == [(0, 5), (5, 9)]


@pytest.mark.parametrize(("split", "document"), [("train", 25), ("train", -1), ("valid", 0)])
def test_a_document_that_does_not_exist_is_refused(folder: Path, split: str, document: int) -> None:
    with pytest.raises(BadInput, match=f"no document {document} in {split} of shard 03"):
        trace(folder, "03", split, document)


def test_a_shard_without_trace_file_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"trace_00\.parquet: shard 00 has no trace file"):
        trace(folder, "00", "train", 0)


@pytest.mark.parametrize("every", [2, 7, 1000])
def test_few_row_groups_are_read_for_a_document_of_a_large_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Every seventh row is valid, and there are row groups without a valid one."""
    monkeypatch.setattr("gristmill.synth.format.trace._ROW_GROUP", 5)
    splits = ["valid" if row % every == every - 1 else "train" for row in range(2500)]
    numbers = [splits[:row].count(split) for row, split in enumerate(splits)]
    write_splits(tmp_path / path("03"), list(zip(splits, numbers, strict=True)))
    read: list[int] = []
    real, batches = pq.ParquetFile.read_row_group, pq.ParquetFile.iter_batches

    def whole(file: pq.ParquetFile, group: int, columns: list[str] | None = None) -> pa.Table:
        read.append(file.metadata.row_group(group).num_rows)
        return real(file, group, columns)

    def first(file: pq.ParquetFile, size: int, **options: Any) -> Iterator[pa.RecordBatch]:
        read.append(size)
        return batches(file, size, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", whole)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", first)
    for row in (0, 1, 4, 5, 6, 999, 1000, 2499):
        read.clear()
        assert trace(tmp_path, "03", splits[row], numbers[row]).row == row + 1
        assert sum(read) <= 2 * 5 + 10  # the row group twice, and the first rows of ten others
    for split in ("train", "valid"):
        with pytest.raises(BadInput, match="no document"):
            trace(tmp_path, "03", split, splits.count(split))


def test_a_trace_without_rows_has_no_document(tmp_path: Path) -> None:
    write_splits(tmp_path / path("03"), [])
    with pytest.raises(BadInput, match="no document 0 in train of shard 03"):
        trace(tmp_path, "03", "train", 0)
