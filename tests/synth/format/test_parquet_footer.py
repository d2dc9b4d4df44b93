"""Structs of Thrift's compact protocol: what is written is read, and bytes stay."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.synth.format.parquet_footer import (
    STRUCT,
    Field,
    List,
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
