"""Structs of Thrift's compact protocol: what is written is read, and bytes stay."""

from __future__ import annotations

import io
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.synth.format.parquet_footer import (
    STRUCT,
    Field,
    List,
    RowGroupsWriter,
    field_head,
    list_head,
    read_struct,
    write_struct,
)

NUMBERS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.tuples(st.sampled_from([4, 5, 6]), NUMBERS),
    st.tuples(st.sampled_from([1, 2]), st.none()),
    st.tuples(st.just(3), st.integers(0, 255)),
    st.tuples(st.just(7), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(8), st.binary(max_size=300)),
    st.tuples(st.just(9), st.lists(NUMBERS, max_size=40).map(lambda values: List(6, values))),
    st.tuples(st.just(9), st.lists(st.integers(1, 2), max_size=20).map(lambda v: List(1, v))),
)


def _structs(depth: int) -> st.SearchStrategy[list[Field]]:
    values = VALUES
    if depth:
        inner = _structs(depth - 1)
        many = st.lists(inner, max_size=3).map(lambda values: List(STRUCT, values))
        values = st.one_of(values, st.tuples(st.just(STRUCT), inner), st.tuples(st.just(9), many))
    fields = st.dictionaries(st.integers(1, 300), values, max_size=5)
    return fields.map(lambda each: [Field(n, *each[n]) for n in sorted(each)])


@given(_structs(2))
def test_what_is_written_is_read(fields: list[Field]) -> None:
    assert read_struct(write_struct(fields)) == fields
    assert read_struct(write_struct(fields) + b"more") == fields


def test_the_footer_of_a_file_keeps_its_bytes() -> None:
    sink = io.BytesIO()
    columns = {"a": ["x", None], "b": [1.5, 2.5], "c": [[1], [2, 3]], "d": [True, False]}
    pq.write_table(pa.table(columns), sink, row_group_size=1)
    data = sink.getvalue()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    fields = read_struct(footer)
    assert write_struct(fields) == footer
    assert {field.number: field.value for field in fields}[3] == 2


@pytest.mark.parametrize(
    ("head", "octets"),
    [
        (field_head(1, 0, 6), b"\x16"),
        (field_head(15, 0, 6), b"\xf6"),
        (field_head(16, 0, 6), b"\x06\x20"),
        (field_head(17, 2, 8), b"\xf8"),
        (list_head(12, 0), b"\x0c"),
        (list_head(12, 14), b"\xec"),
        (list_head(12, 15), b"\xfc\x0f"),
        (list_head(6, 300), b"\xf6\xac\x02"),
    ],
)
def test_heads_have_their_short_form_as_long_as_it_fits(head: bytes, octets: bytes) -> None:
    assert head == octets


def test_other_types_and_data_that_end_early_are_errors() -> None:
    with pytest.raises(ValueError, match="type 11 in the footer of a Parquet file"):
        read_struct(b"\x1b\x00\x00")
    with pytest.raises(IndexError):
        read_struct(b"\x16")
    with pytest.raises(IndexError, match="ends early"):
        read_struct(b"\x18\x05abc")


class Sink(io.BytesIO):
    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        return super().write(data)


def _table(rows: int) -> pa.Table:
    texts = [None if at % 5 == 3 else f"text {at} " * (at % 60) for at in range(rows)]
    return pa.table({"a": pa.array(texts, pa.string()), "b": [str(at % 3) for at in range(rows)]})


def _file(table: pa.Table, group: int, **settings: object) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", **settings) as writer:  # type: ignore[arg-type]
        for first in range(0, len(table), group):
            writer.write_table(table.slice(first, group).combine_chunks(), row_group_size=group)
    return sink.getvalue()


def _joined(files: list[bytes]) -> tuple[bytes, RowGroupsWriter]:
    sink = Sink()
    writer = RowGroupsWriter(sink)
    for file in files:
        writer.add(memoryview(file))
    writer.finish()
    return sink.getvalue(), writer


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 9), max_size=4), st.integers(1, 9), st.integers(0, 40))
def test_joined_files_have_the_bytes_of_one_writer(
    counts: list[int], group: int, last: int
) -> None:
    """Each file but the last one has whole row groups; more than 15 take another list head."""
    rows = [count * group for count in counts] + [last]
    table, ends = _table(sum(rows)), [0, *itertools.accumulate(rows)]
    parts = [table.slice(begin, end - begin) for begin, end in itertools.pairwise(ends)]
    joined, writer = _joined([_file(part, group) for part in parts if len(part)])
    assert joined == (_file(table, group) if len(table) else b"")
    assert (writer.rows, writer.groups) == (len(table), -(-len(table) // group))


def test_statistics_and_schema_stay(tmp_path: pytest.TempPathFactory) -> None:
    table = _table(50)
    joined, _ = _joined([_file(table.slice(at, 10), 5) for at in range(0, 50, 10)])
    file = pq.ParquetFile(io.BytesIO(joined))
    assert file.read().equals(table)
    one = pq.ParquetFile(io.BytesIO(_file(table, 5))).metadata
    assert file.metadata.to_dict() == one.to_dict()


def test_a_file_with_a_page_index_is_refused() -> None:
    with pytest.raises(ValueError, match="a row group with a page index cannot be moved"):
        _joined([_file(_table(10), 5, write_page_index=True)])


def _footer(*groups: list[Field]) -> bytes:
    footer = write_struct([Field(3, 6, 2), Field(4, 9, List(12, list(groups)))])
    return b"PAR1" + bytes(40) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_every_place_is_moved_and_groups_are_numbered() -> None:
    """Places that pyarrow leaves out or sets to 0, but other versions of it do not."""
    described = [Field(2, 6, 77), Field(9, 6, 14), Field(10, 6, 24), Field(11, 6, 4)]
    column = [Field(2, 6, 30), Field(3, 12, described)]
    unset = [Field(2, 6, 0), Field(3, 12, [Field(9, 6, 4)])]
    group = [Field(1, 9, List(12, [column, unset])), Field(5, 6, 4), Field(7, 4, 0)]
    joined, _ = _joined([_footer(group, group), _footer(group)])
    length = int.from_bytes(joined[-8:-4], "little")
    footer = read_struct(joined[-8 - length : -8])
    assert [field.number for field in footer] == [3, 4]
    assert footer[0].value == 4
    first, second, third = footer[1].value.values
    assert [each[2].value for each in (first, second, third)] == [0, 1, 2]
    assert [each[1].value for each in (first, second, third)] == [4, 4, 44]
    moved, unmoved = third[0].value.values
    assert moved[0].value == 70
    assert [field.value for field in moved[1].value] == [77, 54, 64, 44]
    assert unmoved[0].value == 0
    assert first[0].value.values == [column, unset]
