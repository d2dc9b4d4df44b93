"""Rows whose columns are read by number: arrays in memory maps, Parquet, small files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.browse.source import Looked, Place, Record, cell, type_of
from gristmill.browse.table import Raw, Type
from gristmill.contract import BadInput

if TYPE_CHECKING:
    import polars as pl

    from gristmill.browse.table import Where

Read = Callable[[Sequence[str], int, int], Mapping[str, Any]]
"""Takes names of columns, first row and row behind the last; returns an array or list of each."""
STEP: Final = 1 << 18
_KINDS: Final[Mapping[str, Type]] = {"i": "integer", "u": "integer", "f": "number", "b": "truth"}


class Columns:
    """Rows by number.

    file: the first file of them. types: by column, in order. rows: their number.
    get: reads columns. raw: takes a number and the values, and returns the stored bytes.
    """

    def __init__(
        self,
        file: Path,
        types: Mapping[str, Type],
        rows: int,
        get: Read,
        raw: Callable[[int, Mapping[str, Any]], Raw] | None = None,
        step: int = STEP,
    ) -> None:
        self.file, self.types, self.rows, self._get, self._step = file, types, rows, get, step
        self._raw = raw or self._as_json

    def count(self) -> int:
        """The number of rows."""
        return self.rows

    def read(self, start: int, count: int, seconds: float) -> list[Record]:
        """Rows from a number on; fewer at the end."""
        stop = min(self.rows, start + count)
        if start >= stop:
            return []
        got = {name: _python(v) for name, v in self._get([*self.types], start, stop).items()}
        rows = [{name: got[name][at] for name in self.types} for at in range(stop - start)]
        return [
            Record(start + at, values, self._raw(start + at, values))
            for at, values in enumerate(rows)
        ]

    def look(self, begin: Place, where: Where) -> Iterator[Looked]:
        """Look through the rows from a place on."""
        import polars as pl

        for first in range(begin.row, self.rows, self._step):
            stop = min(self.rows, first + self._step)
            got = self._get(where.needs, first, stop) if where.needs else {}
            frame = pl.DataFrame(
                [series(name, got[name], self.types[name], where.lengths) for name in where.needs]
            )
            numbers: Sequence[int] = range(first, stop)
            if where.fits is not None:
                fit = frame.select(where.fits.alias("fits"))["fits"].fill_null(False)
                numbers = (np.flatnonzero(fit.to_numpy()) + first).tolist()
                frame = frame.filter(fit)
            yield Looked(
                numbers, frame, lambda n: self.read(n, 1, 0)[0], lambda n: Place(n + 1), Place(stop)
            )

    def _as_json(self, number: int, values: Mapping[str, Any]) -> Raw:
        import orjson

        options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
        text = orjson.dumps(values, default=_text, option=options).decode("utf-8", "replace")
        return Raw(self.file, f"row {number:,} of {self.rows:,}", text)


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _python(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def series(name: str, values: Any, kind: Type, lengths: Collection[str] | None = None) -> pl.Series:
    """A column for expressions: numbers as they are, all others as the texts of their cells.

    lengths: names of columns of lists of which only the lengths are wanted.
    """
    import polars as pl

    if lengths is not None and name in lengths:
        if isinstance(values, np.ndarray) and values.ndim > 1:
            return pl.Series(name, np.full(len(values), np.prod(values.shape[1:])))
        sizes = [len(each) if isinstance(each, list | tuple | dict) else None for each in values]
        return pl.Series(name, sizes, pl.Int64)
    if isinstance(values, pl.Series):
        return values.alias(name)
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iufb":
        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        return pl.Series(name, np.ascontiguousarray(native))
    if kind in ("integer", "number"):
        wanted: Any = pl.Int64 if kind == "integer" else pl.Float64
        numbers = [each if _is_number(each) else None for each in values]
        return pl.Series(name, numbers, wanted, strict=False)
    cells = (cell(value) for value in _python(values))
    texts = [None if each is None else _utf8(_lower(each)) for each in cells]
    return pl.Series(name, texts, pl.String)


def _lower(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _is_number(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return whole or isinstance(value, float)


def of_values(file: Path, rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Rows that are in memory; the first one has all columns."""
    names = list(rows[0]) if rows else []

    def get(asked: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        return {name: [row.get(name) for row in rows[first:stop]] for name in asked}

    types = {name: type_of([row.get(name) for row in rows[:1000]]) for name in names}
    return Columns(file, types, len(rows), get)


def of_arrays(
    files: Sequence[Path],
    arrays: Sequence[Mapping[str, npt.NDArray[Any]]],
    hexadecimal: Sequence[str] = (),
) -> Columns:
    """Rows in arrays, file after file.

    files: one for each of the mappings. arrays: by column [rows] or [rows, ...], mapped.
    hexadecimal: columns whose numbers are shown as 16 digits, as boards are.
    """
    starts = [0, *accumulate(len(next(iter(each.values()))) for each in arrays)]

    def get(names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        found = {}
        for name in names:
            parts = [
                each[name][max(0, first - start) : stop - start]
                for each, start in zip(arrays, starts, strict=False)
                if start < stop and first < start + len(each[name])
            ]
            found[name] = parts[0] if len(parts) == 1 else np.concatenate(parts)
        shown = [name for name in names if name in hexadecimal]
        return found | {name: [f"{value:016x}" for value in found[name].tolist()] for name in shown}

    def raw(number: int, values: Mapping[str, Any]) -> Raw:
        shard = bisect_right(starts, number) - 1
        within = number - starts[shard]
        octets = {name: a[within : within + 1].tobytes().hex() for name, a in arrays[shard].items()}
        text = "\n".join(f"{name}: {digits}" for name, digits in octets.items())
        return Raw(files[shard], f"row {within:,} of {starts[shard + 1] - starts[shard]:,}", text)

    types = {
        name: "list" if array.ndim > 1 else _KINDS.get(array.dtype.kind, "text")
        for name, array in arrays[0].items()
    }
    types |= dict.fromkeys(hexadecimal, "text")
    return Columns(files[0], types, starts[-1], get, raw)


def of_parquet(file: Path) -> Columns:
    """Rows of a Parquet file: its footer within limits, and its columns when they are needed.

    Raises BadInput where the file is not readable or breaks a limit.
    """
    import polars as pl

    from gristmill.untrusted import files, parquet

    with files.opened(file) as opened:
        footer = parquet.opened(opened.fileno(), file)
        parquet_names = footer.schema_arrow.names
        rows = footer.metadata.num_rows
        groups = [footer.metadata.row_group(at).num_rows for at in range(footer.num_row_groups)]
    parquet.check_once(parquet_names, parquet_names, file)
    with _named(file):
        schema = pl.scan_parquet(file).collect_schema()

    def get(asked: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        with _named(file, first + 1):
            lazy = pl.scan_parquet(file).select(asked).slice(first, stop - first)
            found = lazy.collect()
        if len(found) != stop - first:
            raise BadInput(file, "has fewer rows than its footer says: get it again", first + 1)
        return {name: _plain(found[name]) for name in asked}

    types = {name: type_of_polars(schema[name]) for name in schema.names()}
    return Columns(file, types, rows, get, step=max(1, min([STEP, *groups])) if groups else STEP)


def _plain(values: pl.Series) -> Any:
    import polars as pl

    kind = values.dtype
    simple = kind.is_integer() or kind.is_float() or kind in (pl.String, pl.Boolean)
    return values if simple else values.to_list()


def type_of_polars(kind: pl.DataType) -> Type:
    """The type of a column by that of polars."""
    import polars as pl

    if kind.is_integer():
        return "integer"
    if kind.is_nested():
        return "list"
    if kind == pl.Boolean:
        return "truth"
    return "number" if kind.is_float() else "text"


@contextmanager
def _named(file: Path, row: int | None = None) -> Iterator[None]:
    """Errors of polars within are BadInput with the file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        rule = f"is damaged in this row or one after it ({str(error)[:300]}): get it again"
        raise BadInput(file, rule, row) from error
