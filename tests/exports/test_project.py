"""Rows of an artifact as Parquet: how files are cut and named, and what a failure leaves."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.card import Part
from gristmill.exports.project import (
    chunks,
    project,
    text_files,
    token_files,
    token_streams,
    written,
)
from gristmill.exports.table import Split, columns_of, lines, required
from tests.exports.documents import END, split, texts

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


def test_a_split_is_cut_into_files_and_partitions_share_them(tmp_path, monkeypatch):
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


def test_one_partition_has_its_own_files_and_llama_3_another_header(tmp_path):
    splits = [numbers([1], partition="x"), numbers([2], partition="y")]
    written(splits, tmp_path, "parquet/a", "y")
    assert found(tmp_path) == {"parquet/a/train-y-00000-of-00001.parquet": [2]}
    (tmp_path := tmp_path / "next").mkdir()
    assert [*files_of([[[1 << 16, END]]], tmp_path, 9, 1 << 17).values()] == [[END, 1 << 16]]
    (path,) = tmp_path.iterdir()
    assert np.fromfile(path, "<i4", 3).tolist() == [20240801, 7, 2]
    (tmp_path := tmp_path / "next").mkdir()
    for name, documents in (("a", BATCHES), ("b", BATCHES), ("c", [[[4, END]]])):
        chunks(name, [split(documents)], tmp_path, 9)
    one, same, other = ((tmp_path / name / "index.json").read_bytes() for name in "abc")
    assert one == same
    assert json.loads(one)["updated_at"] != json.loads(other)["updated_at"]


def test_a_column_with_two_types_is_named_and_all_files_have_the_columns(tmp_path):
    splits = []
    for name, row in {"train": {"a": 1}, "test": {"a": "x"}}.items():
        (tmp_path / name).write_text(json.dumps(row) + "\n")
        splits.append(lines(tmp_path / name, [], name=name))
    with pytest.raises(GristmillError, match=r"a column has another type in another split: .*a"):
        columns_of(splits)
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


def test_what_is_there_is_not_replaced_and_a_failure_leaves_nothing(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(BadInput, match="give a folder that does not"):
        project(tmp_path, out)
    out.rmdir()

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [1]}, SCHEMA)
        raise BadInput(tmp_path, "is damaged")

    parts = [Part(".", [Split("train", lambda: SCHEMA, broken)], [], {})]
    monkeypatch.setattr("gristmill.exports.project.parts_at", lambda _: parts)
    with pytest.raises(BadInput, match="is damaged"):
        project(tmp_path, out)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["llm.c", "datatrove", "nanochat", "disk", "messages", "other"])
def test_a_form_that_rows_cannot_become_is_refused_with_the_others(to, tmp_path, monkeypatch):
    parts = [Part(".", [Split("train", lambda: SCHEMA, lambda: iter(()))], [], {})]
    monkeypatch.setattr("gristmill.exports.project.parts_at", lambda _: parts)
    with pytest.raises(GristmillError, match=f"cannot become {to}: give --to parquet$"):
        project(tmp_path, tmp_path / "out", to)
    assert list(tmp_path.iterdir()) == []


def files_of(
    batches: Sequence[Sequence[list[int]]], out: Path, tokens: int, ids: int = END + 1
) -> dict[str, list[int]]:
    """The tokens of the files that are written of such documents."""
    counts = token_files("val", [split(batches, ids=ids)], out, tokens)
    dtype = "<u2" if ids <= 1 << 16 else "<u4"
    read = {path.name: np.fromfile(path, dtype, offset=1024).tolist() for path in out.iterdir()}
    assert counts == {name: len(tokens) for name, tokens in read.items()}
    return dict(sorted(read.items()))


@pytest.mark.parametrize(
    ("tokens", "files"),
    [
        (1, [[END, 1, 2], [END], [END, 3]]),
        (3, [[END, 1, 2], [END, END, 3]]),
        (4, [[END, 1, 2, END], [END, 3]]),
        (5, [[END, 1, 2, END, END, 3]]),
        (99, [[END, 1, 2, END, END, 3]]),
    ],
)
def test_a_file_ends_with_a_whole_document(tokens, files, tmp_path):
    batches = [[[1, 2, END], [END]], [], [[3, END]]]
    found = files_of(batches, tmp_path, tokens)
    assert list(found.values()) == files
    assert list(found) == [f"tokens_val_{number:06d}.bin" for number in range(len(files))]


@pytest.mark.parametrize(("ids", "dtype"), [(END + 1, "<u2"), (1 << 17, "<u4")])
def test_a_stream_has_the_ends_of_its_documents(ids, dtype, tmp_path):
    batches = [[[1, 2, END], [END]], [], [[3, END]]]
    counts = token_streams("train", [split(batches, ids=ids)], tmp_path, 4)
    names = [f"train/{number:05d}_tokens.ds" for number in range(2)]
    assert counts == dict(zip(names, (4, 2), strict=True))
    for name, tokens, ends in zip(names, ([1, 2, END, END], [3, END]), ([3, 4], [2]), strict=True):
        assert np.fromfile(tmp_path / name, dtype).tolist() == tokens
        assert np.fromfile(tmp_path / f"{name}.index", "<u8").tolist() == ends
        said = f"gristmill|{dtype[-1]}\n{len(tokens)}\n{len(tokens)} tokens"
        assert (tmp_path / f"{name}.metadata").read_text() == said


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        *(([1], "without its separator"), ([], "without")),
        *(([END + 1, END], "outside of 50257 ids"), ([-1], "outside")),
    ],
)
def test_other_documents_are_refused(document, rule, tmp_path):
    with pytest.raises(GristmillError, match=rule):
        files_of([[[1, END]], [document]], tmp_path, 1)


BATCHES = [[[1, 2, END], [END]], [], [[3, END]]]


@pytest.mark.parametrize(
    ("most", "files"),
    [(1, [[[1, 2, END]], [[END]], [[3, END]]]), (4, [[[1, 2, END], [END]], [[3, END]]])],
)
def test_a_chunk_holds_whole_documents(most, files, tmp_path):
    counts = chunks("train", [split(BATCHES)], tmp_path, most)
    index = json.loads((tmp_path / "train/index.json").read_bytes())
    assert [each["filename"] for each in index["chunks"]] == [
        f"chunk-0-{number}.bin" for number in range(len(files))
    ]
    for said, documents in zip(index["chunks"], files, strict=True):
        data = (tmp_path / "train" / said["filename"]).read_bytes()
        (count,) = np.frombuffer(data, "<u4", 1)
        offsets = np.frombuffer(data, "<u4", count + 1, 4)
        found = [np.frombuffer(data[begin:end], "<i4").tolist() for begin, end in pairwise(offsets)]
        assert (found, offsets[0], offsets[-1]) == (documents, 4 * (count + 2), len(data))
        dim = sum(map(len, documents))
        own = {"chunk_size": count, "chunk_bytes": len(data), "dim": dim}
        assert said == {**own, "filename": said["filename"]}
        assert counts.pop(f"train/chunk-0-{files.index(documents)}.bin") == dim
    assert not counts


TRAIN = texts("train", ["a", "b"], ["c"])


def read(out: Path) -> list[list[str]]:
    """The texts of each file, in the order of their names."""
    return [pq.read_table(path)["text"].to_pylist() for path in sorted(out.iterdir())]


@pytest.mark.parametrize(
    ("others", "last"),
    [
        ([texts("test", ["t"])], ["t"]),
        ([texts("test", ["t"]), texts("validation", ["v"], ["w"])], ["v", "w"]),
    ],
)
def test_the_last_file_is_validation_or_test(others, last, tmp_path):
    counts = text_files([*others, TRAIN], tmp_path)
    assert read(tmp_path) == [["a", "b", "c"], last]
    assert counts == {"shard_00000.parquet": 3, "shard_00001.parquet": len(last)}


def test_files_of_train_end_and_row_groups_are_small(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.exports.project._FILE_BYTES", 1)
    monkeypatch.setattr("gristmill.exports.project._GROUP", 1)
    text_files([TRAIN, texts("validation", ["v", "w"])], tmp_path)
    assert read(tmp_path) == [["a"], ["b"], ["c"], ["v", "w"]]
    assert pq.ParquetFile(tmp_path / "shard_00003.parquet").num_row_groups == 2


@pytest.mark.parametrize(
    ("splits", "of"), [([TRAIN], "validation"), ([texts("test", ["t"])], "train")]
)
def test_texts_of_one_part_alone_are_refused(splits, of, tmp_path):
    with pytest.raises(GristmillError, match=f"no text of {of}: nanochat trains"):
        text_files(splits, tmp_path)
