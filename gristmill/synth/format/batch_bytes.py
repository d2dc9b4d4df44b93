"""How many bytes the rows of a batch take once each has its own values, and such batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput
from gristmill.synth.format.parquet import is_json, is_text

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES: Final = 16 << 20
"""Bytes of a batch, unless it is one row."""
_CELL: Final = 64
"""Bytes that Python takes for one value in a nested column, about."""


def bytes_apart(array: pa.Array, cell: int = 0) -> int:
    """Return the bytes of an array once its values are apart.

    array: of any type. A string of a dictionary counts in each row that has it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return bytes_apart(array.storage, cell)
    size = len(array) * cell
    if pa.types.is_dictionary(kind):
        if not _is_binary(kind.value_type):
            return size + len(array) * _CELL + int(array.nbytes)
        lengths = _lengths(array.dictionary).take(array.indices)
        return size + (pc.sum(lengths).as_py() or 0)
    if _is_view(kind):
        return size + (pc.sum(_lengths(array)).as_py() or 0)
    if pa.types.is_struct(kind):
        return size + sum(bytes_apart(child, _CELL) for child in array.flatten())
    if pa.types.is_map(kind):
        # Arrow does not flatten a map as it is.
        array = array.cast(pa.list_(kind.field(0).type))
    if kind.num_fields:
        return size + bytes_apart(array.flatten(), _CELL)
    return size + int(array.nbytes)


def longest(array: pa.Array) -> int:
    """Return how many bytes `bytes_apart` of one value is at most."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return bytes_apart(array)
    # Beside a value are two offsets and a bit.
    return _CELL + (pc.max(pc.binary_length(array)).as_py() or 0)


def divided(
    batch: pa.RecordBatch, path: Path, first_row: int, row_bytes: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield a batch in parts that are small enough, in order, each with its bytes.

    row_bytes: bytes of one row, at most.

    Raises BadInput for a row that takes more.
    """
    waiting = [(0, len(batch))]
    while waiting:
        begin, length = waiting.pop()
        part = batch.slice(begin, length)
        size = sum(map(bytes_apart, part.columns))
        if length == 1 and size > row_bytes:
            rule = f"takes {size:,} bytes: a row may take {row_bytes:,}"
            raise BadInput(path, rule, first_row + begin + 1)
        # A row is too long or not, whatever the rows beside it.
        fits = size <= row_bytes or sum(map(longest, part.columns)) <= row_bytes
        if length == 1 or (size <= BATCH_BYTES and fits):
            yield with_strings(part), size
        else:
            half = length // 2
            waiting += [(begin + half, length - half), (begin, half)]


def rows_within(texts: pa.Array, most: int) -> int:
    """Return how many of the first texts have at most `most` bytes together.

    texts: strings, or only nulls; a null has no bytes.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    octets = pc.fill_null(pc.binary_length(texts.cast(pa.large_binary())), 0)
    ends = np.cumsum(octets.to_numpy(zero_copy_only=False))
    return int(np.searchsorted(ends, most, side="right"))


def _lengths(array: pa.Array) -> pa.Array:
    """Bytes of each string, as int64."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_view(array.type):
        return pc.binary_length(array).cast(pa.int64())
    # Arrow measures no views: one has 16 bytes, and its length is in the first four.
    views = np.frombuffer(array.buffers()[1] or b"", "<i4").reshape(-1, 4)
    return pa.array(views[array.offset : array.offset + len(array), 0].astype(np.int64))


def _is_view(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def with_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose dictionaries of strings, string views and JSON are strings."""
    import pyarrow as pa

    def as_strings(column: Any) -> Any:
        if is_json(column.type):
            column = column.storage
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            column = column.dictionary_decode()
        # Few of Arrow's functions accept views.
        return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column

    return pa.RecordBatch.from_arrays(list(map(as_strings, batch.columns)), batch.schema.names)
