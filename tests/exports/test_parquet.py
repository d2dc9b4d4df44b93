"""Files of the writer are read as pyarrow and polars read any Parquet."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.exports.parquet import PlainWriter, writer


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def listed(kind: pa.DataType, size: int = -1) -> pa.DataType:
    return pa.list_(required("item", kind), size)


NUMBERS = [pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
SCHEMA = pa.schema(
    [
        *(required(str(kind), kind) for kind in (*NUMBERS, pa.float32(), pa.float64())),
        required("unique", pa.string()),
        required("repeated", pa.string()),
        required("fixed", listed(pa.uint8(), 3)),
        required("ragged", listed(pa.int32())),
        required("signed", listed(pa.int8())),
        required("inside", pa.struct([required("a", pa.int32()), required("b", pa.string())])),
    ]
)


def numbers(kind: pa.DataType, rows: int) -> pa.Array:
    if str(kind) in ("float", "double"):
        return pa.array(np.linspace(-1e9, 1e9, rows), kind)
    info = np.iinfo(str(kind))
    found = np.random.default_rng(0).integers(
        info.min, info.max, rows, kind.to_pandas_dtype(), endpoint=True
    )
    found[:2] = info.min, info.max
    return pa.array(found)


def batch(rows: int, begin: int = 0) -> pa.RecordBatch:
    """Rows with empty and long lists, empty texts and letters of several bytes."""
    lengths = [(at * 7) % 31 for at in range(begin, begin + rows)]
    of: dict[str, Any] = {
        "unique": ["é" * (at % 5) + str(at) * (at > 0) for at in range(rows)],
        "repeated": [("", "ja", "nein")[at % 3] for at in range(rows)],
        "fixed": [[at % 256, 0, 255] for at in range(rows)],
        "ragged": [list(range(-1, n - 1)) for n in lengths],
        "signed": [[-128, 127, -1][: n % 4] for n in lengths],
        "inside": [{"a": -at, "b": f"<{at}>"} for at in range(rows)],
    }
    columns = [
        pa.array(of[each.name], each.type) if each.name in of else numbers(each.type, rows)
        for each in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@pytest.mark.parametrize("sizes", [[2], [1000], [9, 300, 2], []])
def test_what_is_written_is_read_with_types_and_row_groups(sizes, tmp_path):
    path = tmp_path / "a.parquet"
    batches = [batch(rows, 3 * at) for at, rows in enumerate(sizes)]
    file = writer(path, SCHEMA)
    assert isinstance(file, PlainWriter)
    for each in batches:
        file.write(each)
    file.close()
    expected = pa.Table.from_batches(batches, SCHEMA)
    found = pq.read_table(path)
    found.validate(full=True)
    assert found.schema.remove_metadata().equals(SCHEMA)
    assert found.equals(expected)
    assert pq.ParquetFile(path).num_row_groups == len(sizes)
    assert pl.read_parquet(path).to_dicts() == expected.to_pylist()


def test_a_part_of_a_batch_is_written_and_a_file_that_is_there_is_not_replaced(tmp_path):
    part = batch(40).slice(11, 17)
    file = writer(tmp_path / "a.parquet", SCHEMA)
    file.write(part)
    file.close()
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == part.to_pylist()
    (tmp_path / "a.parquet").write_bytes(b"mine")
    for schema in (SCHEMA, pa.schema([pa.field("a", pa.string())])):
        with pytest.raises(FileExistsError):
            writer(tmp_path / "a.parquet", schema)
    assert (tmp_path / "a.parquet").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("texts", "distinct"),
    [
        ([str(at) * 40 for at in range(10)], 10),  # their ends are distinct
        ([str(at) + "é" * 100 for at in range(10)], 10),  # they differ in their beginning alone
        ([str(at % 5) * 100 for at in range(10)], 5),  # half are repeated
        ([str(at % 6) * 100 for at in range(10)], 6),
        (["x" * 63 * at for at in (0, 1, 2, 1)], 3),  # short and long ones
        (["y" * 126, ""], 2),
    ],
)
@pytest.mark.parametrize("first", [0, 3])
def test_long_texts_are_a_dictionary_where_half_are_repeated(texts, distinct, first, tmp_path):
    schema = pa.schema([required("text", pa.string())])
    array = pa.array(["before"] * first + texts + ["behind"]).slice(first, len(texts))
    with_file = PlainWriter(tmp_path / "made.parquet", schema)
    with_file.write(pa.RecordBatch.from_arrays([array], schema=schema))
    with_file.close()
    found = pq.ParquetFile(tmp_path / "made.parquet")
    assert found.read()["text"].to_pylist() == texts
    chunk = found.metadata.row_group(0).column(0)
    assert chunk.has_dictionary_page == (2 * distinct <= len(texts))


def test_many_lists_of_one_length_take_few_bytes_more_than_their_values(tmp_path):
    kind = listed(pa.uint8(), 900)
    cells = pa.array(np.arange(900_000, dtype=np.uint32).astype(np.uint8))
    schema = pa.schema([required("inputs", kind)])
    rows = pa.FixedSizeListArray.from_arrays(cells, type=kind)
    file = writer(tmp_path / "a.parquet", schema)
    file.write(pa.RecordBatch.from_arrays([rows], schema=schema))
    file.close()
    assert (tmp_path / "a.parquet").stat().st_size < 910_000
    assert pq.read_table(tmp_path / "a.parquet")["inputs"].combine_chunks().equals(rows)


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.list_(pa.list_(pa.int64()))])
def test_other_schemas_are_written_by_pyarrow(kind, tmp_path):
    schema = pa.schema([pa.field("a", kind), pa.field("b", pa.string())])
    table = pa.table({"a": [[], None], "b": ["x", None]}, schema)
    file = writer(tmp_path / "a.parquet", schema)
    file.write(table.to_batches()[0])
    file.close()
    assert not isinstance(file, PlainWriter)
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
