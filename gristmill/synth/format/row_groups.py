"""One Parquet file from row groups that several writers encoded, byte for byte as one writer's.

The pages of a row group do not name their place: the footer alone does. So the bytes of the
groups are copied, and the footer is written from those of the files that they come from.
See also `parquet_footer.py`: the protocol of a footer.
Source: `docs/formats/synth.md#joined-row-groups`.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from gristmill.synth.format.parquet_footer import (
    STRUCT,
    Field,
    List,
    field_head,
    list_head,
    read_struct,
    write_struct,
)

_MAGIC: Final = b"PAR1"
_LENGTH_BYTES: Final = 4
_ROWS, _GROUPS = 3, 4
"""Fields of the footer."""
_COLUMNS, _GROUP_PLACE, _ORDINAL = 1, 5, 7
"""Fields of a row group."""
_CHUNK_PLACE, _CHUNK = 2, 3
"""Fields of a column in a row group."""
_PAGE_PLACES: Final = (9, 10, 11)
"""Fields of a column's description: places of its data, index and dictionary pages."""
_UNMOVED: Final = (4, 6)
"""Fields of a column in a row group: places of page indexes, which lie behind all groups."""


class Sink(Protocol):
    """What takes the bytes of the file."""

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        """Append all of the data."""
        ...


class RowGroupsWriter:
    """Writes one Parquet file from the row groups of others.

    sink: takes the bytes of the file, from its first one.

    All files have the same schema, and the same pyarrow wrote them with the same settings,
    without page indexes and Bloom filters.
    """

    def __init__(self, sink: Sink) -> None:
        self.rows = self.groups = 0
        self._sink = sink
        self._size = 0
        self._footer: list[Field] = []
        self._encoded = bytearray()

    def add(self, file: memoryview) -> None:
        """Append all row groups of a file. Raises ValueError if its row groups cannot be moved."""
        if not self._size:
            self._write(_MAGIC)
        end = len(file) - len(_MAGIC) - _LENGTH_BYTES
        length = int.from_bytes(file[end : end + _LENGTH_BYTES], "little")
        footer = read_struct(bytes(file[end - length : end]))
        by = self._size - len(_MAGIC)
        for group in _value(footer, _GROUPS).values:
            self._encoded += write_struct(_moved(group, by, self.groups))
            self.groups += 1
        self.rows += _value(footer, _ROWS)
        self._footer = self._footer or footer
        self._write(file[len(_MAGIC) : end - length])

    def finish(self) -> None:
        """Write the footer. Without a row group nothing is written."""
        if not self._footer:
            return
        footer, before = bytearray(), 0
        for field in self._footer:
            if field.number == _GROUPS:
                footer += field_head(field.number, before, field.kind)
                footer += list_head(STRUCT, self.groups) + self._encoded
            else:
                value = self.rows if field.number == _ROWS else field.value
                # A struct of this field alone, without the mark of its end.
                only = write_struct([Field(field.number, field.kind, value)])[:-1]
                alone = len(field_head(field.number, 0, field.kind))
                footer += field_head(field.number, before, field.kind) + only[alone:]
            before = field.number
        footer.append(0)
        self._write(footer)
        self._write(len(footer).to_bytes(_LENGTH_BYTES, "little") + _MAGIC)

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        self._sink.write(data)
        self._size += len(data)


def _value(fields: list[Field], number: int) -> Any:
    return next(field.value for field in fields if field.number == number)


def _moved(group: list[Field], by: int, ordinal: int) -> list[Field]:
    """The description of a row group that lies `by` bytes further, with so many before it."""
    moved: list[Field] = []
    for field in group:
        value = field.value
        if field.number == _COLUMNS:
            value = List(value.kind, [_moved_column(column, by) for column in value.values])
        elif field.number == _GROUP_PLACE:
            value += by
        elif field.number == _ORDINAL:
            value = ordinal
        moved.append(field._replace(value=value))
    return moved


def _moved_column(column: list[Field], by: int) -> list[Field]:
    if any(field.number in _UNMOVED for field in column):
        raise ValueError("a row group with a page index cannot be moved to another file")
    moved = []
    for field in column:
        value = field.value
        if field.number == _CHUNK_PLACE and value:
            value += by
        elif field.number == _CHUNK:
            value = [
                each._replace(value=each.value + by) if each.number in _PAGE_PLACES else each
                for each in value
            ]
        moved.append(field._replace(value=value))
    return moved
