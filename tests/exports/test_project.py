"""Rows of an artifact as Parquet: how files are cut and named, and what a failure leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.project import project, written
from gristmill.exports.table import Split, columns_of, lines, required

SCHEMA = required({"a": pa.int64()})


def numbers(*rows: list[int], **said: str) -> Split:
    """A split with these rows in its batches."""

    def batches() -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_pydict({"a": each}, SCHEMA) for each in rows)

    return Split(**{"name": "train", **said}, schema=lambda: SCHEMA, batches=batches)  # type: ignore[arg-type]


def found(out: Path) -> dict[str, list[int]]:
    """The rows of each file."""
    paths = sorted(out.rglob("*.parquet"))
    return {
        path.relative_to(out).as_posix(): pq.read_table(path)["a"].to_pylist() for path in paths
    }


def test_a_split_is_cut_into_files_and_partitions_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gristmill.exports.project._FILE_BYTES", 1)
    splits = [
        numbers([1, 2], [3], partition="x"),
        numbers([4], partition="y"),
        numbers([5], name="test", table="other"),
    ]
    files = written(splits, tmp_path)
    assert found(tmp_path) == {
        "data/other/test-00000-of-00001.parquet": [5],
        "data/train-00000-of-00003.parquet": [1, 2],
        "data/train-00001-of-00003.parquet": [3],
        "data/train-00002-of-00003.parquet": [4],
    }
    assert {each.file: rows for each, rows in files.items()} == {
        path: len(rows) for path, rows in found(tmp_path).items()
    }


def test_one_partition_has_files_of_its_own(tmp_path: Path) -> None:
    splits = [numbers([1], partition="x"), numbers([2], partition="y")]
    written(splits, tmp_path, "parquet/a", "y")
    assert found(tmp_path) == {"parquet/a/train-y-00000-of-00001.parquet": [2]}


def test_all_files_of_a_table_have_its_columns(tmp_path: Path) -> None:
    rows = {"train": {"a": 1, "b": None}, "test": {"a": None, "c": "x"}}
    splits = []
    for name, row in rows.items():
        (tmp_path / name).write_text(json.dumps(row) + "\n")
        splits.append(lines(tmp_path / name, [], name=name))
    written(splits, tmp_path / "out")
    read = {path.stem[:4]: pq.read_table(path) for path in (tmp_path / "out/data").iterdir()}
    assert read["trai"].to_pylist() == [{"a": 1, "b": None, "c": None}]
    assert read["test"].to_pylist() == [{"a": None, "b": None, "c": "x"}]
    assert read["test"].schema.types == read["trai"].schema.types == columns_of(splits).types
    assert columns_of(splits).types == [pa.int64(), pa.string(), pa.string()]


def test_a_column_with_two_types_is_named(tmp_path: Path) -> None:
    splits = []
    for name, row in {"train": {"a": 1}, "test": {"a": "x"}}.items():
        (tmp_path / name).write_text(json.dumps(row) + "\n")
        splits.append(lines(tmp_path / name, [], name=name))
    with pytest.raises(GristmillError, match=r"a column has another type in another split: .*a"):
        columns_of(splits)


def test_what_is_there_is_not_replaced_and_a_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(BadInput, match="give a folder that does not"):
        project(tmp_path, out)
    out.rmdir()

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [1]}, SCHEMA)
        raise BadInput(tmp_path, "is damaged")

    splits = [Split("train", lambda: SCHEMA, broken)]
    monkeypatch.setattr("gristmill.exports.project.splits_at", lambda _: splits)
    with pytest.raises(BadInput, match="is damaged"):
        project(tmp_path, out)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "rule"),
    [("llm.c", "no documents of tokens"), ("litdata", "tokens"), ("nanochat", "has no texts")],
)
def test_rows_that_a_format_does_not_hold_are_refused(
    to: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = [Split("train", lambda: SCHEMA, lambda: iter(()))]
    monkeypatch.setattr("gristmill.exports.project.splits_at", lambda _: splits)
    with pytest.raises(GristmillError, match=rule):
        project(tmp_path, tmp_path / "out", to)
    assert list(tmp_path.iterdir()) == []
