"""Hostile Parquet files: small ones that take much memory or time, and ones that lie.

They are written by hand, so that every number in them may be a lie.
"""

import struct as binary
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

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


NAMES: Final = (
    b"query",
    b"synthetic_reasoning",
    b"synthetic_answer",
    b"synth_id",
    b"messages_json",
)
"""Columns that a raw file and a Harmony shard need, so that each reader takes the file."""
MUCH: Final = 1 << 30
_MANY_ROWS: Final = 1 << 40


def plain(value: bytes) -> bytes:
    return binary.pack("<I", len(value)) + value


def run(count: int, value: int, width: int = 1) -> bytes:
    """One run of equal indices or levels."""
    return varint(count << 1) + value.to_bytes((width + 7) // 8, "little")


def zeros(size: int, before: bytes = b"") -> bytes:
    """So many zeros after some bytes, packed by zstd without being in memory at once."""
    packer = zstandard.ZstdCompressor(level=1).compressobj(len(before) + size)
    parts = [packer.compress(before)]
    for begin in range(0, size, 1 << 24):
        parts.append(packer.compress(bytes(min(1 << 24, size - begin))))
    return b"".join([*parts, packer.flush()])


def column(pages: list[Page], rows: int, codec: int = NONE) -> File:
    return File(NAMES, pages, rows, codec)


def dictionary_of_one(size: int, rows: int) -> File:
    """Each row is the same string of a dictionary."""
    entry = zeros(size, binary.pack("<I", size))
    indices = zstandard.compress(bytes([1]) + run(rows, 0))
    unpacked = len(zstandard.decompress(indices))
    return column(
        [
            Page(entry, 1, PLAIN, DICTIONARY_PAGE, unpacked=size + 4),
            Page(indices, rows, DICTIONARY, unpacked=unpacked),
        ],
        rows,
        ZSTD,
    )


def nulls(rows: int) -> File:
    levels = run(rows, 0)
    page = Page(binary.pack("<I", len(levels)) + levels, min(rows, (1 << 31) - 1))
    return replace(column([page], rows), optional=1)


def row_of(size: int) -> File:
    page = Page(zeros(size, binary.pack("<I", size)), 1, unpacked=size + 4)
    return column([page], 1, ZSTD)


def page_of(codec: int, contents: bytes, unpacked: int = (1 << 31) - 1) -> File:
    return column([Page(contents, 10, unpacked=unpacked)], 10, codec)


def delta_lengths(rows: int) -> File:
    """Lengths that are all 0, in a block as large as the page says."""
    block = varint(1 << 30) + varint(4) + varint(rows) + number(0) + number(0) + bytes(4)
    return column([Page(block, rows, DELTA_LENGTHS)], rows)


def delta_bytes(size: int, rows: int) -> File:
    """Each string is the one before: a prefix of its whole length, and no more bytes.

    rows: 1 more than a multiple of 128.
    """
    head = varint(128) + varint(4) + varint(rows)
    rest = (number(0) + bytes(4)) * (rows // 128 - 1)
    first = binary.pack("<I", size)
    prefixes = head + number(0) + number(0) + bytes([32, 0, 0, 0]) + first + bytes(124) + rest
    suffixes = head + number(size) + number(-size) + bytes([32] * 4) + bytes(4) + first * 127 + rest
    contents = prefixes + suffixes
    packed = zeros(size, contents)
    return column([Page(packed, rows, DELTA_BYTES, unpacked=len(contents) + size)], rows, ZSTD)


GOOD: Final = column([Page(plain(b"text") * 4, 4)], 4)


def nested(depth: int) -> File:
    element = struct(i32(3, 1), (4, TEXT, text(b"n")), i32(5, 1))
    return replace(GOOD, before=[element] * depth, children=len(NAMES) + (depth > 0))


def endless_struct(depth: int) -> bytes:
    """A footer of structs in structs in a field that nobody knows."""
    return MAGIC + b"\xfc" * depth + binary.pack("<I", depth) + MAGIC


def _arrow(table: pa.Table, **options: object) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        pq.write_table(table, path, **options)
        return path

    return write


def _table(**more: object) -> pa.Table:
    texts = {name.decode(): ["text"] * 4 for name in NAMES}
    return pa.table(texts | more)


def _overwritten(path: Path, place: int, octets: bytes) -> Path:
    data = bytearray(GOOD.write(path).read_bytes())
    data[place : place + len(octets) or None] = octets
    path.write_bytes(data)
    return path


def _files() -> dict[str, File]:
    page = Page(zeros(2_000_000, binary.pack("<I", 2_000_000)), 1, unpacked=2_000_000 + 4)
    return {
        "a dictionary of one string of 10 MB for 1000 rows": dictionary_of_one(10_000_000, 1000),
        "a dictionary of one string of 1 GB": dictionary_of_one(MUCH, 10),
        "2**40 rows of nulls": nulls(_MANY_ROWS),
        "a row of 1 GB": row_of(MUCH),
        "a row of 40 MB": row_of(40_000_000),
        "a page for each row, 200 MB together": column([page] * 100, 100, ZSTD),
        "strings by differences that repeat one of 10 MB": delta_bytes(10_000_000, 1025),
        "lengths by differences in a block of 2**30": delta_lengths(4),
        "2**31 lengths by differences": delta_lengths((1 << 31) - 1),
        "a page that claims 2 GB, not packed": page_of(NONE, plain(b"text") * 10),
        "a page that claims 2 GB, zstd": page_of(ZSTD, zeros(1 << 20)),
        "a page of 2 GB, zstd": page_of(ZSTD, zeros((1 << 31) - 1)),
        "a page with fewer values than none": column([Page(plain(b"x") * 4, -4)], 4),
        "a page of a kind that there is not": column([Page(plain(b"x") * 4, 4, kind=9)], 4),
        "indices beyond the dictionary": column(
            [
                Page(plain(b"x"), 1, PLAIN, DICTIONARY_PAGE),
                Page(bytes([8]) + run(4, 200, 8), 4, DICTIONARY),
            ],
            4,
        ),
        "a string longer than its page": column([Page(binary.pack("<I", 1 << 30) + b"x", 1)], 1),
        "fewer rows than none": replace(GOOD, rows=-4),
        "more rows than values": replace(GOOD, rows=1000),
        "10,000 row groups of the same rows": replace(GOOD, groups=10_000, rows=40_000),
        "a column chunk beyond the file": replace(GOOD, offset=1 << 40),
        "a column chunk in another file": replace(GOOD, column=[(1, TEXT, text(b"/etc/passwd"))]),
        "a codec that there is not": replace(GOOD, codec=77),
        "times as INT96": replace(GOOD, kind=INT96, converted=None, pages=[Page(b"\xff" * 48, 4)]),
        "a column whose name is not UTF-8": replace(GOOD, names=[*NAMES, b"qu\xffry"]),
        "a column whose name is 1 MB": replace(GOOD, names=[*NAMES, b"q" * 1_000_000]),
        "20,000 columns": replace(GOOD, names=[*NAMES, *(b"c%d" % n for n in range(20_000))]),
        "10,000 levels of columns": nested(10_000),
        "200,000 levels of columns": nested(200_000),
        "2**31 children": replace(GOOD, children=(1 << 31) - 1),
        "statistics that are wrong": replace(
            GOOD,
            statistics=[(12, STRUCT, struct(i64(3, 1 << 60), i64(4, -7), (5, TEXT, text(b"z"))))],
        ),
        "2**31 key values that are not there": replace(
            GOOD, more=[(5, LIST, many(STRUCT, [], (1 << 31) - 1))]
        ),
    }


def _others() -> dict[str, Callable[[Path], Path]]:
    lists = pa.ListArray.from_arrays(
        [0, 20_000_000, 20_000_000, 20_000_000, 20_000_000], pa.nulls(20_000_000, pa.int8())
    )
    return {
        "a footer longer than the file": lambda path: _overwritten(
            path, -8, binary.pack("<I", 1 << 31)
        ),
        "an encrypted footer": lambda path: _overwritten(path, -4, b"PARE"),
        "structs without end": lambda path: _written(path, endless_struct(1_000_000)),
        "nothing": lambda path: _written(path, b""),
        "a list of 20 million nulls in one row": _arrow(_table(more=lists), compression="zstd"),
        "times beyond the calendar": _arrow(
            _table(
                more=pa.array([2**62] * 4, pa.timestamp("us")),
                date=pa.array([2**31 - 1] * 4, pa.date32()),
            )
        ),
        "times in a zone that is unknown": _arrow(
            _table(more=pa.array([1] * 4, pa.timestamp("us", tz="Nowhere/City")))
        ),
        "views of one long string": _arrow(
            _table(more=pa.array(["x" * 1_000_000] * 100, pa.string_view())[:4]), compression="zstd"
        ),
    }


def _written(path: Path, octets: bytes) -> Path:
    path.write_bytes(octets)
    return path


def write_all(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write each file into a folder of its own; yield what it is, and its path."""
    for index, (name, file) in enumerate([*_files().items(), *_others().items()]):
        path = folder / f"{index:02d}/synth_harmony_shard_00.parquet"
        path.parent.mkdir(parents=True)
        yield name, file.write(path) if isinstance(file, File) else file(path)
