"""Writes Parquet files by hand, so that every number in them may be a lie."""

import struct as binary
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

TRUE, I32, I64, TEXT, LIST, STRUCT = 1, 5, 6, 8, 9, 12
NONE, SNAPPY, GZIP, BROTLI, ZSTD = 0, 1, 2, 4, 6
BOOLEAN, INT32, INT64, INT96, BYTES = 0, 1, 2, 3, 6
PLAIN, RLE, DELTA_LENGTHS, DELTA_BYTES, DICTIONARY = 0, 3, 6, 7, 8
DATA, DICTIONARY_PAGE, DATA_V2 = 0, 2, 3
MAGIC = b"PAR1"

Field = tuple[int, int, bytes]


def varint(number: int) -> bytes:
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*octets, number])


def number(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def text(value: bytes) -> bytes:
    return varint(len(value)) + value


def many(kind: int, items: Sequence[bytes], count: int | None = None) -> bytes:
    count = len(items) if count is None else count
    return bytes([0xF0 | kind]) + varint(count) + b"".join(items)


def struct(*fields: Field) -> bytes:
    octets, last = b"", 0
    for place, kind, value in fields:
        octets += bytes([(place - last) << 4 | kind]) + value
        last = place
    return octets + b"\0"


def i32(place: int, value: int) -> Field:
    return place, I32, number(value)


def i64(place: int, value: int) -> Field:
    return place, I64, number(value)


@dataclass(frozen=True)
class Page:
    """A page: its bytes as they are in the file, and what its header says of them."""

    contents: bytes
    values: int
    encoding: int = PLAIN
    kind: int = DATA
    unpacked: int | None = None
    packed: int | None = None

    def octets(self) -> bytes:
        unpacked = len(self.contents) if self.unpacked is None else self.unpacked
        packed = len(self.contents) if self.packed is None else self.packed
        common = [i32(1, self.kind), i32(2, unpacked), i32(3, packed)]
        if self.kind == DICTIONARY_PAGE:
            own = (7, STRUCT, struct(i32(1, self.values), i32(2, self.encoding)))
        else:
            levels = [i32(1, self.values), i32(2, self.encoding), i32(3, RLE), i32(4, RLE)]
            own = (5, STRUCT, struct(*levels))
        return struct(*common, own) + self.contents


@dataclass(frozen=True)
class File:
    """A Parquet file whose columns share the same pages."""

    names: Sequence[bytes]
    pages: Sequence[Page]
    rows: int
    codec: int = NONE
    kind: int = BYTES
    converted: int | None = 0
    values: int | None = None
    group_rows: int | None = None
    groups: int = 1
    offset: int | None = None
    size: int | None = None
    before: Sequence[bytes] = ()
    more: Sequence[Field] = ()
    column: Sequence[Field] = ()
    children: int | None = None
    optional: int = 0
    statistics: Sequence[Field] = field(default=())

    def octets(self) -> bytes:
        pages = b"".join(page.octets() for page in self.pages)
        footer = self._footer(len(pages))
        return MAGIC + pages + footer + binary.pack("<I", len(footer)) + MAGIC

    def _footer(self, size: int) -> bytes:
        columns = [self._column(name, size) for name in self.names]
        rows = self.rows if self.group_rows is None else self.group_rows
        group = struct((1, LIST, many(STRUCT, columns)), i64(2, size), i64(3, rows))
        return struct(
            i32(1, 2),
            (2, LIST, many(STRUCT, [*self._root(), *self.before, *map(self._leaf, self.names)])),
            i64(3, self.rows),
            (4, LIST, many(STRUCT, [group] * self.groups)),
            *self.more,
        )

    def _root(self) -> list[bytes]:
        children = len(self.names) if self.children is None else self.children
        return [struct((4, TEXT, text(b"schema")), i32(5, children))]

    def _leaf(self, name: bytes) -> bytes:
        converted = [] if self.converted is None else [i32(6, self.converted)]
        return struct(i32(1, self.kind), i32(3, self.optional), (4, TEXT, text(name)), *converted)

    def _column(self, name: bytes, size: int) -> bytes:
        values = self.rows if self.values is None else self.values
        offset = len(MAGIC) if self.offset is None else self.offset
        has_dictionary = bool(self.pages) and self.pages[0].kind == DICTIONARY_PAGE
        first = len(self.pages[0].octets()) if has_dictionary else 0
        data = struct(
            i32(1, self.kind),
            (2, LIST, many(I32, [number(PLAIN), number(RLE)])),
            (3, LIST, many(TEXT, [text(name)])),
            i32(4, self.codec),
            i64(5, values),
            i64(6, size),
            i64(7, size if self.size is None else self.size),
            i64(9, offset + first),
            *([i64(11, offset)] if has_dictionary else []),
            *self.statistics,
        )
        return struct(*sorted([*self.column, i64(2, offset), (3, STRUCT, data)]))

    def write(self, path: Path) -> Path:
        path.write_bytes(self.octets())
        return path
