"""The footer of a Parquet file as nested lists, so that row groups can move to another file.

A footer is a struct of Thrift's compact protocol. See also `row_groups.py`: files that are
joined. Source: `docs/formats/synth.md#joined-row-groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, STRUCT = range(1, 13)
_LONG_LIST: Final = 15
_MOST_DELTA: Final = 15
_DOUBLE_BYTES: Final = 8


class Field(NamedTuple):
    """A field of a struct.

    number: of the field in Parquet's definition.
    kind: its type in the compact protocol.
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
    """Return the fields of a struct.

    Raises ValueError for a type that Parquet does not use, IndexError for data that end early.
    """
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
