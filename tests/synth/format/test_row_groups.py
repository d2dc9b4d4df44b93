"""Row groups of several files become one file, byte for byte as one writer's."""

import io
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.synth.format.parquet_footer import Field, List, read_struct, write_struct
from gristmill.synth.format.row_groups import RowGroupsWriter


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
