"""Parquet as the arrays lie in memory: what a projection writes nearly as fast as a copy.

Numbers, texts, lists of numbers and structs of these, none of them null, are written here without
compression: numbers as they are, numbers of one byte as places in a dictionary of all values,
headers and footers by the compact protocol of Thrift. Of any other schema pyarrow is the writer.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq


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


_MAGIC: Final = b"PAR1"
_REQUIRED, _REPEATED = 0, 2
_BYTES, _UTF8, _LIST = 6, 0, 3
_PLAIN, _RLE, _DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_LONG: Final = 64
"""Bytes of a text, on average, from which on texts are copied one by one."""
_NUMBERS: Final = {
    # of Arrow: type on disk, converted type, dtype on disk
    "int8": (1, 15, "<i4"),
    "int16": (1, 16, "<i4"),
    "int32": (1, None, "<i4"),
    "int64": (2, None, "<i8"),
    "uint8": (1, 11, "<i4"),
    "uint16": (1, 12, "<i4"),
    "uint32": (1, 13, "<u4"),
    "uint64": (2, 14, "<u8"),
    "float": (4, None, "<f4"),
    "double": (5, None, "<f8"),
}

Array = npt.NDArray[Any]


class Writer(Protocol):
    """Writes batches of one schema into a file, a row group each."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a row group."""

    def close(self) -> None:
        """Write the footer, and close the file."""


def writer(path: Path, schema: pa.Schema) -> Writer:
    """Returns a writer of a new file. schema: of all batches. Raises FileExistsError."""
    plain = all(_is_plain(each) for each in schema)
    return PlainWriter(path, schema) if plain else _ArrowWriter(path, schema)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_plain(item: pa.Field, inside: bool = False) -> bool:
    kind = item.type
    if item.nullable or (inside and kind.num_fields):
        return False
    if pa.types.is_struct(kind):
        return all(_is_plain(each, True) for each in kind)
    if _is_list(kind):
        return str(kind.value_type) in _NUMBERS and not kind.value_field.nullable
    return str(kind) in _NUMBERS or pa.types.is_string(kind)


class _ArrowWriter:
    """The writer of pyarrow, for schemas with nulls or lists of others."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("xb")
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class _Values(NamedTuple):
    """The values of a column on disk. lengths: of the lists that they are in, None for none."""

    path: tuple[str, ...]
    values: pa.Array
    lengths: Array | None


class _Page(NamedTuple):
    """Values of a page in pieces, and how they are encoded."""

    pieces: list[Any]
    encoding: int
    dictionary: tuple[int, bytes] | None = None


class PlainWriter:
    """Writes row groups without nulls; each batch is one, and takes no memory of its own."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._groups: list[Struct] = []
        self._rows = self._at = 0
        self._file = path.open("xb", buffering=0)
        self._put(_MAGIC)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a row group. batch: of the schema, without nulls."""
        before = self._at
        chunks = [self._chunk(each) for each in _leaves(batch)]
        size = Long(self._at - before)
        self._groups.append(Struct([(1, chunks), (2, size), (3, Long(batch.num_rows))]))
        self._rows += batch.num_rows

    def _chunk(self, leaf: _Values) -> Struct:
        begin, page = self._at, _page(leaf.values)
        levels, entries = (b"", len(leaf.values)) if leaf.lengths is None else _levels(leaf.lengths)
        encodings = [_RLE, page.encoding]
        if page.dictionary is not None:
            count, octets = page.dictionary
            self._header(_DICTIONARY_PAGE, len(octets), (7, Struct([(1, count), (2, _PLAIN)])))
            self._put(octets)
            encodings.append(_PLAIN)
        place = self._at
        described = Struct([(1, entries), (2, page.encoding), (3, _RLE), (4, _RLE)])
        pieces = [memoryview(piece).cast("B") for piece in (levels, *page.pieces) if len(piece)]
        self._header(_DATA_PAGE, sum(map(len, pieces)), (5, described))
        for piece in pieces:
            self._put(piece)
        whole = Long(self._at - begin)
        fields: list[tuple[int, Any]] = [
            (1, _stored(leaf.values.type)[0]),
            (2, encodings),
            (3, list(leaf.path)),
            (4, 0),
            (5, Long(entries)),
            (6, whole),
            (7, whole),
            (9, Long(place)),
        ]
        if page.dictionary is not None:
            fields.append((11, Long(begin)))
        return Struct([(2, Long(begin)), (3, Struct(fields))])

    def _header(self, kind: int, size: int, described: tuple[int, Struct]) -> None:
        self._put(encoded(Struct([(1, kind), (2, size), (3, size), described])))

    def _put(self, octets: bytes | memoryview) -> None:
        view = memoryview(octets)
        self._at += len(view)
        while view:
            view = view[self._file.write(view) :]

    def close(self) -> None:
        """Write the footer, and close the file."""
        kept = base64.b64encode(self._schema.serialize().to_pybytes()).decode()
        footer = encoded(
            Struct(
                [
                    (1, 1),
                    (2, list(_elements(self._schema))),
                    (3, Long(self._rows)),
                    (4, self._groups),
                    (5, [Struct([(1, "ARROW:schema"), (2, kept)])]),
                    (6, "gristmill"),
                ]
            )
        )
        self._put(footer + struct.pack("<I", len(footer)) + _MAGIC)
        self._file.close()


def _stored(kind: pa.DataType) -> tuple[int, int | None, str]:
    return _NUMBERS.get(str(kind), (_BYTES, _UTF8, ""))


def _leaves(batch: pa.RecordBatch) -> Iterator[_Values]:
    """The columns of a batch as they are on disk."""
    for item, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_struct(item.type):
            for at, inner in enumerate(item.type):
                yield _Values((item.name, inner.name), column.field(at), None)
        elif pa.types.is_fixed_size_list(item.type):
            lengths = np.full(len(column), item.type.list_size)
            yield _Values((item.name, "list", "element"), column.flatten(), lengths)
        elif pa.types.is_list(item.type):
            lengths = np.diff(np.asarray(column.offsets))
            yield _Values((item.name, "list", "element"), column.flatten(), lengths)
        else:
            yield _Values((item.name,), column, None)


def _page(values: pa.Array) -> _Page:
    if pa.types.is_string(values.type):
        if long := _long_texts(values):
            return _Page([long], _PLAIN)
        shared = values.dictionary_encode()
        if 2 * len(shared.dictionary) > len(values):
            return _Page([_texts(values)], _PLAIN)
        octets = _texts(shared.dictionary).tobytes()
        return _Page(
            _places(np.asarray(shared.indices).astype("<u4")),
            _DICTIONARY,
            (len(shared.dictionary), octets),
        )
    numbers, dtype = np.asarray(values), _NUMBERS[str(values.type)][2]
    if numbers.itemsize > 1:
        return _Page([np.ascontiguousarray(numbers, dtype)], _PLAIN)
    every = np.arange(256, dtype=np.uint8).view(numbers.dtype).astype(dtype).tobytes()
    return _Page(_places(numbers.view(np.uint8)), _DICTIONARY, (256, every))


def _places(codes: Array) -> list[Any]:
    """Places in a dictionary: their width in bits, then one run of them all, eight by eight."""
    groups = -(-len(codes) // 8)
    head = bytes([codes.itemsize * 8]) + varint(groups << 1 | 1)
    return [head, np.ascontiguousarray(codes), bytes((groups * 8 - len(codes)) * codes.itemsize)]


def _long_texts(values: pa.Array) -> bytes:
    """The bytes of `_texts` of long texts that are more than half distinct; empty for others."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, "<i4")[values.offset :][: len(values) + 1]
    if not len(values) or ends[-1] - ends[0] < _LONG * len(values):
        return b""
    texts, places = memoryview(data), [*pairwise(ends.tolist())]
    # Texts are distinct where their last bytes are: comparing whole ones takes longer.
    distinct = len({texts[max(first, end - _LONG) : end].tobytes() for first, end in places})
    if 2 * distinct <= len(values):
        return b""
    sizes = np.diff(ends).astype("<u4").view("V4").tolist()
    pieces = zip(sizes, (texts[first:end] for first, end in places), strict=True)
    return b"".join(chain.from_iterable(pieces))


def _texts(values: pa.Array) -> Array:
    """Texts, each after its number of bytes."""
    _, offsets, data = values.buffers()
    if not len(values):
        return np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, "<i4")[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(ends).astype("<u4")
    out = np.empty(int(ends[-1] - ends[0]) + 4 * len(values), np.uint8)
    is_text = np.ones(len(out), bool)
    heads = ends[:-1] - ends[0] + 4 * np.arange(len(values))
    for at, octet in enumerate(lengths.view(np.uint8).reshape(-1, 4).T):
        out[heads + at], is_text[heads + at] = octet, False
    if data is not None:
        out[is_text] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return out


def _levels(lengths: Array) -> tuple[bytes, int]:
    """The levels of lists in runs, and their number; an empty list has one."""
    is_one = len(lengths) > 0 and lengths.min() == lengths.max()  # sorting all takes long
    kinds, rows = (lengths[:1], lengths) if is_one else np.unique(lengths, return_inverse=True)
    each = [b"\x02\x00" + (varint(n - 1 << 1) + b"\x01" if n > 1 else b"") for n in kinds.tolist()]
    repeated = each[0] * len(rows) if len(each) == 1 else b"".join([each[at] for at in rows])
    filled = np.flatnonzero(np.diff(lengths > 0, prepend=-1, append=-1))
    defined = b"".join(
        varint(int(np.maximum(lengths[a:b], 1).sum()) << 1) + bytes([int(lengths[a] > 0)])
        for a, b in zip(filled[:-1].tolist(), filled[1:].tolist(), strict=True)
    )
    blocks = (struct.pack("<I", len(block)) + block for block in (repeated, defined))
    return b"".join(blocks), int(np.maximum(lengths, 1).sum())


def _elements(schema: pa.Schema) -> Iterator[Struct]:
    """The tree of a schema as Parquet lists it, each node before its children."""
    yield Struct([(4, "schema"), (5, len(schema))])
    for item in schema:
        kind = item.type
        if pa.types.is_struct(kind):
            yield Struct([(3, _REQUIRED), (4, item.name), (5, kind.num_fields)])
            yield from (_element(inner.name, inner.type) for inner in kind)
        elif _is_list(kind):
            yield Struct([(3, _REQUIRED), (4, item.name), (5, 1), (6, _LIST)])
            yield Struct([(3, _REPEATED), (4, "list"), (5, 1)])
            yield _element("element", kind.value_type)
        else:
            yield _element(item.name, kind)


def _element(name: str, kind: pa.DataType) -> Struct:
    stored, converted, _ = _stored(kind)
    fields: list[tuple[int, Any]] = [(1, stored), (3, _REQUIRED), (4, name)]
    return Struct(fields if converted is None else [*fields, (6, converted)])
