"""Hostile Parquet files: small ones that take much memory or time, and ones that lie."""

import gzip
import struct as binary
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.synth.thrift import (
    BROTLI,
    DATA_V2,
    DELTA_BYTES,
    DELTA_LENGTHS,
    DICTIONARY,
    DICTIONARY_PAGE,
    GZIP,
    INT96,
    LIST,
    MAGIC,
    NONE,
    PLAIN,
    SNAPPY,
    STRUCT,
    TEXT,
    ZSTD,
    File,
    Page,
    i32,
    i64,
    many,
    number,
    struct,
    text,
    varint,
)

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


def many_pages(size: int, pages: int) -> File:
    """Each row has a page of its own."""
    page = Page(zeros(size, binary.pack("<I", size)), 1, unpacked=size + 4)
    return column([page] * pages, pages, ZSTD)


GOOD: Final = column([Page(plain(b"text") * 4, 4)], 4)


def nested(depth: int) -> File:
    element = struct(i32(3, 1), (4, TEXT, text(b"n")), i32(5, 1))
    return replace(GOOD, before=[element] * depth, children=len(NAMES) + (depth > 0))


def endless_struct(depth: int) -> bytes:
    """A footer of structs in structs in a field that nobody knows."""
    return _closed(b"\xfc" * depth)


def _closed(footer: bytes) -> bytes:
    return MAGIC + footer + binary.pack("<I", len(footer)) + MAGIC


def _arrow(table: pa.Table, **options: object) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        pq.write_table(table, path, **options)
        return path

    return write


def _table(**more: object) -> pa.Table:
    texts = {name.decode(): ["text"] * 4 for name in NAMES}
    return pa.table(texts | more)


def _nested_lists(depth: int) -> pa.Table:
    kind = pa.int32()
    for _ in range(depth):
        kind = pa.list_(kind)
    return _table(more=pa.nulls(4, kind))


def _wide_lists(items: int) -> pa.Table:
    lists = pa.ListArray.from_arrays([0, items, items, items, items], pa.nulls(items, pa.int8()))
    return _table(more=lists)


def _overwritten(path: Path, place: int, octets: bytes) -> Path:
    data = bytearray(GOOD.write(path).read_bytes())
    data[place : place + len(octets) or None] = octets
    path.write_bytes(data)
    return path


def _key_value(key: bytes, value: bytes) -> bytes:
    return struct((1, TEXT, text(key)), (2, TEXT, text(value)))


def _files() -> dict[str, File]:
    return {
        "a dictionary of one string of 10 MB for 1000 rows": dictionary_of_one(10_000_000, 1000),
        "a dictionary of one string of 3 MB for 90,000 rows": dictionary_of_one(3_000_000, 90_000),
        "a dictionary of one string of 1 GB": dictionary_of_one(MUCH, 10),
        "2**40 rows of nulls": nulls(_MANY_ROWS),
        "2**31 rows of nulls": nulls((1 << 31) - 1),
        "a row of 1 GB": row_of(MUCH),
        "a row of 40 MB": row_of(40_000_000),
        "a page for each row, 200 MB together": many_pages(2_000_000, 100),
        "strings by differences that repeat one of 10 MB": delta_bytes(10_000_000, 1025),
        "lengths by differences in a block of 2**30": delta_lengths(4),
        "2**31 lengths by differences": delta_lengths((1 << 31) - 1),
        "a page that claims 2 GB, not packed": page_of(NONE, plain(b"text") * 10),
        "a page that claims 2 GB, snappy": page_of(SNAPPY, varint((1 << 31) - 1) + b"\0x"),
        "a page that claims 2 GB, gzip": page_of(GZIP, gzip.compress(bytes(1 << 20))),
        "a page that claims 2 GB, brotli": page_of(
            BROTLI, pa.compress(bytes(1 << 20), "brotli").to_pybytes()
        ),
        "a page that claims 2 GB, zstd": page_of(ZSTD, zeros(1 << 20)),
        "a page of 2 GB, zstd": page_of(ZSTD, zeros((1 << 31) - 1)),
        "a page that claims fewer bytes than none": page_of(NONE, b"", -1),
        "a page that is packed to fewer bytes than none": column([Page(b"x", 4, packed=-5)], 4),
        "a page with fewer values than none": column([Page(plain(b"x") * 4, -4)], 4),
        "a page of a kind that there is not": column([Page(plain(b"x") * 4, 4, kind=9)], 4),
        "a page with a part missing": column([Page(plain(b"x") * 4, 4, kind=DATA_V2)], 4),
        "a page by a dictionary that is not there": column(
            [Page(bytes([1]) + run(4, 0), 4, DICTIONARY)], 4
        ),
        "indices beyond the dictionary": column(
            [
                Page(plain(b"x"), 1, PLAIN, DICTIONARY_PAGE),
                Page(bytes([8]) + run(4, 200, 8), 4, DICTIONARY),
            ],
            4,
        ),
        "indices of 255 bits": column(
            [Page(plain(b"x"), 1, PLAIN, DICTIONARY_PAGE), Page(b"\xff" * 100, 4, DICTIONARY)], 4
        ),
        "a dictionary that claims 2**31 strings": column(
            [
                Page(plain(b"x"), (1 << 31) - 1, PLAIN, DICTIONARY_PAGE),
                Page(bytes([1]) + run(4, 0), 4, DICTIONARY),
            ],
            4,
        ),
        "a string longer than its page": column([Page(binary.pack("<I", 1 << 30) + b"x", 1)], 1),
        "a string of a length below 0": column([Page(b"\xff\xff\xff\xff" + b"x", 1)], 1),
        "levels longer than their page": replace(
            column([Page(b"\xff\xff\xff\x7f", 4)], 4), optional=1
        ),
        "fewer rows than none": replace(GOOD, rows=-4),
        "a row group with fewer rows than none": replace(GOOD, group_rows=-4),
        "a row group with more rows than the file": replace(GOOD, group_rows=_MANY_ROWS),
        "more rows than values": replace(GOOD, rows=1000),
        "more rows than its bytes can hold": replace(GOOD, rows=_MANY_ROWS, group_rows=_MANY_ROWS),
        "2**62 values": replace(GOOD, values=1 << 62),
        "10,000 row groups of the same rows": replace(GOOD, groups=10_000, rows=40_000),
        "a column chunk beyond the file": replace(GOOD, offset=1 << 40),
        "a column chunk before the file": replace(GOOD, offset=-100),
        "a column chunk of 2**60 bytes": replace(GOOD, size=1 << 60),
        "a column chunk with fewer bytes than none": replace(GOOD, size=-1),
        "a column chunk in another file": replace(GOOD, column=[(1, TEXT, text(b"/etc/passwd"))]),
        "a codec that there is not": replace(GOOD, codec=77),
        "a type that there is not": replace(GOOD, kind=77),
        "times as INT96": replace(GOOD, kind=INT96, converted=None, pages=[Page(b"\xff" * 48, 4)]),
        "a column whose name is not UTF-8": replace(GOOD, names=[*NAMES, b"qu\xffry"]),
        "a column whose name is 1 MB": replace(GOOD, names=[*NAMES, b"q" * 1_000_000]),
        "a column whose name is empty": replace(GOOD, names=[*NAMES, b""]),
        "20,000 columns": replace(GOOD, names=[*NAMES, *(b"c%d" % n for n in range(20_000))]),
        "100 levels of columns": nested(100),
        "10,000 levels of columns": nested(10_000),
        "200,000 levels of columns": nested(200_000),
        "more children than columns": replace(GOOD, children=1000),
        "2**31 children": replace(GOOD, children=(1 << 31) - 1),
        "fewer children than none": replace(GOOD, children=-1),
        "statistics that are wrong": replace(
            GOOD,
            statistics=[(12, STRUCT, struct(i64(3, 1 << 60), i64(4, -7), (5, TEXT, text(b"z"))))],
        ),
        "an encrypted footer's algorithm": replace(
            GOOD, more=[(8, STRUCT, struct((1, STRUCT, struct())))]
        ),
        "an encrypted column": replace(GOOD, column=[(8, STRUCT, struct((1, STRUCT, struct())))]),
        "metadata of the schema that is not a schema": replace(
            GOOD,
            more=[
                (
                    5,
                    LIST,
                    many(
                        STRUCT,
                        [struct((1, TEXT, text(b"ARROW:schema")), (2, TEXT, text(b"\xff" * 99)))],
                    ),
                )
            ],
        ),
        "2**31 key values that are not there": replace(
            GOOD, more=[(5, LIST, many(STRUCT, [], (1 << 31) - 1))]
        ),
    }


def _others() -> dict[str, Callable[[Path], Path]]:
    return {
        "a footer longer than the file": lambda path: _overwritten(
            path, -8, binary.pack("<I", 1 << 31)
        ),
        "a footer of no bytes": lambda path: _overwritten(path, -8, bytes(4)),
        "an encrypted footer": lambda path: _overwritten(path, -4, b"PARE"),
        "structs without end": lambda path: _written(path, endless_struct(1_000_000)),
        "nothing": lambda path: _written(path, b""),
        "only the magic": lambda path: _written(path, MAGIC),
        "only both magics": lambda path: _written(path, MAGIC + bytes(4) + MAGIC),
        "lists 60 levels deep": _arrow(_nested_lists(60)),
        "a list of 20 million nulls in one row": _arrow(
            _wide_lists(20_000_000), compression="zstd"
        ),
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
