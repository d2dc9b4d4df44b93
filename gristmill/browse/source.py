"""Where the rows of a table are: read by number, or looked through from a place on.

`columns.py`: arrays, Parquet and small files; `lines.py`: files of lines. See also `where.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gristmill.browse.table import Cell, Picture, Raw, Token, Type

if TYPE_CHECKING:
    import polars as pl

    from gristmill.browse.where import Where

Values = Mapping[str, Any]
"""What a row holds by column: a cell, or a list or an object of JSON."""


class Place(NamedTuple):
    """Where a source is looked through: the number of the next row, and its byte in a file."""

    row: int = 0
    byte: int = 0


@dataclass(frozen=True)
class Record:
    """A row as it is stored. error: what is wrong with it, or nothing."""

    number: int
    values: Values
    raw: Raw
    error: str = ""


@dataclass(frozen=True)
class Looked:
    """Rows that were looked at, and those of them that fit.

    numbers: of the rows that fit, ascending. frame: the columns that were asked for, of these.
    record, after: take the number of one that fits, and return it, and the place of the next row.
    end: place behind the rows that were looked at.
    """

    numbers: Sequence[int]
    frame: pl.DataFrame
    record: Callable[[int], Record]
    after: Callable[[int], Place]
    end: Place


class Source(Protocol):
    """The rows of a table."""

    @property
    def file(self) -> Path:
        """The first file of them."""

    @property
    def types(self) -> Mapping[str, Type]:
        """The columns in their order."""

    def count(self) -> int | None:
        """The number of rows, None where it is not known yet."""

    def read(self, start: int, count: int, seconds: float) -> Sequence[Record]:
        """Rows from a number on; fewer at the end. Raises StillCounting, BadInput."""

    def look(self, begin: Place, where: Where) -> Iterator[Looked]:
        """Look through the rows from a place on, some at a time. Raises BadInput for damage."""


@dataclass(frozen=True)
class Stored:
    """A table of an artifact, as its family declares it.

    name: of the table. open: opens its rows. searchable: columns that a search looks at.
    slow: columns that are made for each row, as decoded text; nothing sorts by them.
    partition: of the rows, where several share the folder; "" for none.
    sample: takes a row, and returns what `gristmill trace` takes: the sample, and its options.
    pictures, tokens: take a row, and return what is shown of it.
    """

    name: str
    open: Callable[[], Source]
    searchable: Collection[str] = ()
    slow: Collection[str] = ()
    partition: str = ""
    sample: Callable[[Record], tuple[str, Mapping[str, Any]]] | None = None
    pictures: Callable[[Record], Sequence[Picture]] = lambda _: ()
    tokens: Callable[[Record], Sequence[Token]] = lambda _: ()


def cell(value: object) -> Cell:
    """A value as a cell: lists of words in one line, other lists and objects as their JSON."""
    import orjson

    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return orjson.dumps(value, default=str, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def type_of(values: Collection[object]) -> Type:
    """The type of a column by some of its values; text where they differ."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "truth"
    if kinds == {int}:
        return "integer"
    if kinds and kinds <= {int, float}:
        return "number"
    return "list" if kinds and kinds <= {list, dict, tuple} else "text"
