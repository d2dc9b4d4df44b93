"""The rows of an artifact as other programs read them: its splits, their columns, their batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from gristmill.contract import BadInput, GristmillError
from gristmill.families import Column

Array = npt.NDArray[Any]
Batches = Iterator[pa.RecordBatch]
JSON: Final = pa.field("json", pa.string(), metadata={b"json": b"1"})
"""A column whose values are any JSON; its field has this mark."""
_LINES: Final = 1 << 14
_MOST_LINE: Final = 64 << 20
_WORDS: Final = pa.list_(pa.string())
_DECLARED: Final = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "array of string": _WORDS,
    "array of [int, int]": pa.list_(pa.list_(pa.int64())),
}
SPLITS: Final = {"valid": "validation", "val": "validation"}
"""Names of splits that the hub writes otherwise."""


class Tokens(NamedTuple):
    """Documents as tokens.

    end: the token behind each document. ids: how many ids the tokenizer has.
    batches: yields the tokens of whole documents, and where each begins, with the end of the last.
    """

    end: int
    ids: int
    batches: Callable[[], Iterator[tuple[Array, Array]]]


@dataclass(frozen=True)
class Split:
    """Rows of an artifact.

    batches: yields the rows, each batch at most some 32 MB, in memory for its own time alone.
    table: which of several tables of the artifact, as a corpus; "" for the only one.
    file: path in the folder of JSON Lines or Parquet that hold these rows; "" where none does.
    tokens: the rows as documents of tokens; None where they are none.
    texts: yields the rows as texts, none empty; None where they are none.
    arrow: returns the Arrow files of the rows, which `load_from_disk` maps; None where none are.
    whole: config of a card with the rows of all artifacts that are one dataset; "" for none.
    """

    name: str
    schema: Callable[[], pa.Schema]
    batches: Callable[[], Batches]
    table: str = ""
    file: str = ""
    partition: str = ""
    licence: str = ""
    tokens: Tokens | None = None
    texts: Callable[[], Iterator[pa.Array]] | None = None
    arrow: Callable[[], list[Path]] | None = None
    whole: str = ""


def required(columns: Mapping[str, pa.DataType]) -> pa.Schema:
    """Columns without nulls; what lists and structs hold is not null either."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def list_of(kind: pa.DataType, size: int = -1) -> pa.DataType:
    """Lists of numbers that are not null. size: of all of them, -1 where they differ (default)."""
    return pa.list_(pa.field("item", kind, nullable=False), size)


def grouped(splits: Iterable[Split]) -> dict[tuple[str, str], list[Split]]:
    """Splits by table and name, as several partitions have parts of one."""
    groups: dict[tuple[str, str], list[Split]] = {}
    for each in splits:
        groups.setdefault((each.table, each.name), []).append(each)
    return groups


def cut(splits: Iterable[Split], most: int, shown: object) -> Iterator[tuple[Array, Array, bool]]:
    """Yield tokens of documents, where each begins, and whether a file ends behind them.

    splits: with tokens. most: after so many a file ends, with a whole document. shown: their place.

    Raises BadInput where a token is none of the tokenizer, or a document has no end.
    """
    count = 0
    for each in splits:
        assert each.tokens is not None
        end, ids, batches = each.tokens
        for tokens, bounds in batches():
            if len(tokens) and not 0 <= tokens.min() <= tokens.max() < ids:
                raise BadInput(Path(str(shown)), f"{each.name} has a token outside of {ids} ids")
            if (np.diff(bounds) < 1).any() or (tokens[bounds[1:] - 1] != end).any():
                rule = f"{each.name} has a document without its separator: build it again"
                raise BadInput(Path(str(shown)), rule)
            at, last = 0, len(bounds) - 1
            while at < last:
                full = int(np.searchsorted(bounds, bounds[at] + most - count))
                stop = min(max(full, at + 1), last)
                count += int(bounds[stop] - bounds[at])
                part = tokens[bounds[at] : bounds[stop]]
                yield part, bounds[at : stop + 1] - bounds[at], count >= most
                at, count = stop, count if count < most else 0


def columns_of(splits: Iterable[Split]) -> pa.Schema:
    """The columns of a table: those of all its splits.

    Raises GristmillError where two splits have one column with two types.
    """
    try:
        found = pa.unify_schemas([each.schema() for each in splits])
    except pa.ArrowTypeError as error:
        raise GristmillError(f"a column has another type in another split: {error}") from error
    return pa.schema([each.with_type(_known(each.type)) for each in found])


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with all columns of their table. schema: of the table, as `columns_of` returns it."""
    if batch.schema.equals(schema):
        return batch
    named = dict(zip(batch.schema.names, batch.columns, strict=True))
    none = pa.nulls(len(batch))
    columns = [named.get(item.name, none).cast(item.type) for item in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _known(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_null(kind) else kind


def lines(path: Path, columns: Iterable[Column], **said: Any) -> Split:
    """The rows of a file of JSON Lines."""
    declared = {each.name: each.type.removesuffix(" or null") for each in columns}

    @cache
    def schema() -> pa.Schema:
        return _schema(path, declared)

    def batches() -> Batches:
        names = {item.name: bool(item.metadata) for item in schema()}
        rows = iter(_rows(path))
        while taken := list(islice(rows, _LINES)):
            held = {
                name: [_column(row.get(name), is_json) for _, row in taken]
                for name, is_json in names.items()
            }
            yield pa.RecordBatch.from_pydict(held, schema())

    return Split(schema=schema, batches=batches, **said)


def _column(value: Any, is_json: bool) -> Any:
    return orjson.dumps(value).decode() if is_json and value is not None else value


def _schema(path: Path, declared: Mapping[str, str]) -> pa.Schema:
    """The columns of all lines; those that no table of columns declares have the type they show."""
    found: dict[str, pa.DataType | None] = {}
    for number, row in _rows(path):
        if not row.keys() <= found.keys():
            for name in [each for each in row if each not in found]:
                kind = declared.get(name)
                found[name] = None if kind is None else _DECLARED.get(kind, JSON.type)
        for name, kind in found.items():
            value = row.get(name)
            if kind is None and value is not None:
                found[name] = _type(value)
            elif name not in declared and value is not None and _type(value) != kind:
                rule = f"{name} is {type(value).__name__}, and {kind} in a line before it"
                raise BadInput(path, f"{rule}: a column has one type", number)
    order = [name for name in declared if name in found]
    order += [name for name in found if name not in declared]
    return pa.schema(
        [
            JSON.with_name(name)
            if declared.get(name) is not None and declared[name] not in _DECLARED
            else pa.field(name, found[name] or pa.null())
            for name in order
        ]
    )


def _type(value: Any) -> pa.DataType:
    if isinstance(value, list):
        return _WORDS
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return kinds.get(type(value), pa.string())


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE), b""), start=1):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadInput(path, f"is no JSON ({error}): build it again", number) from error
            if not isinstance(row, dict):
                raise BadInput(path, "is no object of JSON: build it again", number)
            yield number, row
