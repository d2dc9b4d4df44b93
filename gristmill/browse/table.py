"""What a table of an artifact is: its columns, its rows, and what a person looks for in it.

See also `source.py`: where the rows are; `opening.py`: the tables of an artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from gristmill.contract import GristmillError

Cell = str | int | float | bool | None
"""What one column has in one row. Lists and objects are their JSON text; bytes are hexadecimal."""
Type = Literal["text", "integer", "number", "truth", "list"]
Rule = Literal["is", "is not", "from", "to", "contains"]
RULES: Final[tuple[Rule, ...]] = ("is", "is not", "from", "to", "contains")
SECONDS: Final = 2.0
"""How long one answer looks for rows, by default."""


class StillCounting(GristmillError):
    """A row is asked for by its number, and the lines before it are not counted yet.

    Ask again: each time goes on where the last one stopped.
    """

    def __init__(self, file: Path, done: float) -> None:
        super().__init__(f"{file}: {done:.0%} of its lines are counted; ask again")
        self.done = done


@dataclass(frozen=True)
class Column:
    """A column of a table.

    name: as in the file. type: of its cells. text: half a sentence on what it holds, or nothing.
    searchable: whether `Query.search` looks at it. filterable: whether a filter may name it.
    sortable: whether a query may sort by it; where the table is too large, the query says so.
    """

    name: str
    type: Type
    text: str = ""
    searchable: bool = False
    filterable: bool = True
    sortable: bool = True


@dataclass(frozen=True)
class Filter:
    """What a column must have.

    rule: `is` and `is not` compare with the text of the cell; `contains` looks for a part of it,
    whatever its case; `from` and `to` are the ends of a range, both included: of numbers in columns
    of numbers, else of texts in the order of their code points.
    """

    column: str
    rule: Rule
    value: str


@dataclass(frozen=True)
class Query:
    """What a person looks for.

    search: text that a searchable column contains, whatever its case; "" for any row.
    filters: all of them hold. sort: name of a column; "" for the stored order.
    descending: whether the largest come first; rows with equal cells keep the stored order.
    """

    search: str = ""
    filters: tuple[Filter, ...] = ()
    sort: str = ""
    descending: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture of a row, as on the page of the asset: an SVG document."""

    title: str
    svg: str


@dataclass(frozen=True)
class Token:
    """A token, or a piece of text, of a row.

    text: visible characters; may end in a newline. id: in the vocabulary, None for plain text.
    counts: whether the loss counts it, None where the artifact has no mask.
    span: what it belongs to, as `reasoning` or `Step 2`; "" where the artifact has no spans.
    """

    text: str
    id: int | None = None
    counts: bool | None = None
    span: str = ""


@dataclass(frozen=True)
class Raw:
    """Where the bytes of a row are in the artifact.

    file: path. place: `bytes 0-99`, `row 7 of 1,000`. text: the stored line, or the values.
    """

    file: Path
    place: str
    text: str


@dataclass(frozen=True)
class Row:
    """One row of a table.

    number: from 0, in the stored order; the link to the row.
    cells: by name of the column. error: what is wrong with the row, naming file, row and rule;
        its cells are then those that could be read.
    raw: its bytes. pictures, tokens, origin: read when they are called; they raise GristmillError
        where a file is damaged. A row without pictures or tokens has none.
    origin: where the row came from, as `gristmill trace` says: facts by name, several mappings
        where an id occurs more than once; empty where nothing is known.
    """

    number: int
    cells: Mapping[str, Cell]
    raw: Raw
    error: str = ""
    pictures: Callable[[], Sequence[Picture]] = tuple
    tokens: Callable[[], Sequence[Token]] = tuple
    origin: Callable[[], Sequence[Mapping[str, object]]] = tuple


@dataclass(frozen=True)
class Found:
    """A page of the rows that a query found.

    rows: at most as many as were asked for. looked: rows of the table that were looked at so far.
    token: goes on after these; "" where nothing is left. `rows` may be fewer, or none, though there
    is a token: the time was over.
    """

    rows: Sequence[Row]
    looked: int
    token: str = field(default="")


class Table:
    """A table of an artifact, open for reading.

    place: the folder of the artifact. kind: key of its asset. name: of the table, "" for the only
    one. columns: in the stored order. file: the first file that it is read from.
    """

    place: Path
    kind: str
    name: str
    columns: Sequence[Column]
    file: Path

    @property
    def count(self) -> int | None:
        """The number of rows; None for a file of lines that no record counts, until it is known."""
        raise NotImplementedError

    def rows(self, start: int, count: int, seconds: float = SECONDS) -> Sequence[Row]:
        """Returns up to `count` rows from `start` on, in the stored order; none after the last.

        seconds: how long lines may be counted to find the place.

        Raises StillCounting where that was too short, and GristmillError where a file is damaged
        as a whole. A single bad row has `Row.error`.
        """
        raise NotImplementedError

    def find(
        self, query: Query, token: str = "", most: int = 25, seconds: float = SECONDS
    ) -> Found:
        """Returns the first rows that a query finds.

        token: of the answer before, to go on after it; "" (default) from the first row on. It is
            short, and stays valid in a link as long as the artifact stays. most: rows at most.
        seconds: how long rows are looked at. A sorted query takes as long as it needs.

        Raises GristmillError for a column or a value that does not fit, a sort of a table that is
        too large, a token that is not of this table, and a damaged file.
        """
        raise NotImplementedError
