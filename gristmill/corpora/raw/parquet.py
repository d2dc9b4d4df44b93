"""Rows of Parquet, read in a child process as JSON. Source: `docs/formats/reasoning.md#drops`."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from gristmill.contract import BadInput
from gristmill.corpora.raw.texts import ClassName, Unfit
from gristmill.untrusted import child
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.json_text import HEAD_BYTES, has_more_values, refuse_pointer
from gristmill.untrusted.limits import LIMITS
from gristmill.untrusted.parquet import Reading, check_once, cure, cut, opened

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_BYTES: Final = 64 << 20
"""Bytes of one row as JSON, at most."""
HEAD_ROWS_BYTES: Final = 2 << 20
"""Bytes of the first rows that an account takes, a row more or less."""
_BATCH: Final = 64
_MOST_METADATA: Final = 16 << 20
_LISTS: Final = ("Sequence", "List", "LargeList")
_BATCH_BYTES: Final = 16 << 20
_SECONDS: Final = 120
_BYTES_PER_SECOND: Final = 1 << 20


def rows(
    path: Path, links: LinkRule = REFUSE_LINKS, columns: Collection[str] | None = None
) -> Iterator[tuple[int, dict[str, Any] | Unfit]]:
    """Yield the rows of a Parquet file, numbered from 1.

    path: the file, in its drop.
    columns: that are read; default None: all. The others are null in every row.

    Raises BadInput if it is no regular file, is damaged, or breaks a limit.
    """
    with open_file(path, root=path.parent, links=links) as file:
        size = os.fstat(file.fileno()).st_size
        check_begin(os.pread(file.fileno(), HEAD_BYTES, 0), path)
        batches = child.stream(
            read,
            path,
            None if columns is None else frozenset(columns),
            file=path,
            descriptors=[file.fileno()],
            seconds=_SECONDS + size / _BYTES_PER_SECOND,
        )
        number, classes = 0, None
        for batch in batches:
            if classes is None:  # before the first row
                classes = orjson.loads(batch[0])
                continue
            for row in batch:
                number += 1
                if isinstance(row, str):
                    yield number, Unfit("utf8", row)
                else:
                    yield number, _named(row_of(row), classes) if classes else row_of(row)


def check_begin(head: bytes, path: Path) -> None:
    """Raise BadInput for what is no Parquet file by its first bytes."""
    refuse_pointer(head, path)
    if head.startswith(b"PARE"):
        raise BadInput(path, "is encrypted: write it again without encryption")
    if not b"PAR1".startswith(head[:4]):
        raise BadInput(path, "is no Parquet file: give it the ending of what it is")


def row_of(octets: bytes) -> dict[str, Any]:
    """A row of the child; it names NaN and infinities, which orjson does not read."""
    value: dict[str, Any]
    try:
        value = orjson.loads(octets)
    except orjson.JSONDecodeError:
        value = json.loads(octets)
    return value


def _named(value: Any, names: Any) -> Any:
    """A value with its classes by name. names: as `_classes` gives them."""
    if isinstance(names, Mapping) and isinstance(value, dict):
        return value | {key: _named(value[key], names[key]) for key in names if key in value}
    if isinstance(names, list) and isinstance(value, list):
        return [_named(each, names) for each in value]
    if isinstance(names, list) and type(value) is int:
        return ClassName(value, names[value] if 0 <= value < len(names) else None)
    return value


def _classes(schema: pa.Schema) -> dict[str, Any]:
    """The names of classes that numbers of a file stand for, by column, as `datasets` writes them.

    A list of names, for a list of numbers, too, or an object by the keys of an object.
    """
    try:
        said = orjson.loads((schema.metadata or {}).get(b"huggingface", b"{}")[:_MOST_METADATA])
        found = _class_names(said["info"]["features"])
    except (orjson.JSONDecodeError, LookupError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _class_names(feature: Any) -> Any:
    if isinstance(feature, list):
        return _class_names(feature[0]) if len(feature) == 1 else None
    if not isinstance(feature, Mapping):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        is_texts = isinstance(names, list) and all(isinstance(each, str) for each in names)
        return names if is_texts else None
    if feature.get("_type") in _LISTS and "feature" in feature:
        return _class_names(feature["feature"])
    found = {key: made for key, each in feature.items() if (made := _class_names(each))}
    return found or None


def read(
    descriptor: int, path: Path, wanted: Collection[str] | None = None
) -> Iterator[list[bytes | str]]:
    """Yield the names of classes as JSON, then the rows in order, some at a time.

    Of each row its JSON object, or why it has none. Numbers of 32 bits have their own shortest
    form, 0.1 and not that of 64 bits, 0.10000000149011612.

    wanted: names of the columns to read, which must hold what JSON has; default None: all. The
        others are null in every row, whatever they hold.

    A child process runs it.

    Raises BadInput for a file that is damaged or breaks a limit.
    """
    with Reading(descriptor, path) as reading:
        parquet = opened(descriptor, path)
        names = parquet.schema_arrow.names
        columns = [name for name in names if wanted is None or name in wanted]
        if wanted is not None:
            _check_types(parquet.schema_arrow, columns, path)
        empty = dict.fromkeys(names) if len(columns) < len(names) else {}
        classes = _classes(parquet.schema_arrow)
        yield [orjson.dumps({name: classes[name] for name in columns if name in classes})]
        short = _Short()
        for batch in _batches(parquet, columns, reading, path):
            made: list[bytes | str] = []
            size = 0
            for item in _as_json(short.written(batch), empty):
                if len(item) > ROW_BYTES:
                    rule = f"a row of more than {ROW_BYTES:,} bytes"
                    raise BadInput(path, rule, reading.row + 1)
                if isinstance(item, bytes) and has_more_values(item, LIMITS.values):
                    rule = f"a row of more than {LIMITS.values:,} values"
                    raise BadInput(path, rule, reading.row + 1)
                reading.takes(len(item))
                reading.row += 1
                made.append(item)
                size += len(item)
                if size > _BATCH_BYTES:
                    yield made
                    made, size = [], 0
            yield made


def _batches(
    parquet: pq.ParquetFile, columns: Sequence[str], reading: Reading, path: Path
) -> Iterator[pa.RecordBatch]:
    """The rows of a file. Raises BadInput for what Arrow cannot decode, naming the column."""
    import pyarrow as pa

    try:
        yield from parquet.iter_batches(_BATCH, columns=columns, use_threads=False)
    except pa.ArrowNotImplementedError as error:
        name = next((each for each in columns if not _is_decoded(parquet, each)), columns[0])
        what = f"pyarrow cannot decode its column {name!r} ({cut(error)}): {cure(error)}"
        raise BadInput(path, what, reading.row + 1) from error


def _is_decoded(parquet: pq.ParquetFile, column: str) -> bool:
    import pyarrow as pa

    try:
        for _ in parquet.iter_batches(_BATCH, columns=[column], use_threads=False):
            pass
    except pa.ArrowNotImplementedError:
        return False
    return True


class _Short:
    """Writes numbers of 32 bits of a batch as those of 64 bits that have the same shortest form."""

    def __init__(self) -> None:
        self._casts: list[pa.Schema] | None = None

    def written(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with them."""
        import pyarrow as pa

        if self._casts is None:
            made = [
                pa.schema([_retyped(field, leaf) for field in batch.schema])
                for leaf in (pa.string(), pa.float64())
            ]
            self._casts = made if made[0] != batch.schema else []
        for schema in self._casts:
            batch = batch.cast(schema)
        return batch


def _retyped(field: pa.Field, leaf: pa.DataType) -> pa.Field:
    """A field whose numbers of 32 bits, in lists and objects too, have another type."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_float32(kind):
        return field.with_type(leaf)
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_retyped(each, leaf) for each in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(kind.key_field, _retyped(kind.item_field, leaf)))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(_retyped(kind.value_field, leaf), kind.list_size))
    for is_kind, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_kind(kind):
            return field.with_type(make(_retyped(kind.value_field, leaf)))
    return field


def heads(*given: Any) -> list[list[bytes | str] | None]:
    """The first rows of files, as `read` yields them; None for a file that cannot be read.

    given: a descriptor of each file, their paths, and the number of rows. Columns of bytes, and
    those that are there twice, are null.

    A child process runs it.
    """
    *descriptors, paths, count = given
    found: list[list[bytes | str] | None] = []
    for descriptor, path in zip(descriptors, paths, strict=True):
        try:
            schema, made = opened(descriptor, path).schema_arrow, list[bytes | str]()
            once = [each for each in schema if schema.names.count(each.name) == 1]
            wanted = [each.name for each in once if not holds_bytes(each.type)]
            for own in islice(read(descriptor, path, wanted), 1, None):
                made += [each for each in own if len(each) <= HEAD_ROWS_BYTES]
                if len(made) >= count or sum(map(len, made)) > HEAD_ROWS_BYTES:
                    break
            found.append(made[:count])
        except BadInput:
            found.append(None)
    return found


def footers(*given: Any) -> list[tuple[list[str], list[str], int] | str]:
    """Names of columns, those that hold bytes, and the number of rows, of each file; or why not.

    given: a descriptor of each file, and their paths. A child process runs it.
    """
    *descriptors, paths = given
    found: list[tuple[list[str], list[str], int] | str] = []
    for descriptor, path in zip(descriptors, paths, strict=True):
        try:
            file = opened(descriptor, path)
            binary = [each.name for each in file.schema_arrow if holds_bytes(each.type)]
            found.append((file.schema_arrow.names, binary, file.metadata.num_rows))
        except BadInput as error:
            found.append(error.rule)
    return found


def holds_bytes(kind: pa.DataType) -> bool:
    """Whether a column, or one inside of it, has bytes that nobody calls a text."""
    import pyarrow as pa

    types = pa.types
    checks = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return any(check(kind) for check in checks) or any(map(holds_bytes, inner))


def _as_json(batch: pa.RecordBatch, empty: Mapping[str, None]) -> Iterator[bytes | str]:
    """The rows of a batch, one by one: a text that is not UTF-8 refuses its row alone."""
    has_floats = _has_floats(batch.schema)
    for at in range(len(batch)):
        try:
            value = _value(batch.slice(at, 1))
            if empty:
                value = {**empty, **value}
            octets = orjson.dumps(value, default=_plain)
            if has_floats and b"null" in octets:  # as orjson writes NaN and infinities
                octets = json.dumps(value, default=_as_written, ensure_ascii=False).encode()
            yield octets
        except UnicodeDecodeError as error:
            yield f"is not UTF-8: {error}"
        except orjson.JSONEncodeError as error:
            yield f"holds a value that JSON does not have: {cut(error)}"


def _value(one: pa.RecordBatch) -> dict[str, Any]:
    """The only row of a batch, with texts for times that Python's have no digits for."""
    import pyarrow as pa

    types, names = pa.types, one.schema.names
    value: dict[str, Any]
    try:
        (value,) = one.to_pylist()
    except ValueError as error:
        # pandas writes times in nanoseconds; a text that is not UTF-8 is another matter.
        kinds = one.schema.types
        times = {name for name, kind in zip(names, kinds, strict=True) if types.is_timestamp(kind)}
        texts = [pa.string() if types.is_timestamp(k) or types.is_time(k) else k for k in kinds]
        if isinstance(error, UnicodeError) or texts == kinds:
            raise
        (value,) = one.cast(pa.schema(zip(names, texts, strict=True))).to_pylist()
        value |= {name: value[name].replace(" ", "T") for name in times if value[name]}
    return value


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


def _as_written(value: Any) -> Any:
    """What orjson makes of a value that the JSON of Python does not have."""
    return orjson.loads(orjson.dumps(value, default=_plain))


def _plain(value: Any) -> str:
    """Decimals and times as texts."""
    if isinstance(value, bytes):
        raise TypeError("bytes")
    return str(value)


def _check_types(schema: pa.Schema, columns: Sequence[str], path: Path) -> None:
    """Raise BadInput for a column that is there twice, or holds bytes that nobody calls a text."""
    import pyarrow as pa

    check_once(columns, columns, path)
    for name in columns:
        kind = schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if is_binary or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
            rule = f"has the column {name}, which is {kind} and not a string: write it as strings"
            raise BadInput(path, rule)
