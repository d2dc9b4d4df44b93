"""The compact protocol of Thrift, as far as headers and footers of Parquet need it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Long(NamedTuple):
    """A number of 64 bits."""

    value: int


class Struct(NamedTuple):
    """Fields by number, ascending; a number of 32 bits is an int."""

    fields: Sequence[tuple[int, Value]]


Value = int | Long | str | Struct | Sequence[int] | Sequence[str] | Sequence[Struct]

_KINDS = {int: 5, Long: 6, str: 8, list: 9, Struct: 12}


def varint(number: int) -> bytes:
    """A number, 0 or more, in groups of seven bits, the lowest first."""
    octets = bytearray()
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def encoded(value: Value) -> bytes:
    """The bytes of a value."""
    if isinstance(value, Long | int):
        number = value.value if isinstance(value, Long) else value
        return varint(number << 1 if number >= 0 else ~(number << 1))
    if isinstance(value, str):
        octets = value.encode()
        return varint(len(octets)) + octets
    if isinstance(value, Struct):
        return b"".join(_fields(value)) + b"\0"
    kind = _KINDS[type(value[0])] if value else 12
    short = len(value) < 15
    head = bytes([len(value) << 4 | kind]) if short else bytes([240 | kind]) + varint(len(value))
    return head + b"".join(map(encoded, value))


def _fields(value: Struct) -> Iterator[bytes]:
    before = 0
    for number, each in value.fields:
        yield bytes([number - before << 4 | _KINDS[type(each)]]) + encoded(each)
        before = number
