"""What a child process does with a Parquet file of a drop: its rows as JSON.

Arrow decides itself how much memory a page takes, and a page of a few bytes may claim
gigabytes. See also `parquet.py`: the calls. Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from gristmill.contract import BadInput
from gristmill.untrusted.arrow_errors import cure
from gristmill.untrusted.json_text import has_more_values
from gristmill.untrusted.limits import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_BYTES: Final = 64 << 20
"""Bytes of one row as JSON, at most."""
RATIO: Final = 1000
"""Bytes of JSON for each byte of the file, at most."""
ANY_RATIO_BYTES: Final = 64 << 20
"""Bytes of JSON that every file may have."""
ANY_ROWS: Final = 100_000
"""Rows that every file may have; above it needs a byte for each row."""
DEPTH: Final = 32
"""Levels of nested columns."""
COLUMNS: Final = 10_000
"""Columns, those inside of nested columns included."""
_BATCH: Final = 64
_BATCH_BYTES: Final = 16 << 20
_BUFFER: Final = 1 << 20
_SHOWN: Final = 300


def read(
    descriptor: int, path: Path, wanted: Collection[str] | None = None
) -> Iterator[list[bytes | str]]:
    """Yield the rows in order, some at a time: of each its JSON object, or why it has none.

    descriptor: of the open file.
    path: of the file, for error messages.
    wanted: names of the columns to read, which must hold what JSON has; default None: all. The
        others are null in every row, whatever they hold.

    Raises BadInput for a file that is damaged or breaks a limit.
    """
    row = 0
    allowed = max(ANY_RATIO_BYTES, RATIO * os.fstat(descriptor).st_size)
    try:
        parquet = _opened(descriptor, path)
        names = parquet.schema_arrow.names
        columns = [name for name in names if wanted is None or name in wanted]
        if wanted is not None:
            _check_types(parquet.schema_arrow, columns, path)
        empty = dict.fromkeys(names) if len(columns) < len(names) else {}
        for batch in parquet.iter_batches(_BATCH, columns=columns, use_threads=False):
            made: list[bytes | str] = []
            size = 0
            for item in _rows(batch, empty):
                row += 1
                if len(item) > ROW_BYTES:
                    raise BadInput(path, f"a row of more than {ROW_BYTES:,} bytes", row)
                if isinstance(item, bytes) and has_more_values(item, LIMITS.values):
                    raise BadInput(path, f"a row of more than {LIMITS.values:,} values", row)
                allowed -= len(item)
                if allowed < 0:
                    rule = f"holds more than {RATIO:,} times the bytes of the file up to this row"
                    raise BadInput(path, f"{rule}: it looks like a decompression bomb", row)
                made.append(item)
                size += len(item)
                if size > _BATCH_BYTES:
                    yield made
                    made, size = [], 0
            yield made
    except MemoryError as error:
        rule = "takes too much memory to read in this row or one after it"
        raise BadInput(path, f"{rule}: it looks like a decompression bomb", row + 1) from error
    except _errors() as error:
        rule = f"is damaged in this row or one after it ({_cut(error)}): {cure(error)}"
        raise BadInput(path, rule, row + 1) from error


def _rows(batch: pa.RecordBatch, empty: Mapping[str, None]) -> Iterator[bytes | str]:
    """The rows of a batch, one by one: a text that is not UTF-8 refuses its row alone."""
    has_floats = _has_floats(batch.schema)
    for at in range(len(batch)):
        try:
            (value,) = batch.slice(at, 1).to_pylist()
            if empty:
                value = {**empty, **value}
            octets = orjson.dumps(value, default=_plain)
            if has_floats and b"null" in octets:
                octets = _with_odd_numbers(value, octets)
            yield octets
        except UnicodeDecodeError as error:
            yield f"is not UTF-8: {error}"
        except orjson.JSONEncodeError as error:
            yield f"holds a value that JSON does not have: {_cut(error)}"


def _has_floats(schema: pa.Schema) -> bool:
    """Whether a column, or one inside of it, has numbers that may not be finite."""
    import pyarrow as pa

    # Arrow makes dictionaries of texts and bytes alone.
    kinds = list(schema.types)
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        if pa.types.is_floating(kind):
            return True
        kinds += [kind.field(at).type for at in range(kind.num_fields)]
    return False


def _with_odd_numbers(value: dict[str, Any], octets: bytes) -> bytes:
    """The JSON of a row with NaN and infinities by name, which orjson writes as null."""
    plain = orjson.loads(octets)
    restored = _restored(value, plain)
    return octets if restored is plain else json.dumps(restored, ensure_ascii=False).encode()


def _restored(value: Any, plain: Any) -> Any:
    """What a value is as JSON, `plain`, but its numbers that are not finite stay."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    made: Any = plain
    if isinstance(value, dict):
        made = {name: _restored(item, plain[name]) for name, item in value.items()}
    elif isinstance(value, list | tuple):
        made = [_restored(item, of) for item, of in zip(value, plain, strict=True)]
    return made if made != plain else plain


def _plain(value: Any) -> str:
    """Decimals and times as texts."""
    if isinstance(value, bytes):
        raise TypeError("bytes")
    return str(value)


def _opened(descriptor: int, path: Path) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    try:
        # The path opens the file once more, with a position of its own.
        parquet = pq.ParquetFile(
            f"/proc/self/fd/{descriptor}",
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
        )
        _check_schema(parquet.schema_arrow, path)
    except MemoryError:
        raise
    except _errors() as error:
        if isinstance(error, UnicodeDecodeError):
            # Arrow decodes names when they are asked for.
            rule = f"has a column whose name is not UTF-8 ({error.object[:_SHOWN]!r}): rename it"
        else:
            rule = f"is not a readable Parquet file ({_cut(error)}): {cure(error)}"
        raise BadInput(path, rule) from error
    groups = [parquet.metadata.row_group(at).num_rows for at in range(parquet.num_row_groups)]
    rows, size = parquet.metadata.num_rows, os.fstat(descriptor).st_size
    if min(groups, default=0) < 0 or sum(groups) != rows:
        rule = f"its row groups have {sum(groups):,} rows, and the footer says {rows:,}"
        raise BadInput(path, f"{rule}: get it again")
    if rows > ANY_ROWS + size:
        rule = f"claims {rows:,} rows in {size:,} bytes"
        raise BadInput(path, f"{rule}: it looks like a decompression bomb")
    return parquet


def _check_schema(schema: pa.Schema, path: Path) -> None:
    import pyarrow as pa

    columns = 0
    fields = [(field, 1) for field in schema]
    while fields:
        field, depth = fields.pop()
        columns += 1
        if depth > DEPTH:
            raise BadInput(path, f"has columns nested deeper than {DEPTH} levels")
        if columns > COLUMNS:
            raise BadInput(path, f"has more than {COLUMNS:,} columns")
        kind = field.type
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        fields += [(kind.field(at), depth + 1) for at in range(kind.num_fields)]


def _check_types(schema: pa.Schema, columns: Sequence[str], path: Path) -> None:
    """Raise BadInput for a column that is there twice, or holds bytes that nobody calls a text."""
    import pyarrow as pa

    for name, count in Counter(columns).items():
        if count > 1:
            raise BadInput(path, f"has the column {name} {count} times: leave one of them")
    for name in columns:
        kind = schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if is_binary or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
            rule = f"has the column {name}, which is {kind} and not a string: write it as strings"
            raise BadInput(path, rule)


def _errors() -> tuple[type[Exception], ...]:
    """What Arrow raises for a damaged file, errors of Python's conversions included."""
    import pyarrow as pa

    # RuntimeError: an exception of its C++ library that has no class in Python.
    known = (OSError, ValueError, TypeError, LookupError, OverflowError, RuntimeError)
    return (pa.ArrowException, *known)


def _cut(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."
