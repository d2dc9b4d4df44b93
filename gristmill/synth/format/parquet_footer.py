"""One Parquet file from row groups of several writers, and its footer as nested lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, STRUCT = range(1, 13)
_LONG_LIST: Final = 15
_MOST_DELTA: Final = 15
_DOUBLE_BYTES: Final = 8


class Field(NamedTuple):
    """A field of a struct.

    value: an int, bytes, a list of values, or a list of fields. A truth value is in its kind.
    """

    number: int
    kind: int
    value: Any


class List(NamedTuple):
    """A list: the type of its values, and the values."""

    kind: int
    values: list[Any]


def read_struct(data: bytes) -> list[Field]:
    """Return the fields of a struct."""
    return _Reader(data).struct()


def write_struct(fields: list[Field]) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def list_head(kind: int, size: int) -> bytes:
    """Return the bytes before the values of a list."""
    out = bytearray()
    if size < _LONG_LIST:
        out.append(size << 4 | kind)
    else:
        out.append(_LONG_LIST << 4 | kind)
        _write_varint(out, size)
    return bytes(out)


def field_head(number: int, before: int, kind: int) -> bytes:
    """Return the bytes before the value of a field."""
    out = bytearray()
    if 0 < number - before <= _MOST_DELTA:
        out.append((number - before) << 4 | kind)
    else:
        out.append(kind)
        _write_varint(out, _zigzag(number))
    return bytes(out)


class _Reader:
    """Reads values one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._readers: dict[int, Callable[[], Any]] = {
            # Alone, as in a list, a truth value is a byte; in a field it is the type.
            _TRUE: self._byte,
            _FALSE: self._byte,
            _BYTE: self._byte,
            _I16: self._number,
            _I32: self._number,
            _I64: self._number,
            _DOUBLE: lambda: self._bytes(_DOUBLE_BYTES),
            _BINARY: lambda: self._bytes(self._varint()),
            _LIST: self._list,
            STRUCT: self.struct,
        }

    def struct(self) -> list[Field]:
        fields: list[Field] = []
        number = 0
        while head := self._byte():
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._number()
            value = None if kind in (_TRUE, _FALSE) else self._value(kind)
            fields.append(Field(number, kind, value))
        return fields

    def _value(self, kind: int) -> Any:
        if kind not in self._readers:
            raise ValueError(f"type {kind} in the footer of a Parquet file")
        return self._readers[kind]()

    def _list(self) -> List:
        head = self._byte()
        kind, size = head & 15, head >> 4
        if size == _LONG_LIST:
            size = self._varint()
        return List(kind, [self._value(kind) for _ in range(size)])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise IndexError("the footer of a Parquet file ends early")
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        number = shift = 0
        while (octet := self._byte()) & 0x80:
            number |= (octet & 0x7F) << shift
            shift += 7
        return number | octet << shift

    def _number(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)


def _write_struct(out: bytearray, fields: list[Field]) -> None:
    before = 0
    for number, kind, value in fields:
        out += field_head(number, before, kind)
        before = number
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind == STRUCT:
        _write_struct(out, value)
    elif kind == _LIST:
        out += list_head(value.kind, len(value.values))
        for each in value.values:
            _write_value(out, value.kind, each)
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == _DOUBLE:
        out += value
    elif kind in (_TRUE, _FALSE, _BYTE):
        out.append(value)
    else:
        _write_varint(out, _zigzag(value))


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _write_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


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
