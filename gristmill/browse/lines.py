"""Rows that are lines, or groups of lines, of a file: where each begins, and how to search them."""

from __future__ import annotations

import hashlib
import mmap
import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.browse.columns import series, type_of_polars
from gristmill.browse.source import Looked, Place, Record, keep_file, type_of
from gristmill.browse.table import Raw, StillCounting, Type
from gristmill.contract import BadInput, GristmillError
from gristmill.untrusted.files import opened
from gristmill.untrusted.json_text import has_more_values, is_deeper
from gristmill.untrusted.limits import LIMITS

if TYPE_CHECKING:
    import polars as pl

    from gristmill.browse.table import Where

EVERY: Final = 64
"""Rows between two places that are kept."""
_CHUNK: Final = 8 << 20
_FIRST_ROWS: Final = 64
_MOST_COLUMNS: Final = 200
_MOST_OPENED: Final = 500
"""Brackets that a line may open to be parsed together with others."""

Parse = Callable[[bytes], Mapping[str, Any]]


class Form(NamedTuple):
    """What a row of a file is.

    parse: a row's bytes; raises ValueError, or a GristmillError, where they break its rule.
    begin: what each row begins with, after a line end; b"" (default) where each line is a row.
    heading: whether the first line has the names of the columns (default False).
    more: columns that are made of the values and are not in the bytes, as decoded text; each takes
        the values of a row (default none).
    """

    parse: Parse
    begin: bytes = b""
    heading: bool = False
    more: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {}


class Lines:
    """The rows of a file of lines.

    file: its path. form: what a row is. rows: their number, None where no record has it.
    size: bytes that the file must have, None where no record says so.
    texts: columns whose type is known, by name; others are found in the first rows.
    keep: folder for the places of rows, None for this process alone.

    Raises BadInput where the file is missing, or has another size.
    """

    def __init__(
        self,
        file: Path,
        form: Form,
        rows: int | None = None,
        size: int | None = None,
        keep: Path | None = None,
    ) -> None:
        self.file, self._form, self._rows = file, form, rows
        try:
            with opened(file) as binary:
                self._stat = os.fstat(binary.fileno())
                self._octets = (
                    mmap.mmap(binary.fileno(), 0, access=mmap.ACCESS_READ)
                    if self._stat.st_size
                    else b""
                )
        except OSError as error:
            raise BadInput(file, f"cannot be read ({error.strerror}): build it again") from error
        self._size = self._stat.st_size
        if size not in (None, self._size):
            rule = f"has {self._size:,} bytes, and {size:,} were recorded: build the artifact again"
            raise BadInput(file, rule)
        self._begin = self._octets.find(b"\n") + 1 if form.heading else 0
        self._lock = threading.Lock()
        self._keep = keep
        self._places, self._passed, self._done = array("Q"), Place(0, self._begin), False
        self._load()
        self.types = self._types()

    def count(self) -> int | None:
        """The number of rows: as recorded, or as counted once the file was passed."""
        return self._passed.row if self._done else self._rows

    def read(self, start: int, count: int, seconds: float) -> list[Record]:
        """Rows from a number on; fewer at the end. Raises StillCounting after `seconds`."""
        place = self._find(start, time.monotonic() + seconds)
        found: list[Record] = []
        while place is not None and len(found) < count:
            end = self._end(place.byte)
            found.append(self._record(place.row, place.byte, end))
            place = Place(place.row + 1, end) if end < self._size else None
        return found

    def look(self, begin: Place, where: Where) -> Iterator[Looked]:
        """Look through the rows from a place on, a chunk of the file at a time."""
        place = begin if begin.byte else Place(0, self._begin)
        before = (
            place.byte in (0, self._begin) or self._octets[place.byte - 1 : place.byte] == b"\n"
        )
        start = self._octets[place.byte : place.byte + len(self._form.begin)]
        if not (before and start == self._form.begin and self._begin <= place.byte <= self._size):
            raise GristmillError(f"{self.file}: no row begins at byte {place.byte}: search again")
        while place.byte < self._size:
            bounds = self._bounds(place.byte)
            with self._lock:
                if place == self._passed and not self._done:
                    self._pass(place, bounds)
            yield self._looked(place, bounds, where)
            place = Place(place.row + len(bounds) - 1, int(bounds[-1]))

    def _looked(self, place: Place, bounds: npt.NDArray[np.int64], where: Where) -> Looked:
        import polars as pl

        at = np.arange(len(bounds) - 1)
        if where.lengths is not None and (quick := self._quick(bounds, where)) is not None:
            end = Place(place.row + len(at), int(bounds[-1]))
            return Looked((), quick, lambda n: self.read(n, 1, 0)[0], Place, end)
        made = [name for name in where.needs if name in self._form.more]
        if where.words and not made:
            at = at[self._containing(bounds, where.words)]
        spans = ((int(bounds[n]), int(bounds[n + 1])) for n in at.tolist())
        rows = [self._parsed(*span, made)[0] for span in spans]
        frame = pl.DataFrame(
            [
                series(name, [row.get(name) for row in rows], self.types[name], where.lengths)
                for name in where.needs
            ]
        )
        if where.fits is not None and len(at):
            fit = frame.select(where.fits.alias("fits"))["fits"].fill_null(False)
            at, frame = at[fit.to_numpy()], frame.filter(fit)

        def record(number: int) -> Record:
            return self._record(number, *map(int, bounds[number - place.row :][:2]))

        def after(number: int) -> Place:
            return Place(number + 1, int(bounds[number - place.row + 1]))

        end = Place(place.row + len(bounds) - 1, int(bounds[-1]))
        return Looked((at + place.row).tolist(), frame, record, after, end)

    def _quick(self, bounds: npt.NDArray[np.int64], where: Where) -> pl.DataFrame | None:
        """The columns of lines of JSON, parsed together; None where one is not as the others."""
        import polars as pl

        octets = self._octets[int(bounds[0]) : int(bounds[-1])]
        if self._form != Form(json_row):
            return None
        # Brackets of both kinds, and letters of none: no line may be nested too deeply.
        opened = np.flatnonzero(np.frombuffer(octets, np.uint8) & 0xDF == ord("[")) + bounds[0]
        if np.diff(np.searchsorted(opened, bounds)).max(initial=0) > _MOST_OPENED:
            return None
        try:
            frame = pl.read_ndjson(octets, infer_schema_length=_FIRST_ROWS)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        found = list[pl.Series]()
        for name in where.needs:
            outer, _, inner = name.partition(".")
            if (whole := name if name in frame.columns else outer) not in frame.columns:
                return None
            held = frame[whole]
            if whole != name:
                if not isinstance(held.dtype, pl.Struct) or inner not in held.struct.fields:
                    return None
                held = held.struct.field(inner)
            if type_of_polars(held.dtype) != self.types[name]:
                return None
            if isinstance(held.dtype, pl.List):
                held = held.list.len()
            found.append(held.alias(name))
        return pl.DataFrame(found) if len(frame) == len(bounds) - 1 else None

    def _containing(self, bounds: npt.NDArray[np.int64], words: Sequence[str]) -> Any:
        """Which rows may contain the words: those whose bytes do, and those with escapes."""
        first = int(bounds[0])
        octets, places = self._octets[first : int(bounds[-1])], bounds - first
        # An escape may write any character otherwise.
        escapes = "|\\\\u" if b"\\u" in octets else ""
        patterns = [f"(?i)(?:{word}){escapes}" for word in words]
        whole = _texts(octets, places[[0, -1]])
        found = np.full(len(places) - 1, all(whole.str.contains(each)[0] for each in patterns))
        if found.any():
            rows = _texts(octets, places)
            for each in patterns:
                found &= rows.str.contains(each).to_numpy()
        return found

    def _parsed(
        self, begin: int, end: int, made: Sequence[str] = ()
    ) -> tuple[Mapping[str, Any], str]:
        """The values of a row, with those of the named columns that are made, and what is wrong."""
        if end - begin > LIMITS.line_bytes:
            return {}, f"has more than {LIMITS.line_bytes:,} bytes, which no row may have"
        try:
            values = self._form.parse(self._octets[begin:end].rstrip(b"\r\n"))
            return {**values, **{name: self._form.more[name](values) for name in made}}, ""
        except RecursionError:
            return {}, "is nested too deeply"
        except (ValueError, LookupError, TypeError, GristmillError) as error:
            return {}, " ".join(str(error).split())[:300]

    def _record(self, number: int, begin: int, end: int) -> Record:
        values, error = self._parsed(begin, end, [*self._form.more])
        octets = self._octets[begin : min(end, begin + LIMITS.line_bytes)].rstrip(b"\r\n")
        place = f"bytes {begin:,}-{begin + len(octets):,} of {self._size:,}"
        raw = Raw(self.file, place, octets.decode("utf-8", "backslashreplace"))
        rule = f"{self.file}:{number + 1}: {error}: correct the row, or build it again"
        return Record(number, values, raw, rule if error else "")

    def _end(self, begin: int) -> int:
        """Where a row ends that begins at a byte."""
        needle = b"\n" + self._form.begin
        found = self._octets.find(needle, begin)
        return found + 1 if found >= 0 else self._size

    def _bounds(self, begin: int) -> npt.NDArray[np.int64]:
        """Where the rows of a chunk begin, and where the last one ends; one row at least."""
        stop = min(self._size, begin + _CHUNK)
        ends = self._ends(begin, stop)
        if stop < self._size and not len(ends):
            ends = np.array([self._end(begin)])
        elif stop == self._size and (not len(ends) or ends[-1] < stop):
            ends = np.append(ends, stop)
        return np.concatenate([np.array([begin]), ends])

    def _ends(self, begin: int, stop: int) -> npt.NDArray[np.int64]:
        if not self._form.begin:
            octets = np.frombuffer(self._octets[begin:stop], np.uint8)
            found: npt.NDArray[np.int64] = np.flatnonzero(octets == 10) + (begin + 1)
            return found
        ends, at = [], begin
        while (at := self._octets.find(b"\n" + self._form.begin, at, stop)) >= 0:
            at += 1
            ends.append(at)
        return np.array(ends, np.int64)

    def _find(self, number: int, until: float) -> Place | None:
        """The place of a row, None behind the last."""
        with self._lock:
            while not self._done and self._passed.row <= number:
                self._pass(self._passed, self._bounds(self._passed.byte))
                if not self._done and self._passed.row <= number and time.monotonic() > until:
                    raise StillCounting(self.file, self._passed.byte / self._size)
            if self._done and number >= self._passed.row:
                return None
        place = Place(number - number % EVERY, self._places[number // EVERY])
        while place.row < number:
            place = Place(place.row + 1, self._end(place.byte))
        return place

    def _pass(self, place: Place, bounds: npt.NDArray[np.int64]) -> None:
        first = -place.row % EVERY
        self._places.frombytes(bounds[:-1][first::EVERY].astype("<u8").tobytes())
        self._passed = Place(place.row + len(bounds) - 1, int(bounds[-1]))
        if self._passed.byte >= self._size:
            self._done = True
            self._save()

    def _kept(self) -> Path | None:
        if self._keep is None:
            return None
        found = self._stat
        facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        name = repr((str(self.file), facts, self._form.begin, self._form.heading, EVERY))
        return self._keep / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.places"

    def _load(self) -> None:
        self._done = self._begin >= self._size
        path = self._kept()
        try:
            octets = path.read_bytes() if path is not None else b""
        except OSError:
            return
        found = np.frombuffer(octets[: len(octets) // 8 * 8], "<u8")
        places = found[1:].astype(np.int64)
        if len(found) < 2 or -(-int(found[0]) // EVERY) != len(places):
            return
        if places[0] == self._begin and places[-1] < self._size and (np.diff(places) > 0).all():
            self._places, self._done = array("Q", places.tolist()), True
            self._passed = Place(int(found[0]), self._size)

    def _save(self) -> None:
        if (path := self._kept()) is not None:
            keep_file(path, np.array([self._passed.row, *self._places], "<u8").tobytes())

    def _types(self) -> dict[str, Type]:
        """The columns of the first rows, in the order of their first occurrence."""
        seen: dict[str, list[object]] = {}
        place = self._begin
        for _ in range(_FIRST_ROWS):
            if place >= self._size:
                break
            end = self._end(place)
            for name, value in self._parsed(place, end)[0].items():
                if name in seen or len(seen) < _MOST_COLUMNS:
                    seen.setdefault(name, []).append(value)
            place = end
        found: dict[str, Type] = {name: type_of(values) for name, values in seen.items()}
        for name in self._form.more:
            found[name] = "text"
        return found


def _texts(octets: bytes, places: npt.NDArray[np.int64]) -> pl.Series:
    """The texts between places in some bytes, without a copy where these are UTF-8."""
    import polars as pl
    import pyarrow as pa

    try:
        octets.decode()
    except UnicodeDecodeError:
        spans = pairwise(places.tolist())
        return pl.Series([octets[begin:end].decode("utf-8", "replace") for begin, end in spans])
    offsets = pa.py_buffer(places.astype(np.int64).tobytes())
    texts = pa.LargeStringArray.from_buffers(len(places) - 1, offsets, pa.py_buffer(octets))
    found: pl.Series = pl.Series(texts)
    return found


def json_row(octets: bytes) -> Mapping[str, Any]:
    """The values of a line of JSON; those of an object in it are named `outer.inner`."""
    import orjson

    if is_deeper(octets, LIMITS.depth) or has_more_values(octets, LIMITS.values):
        raise ValueError(f"has more than {LIMITS.depth} levels, or {LIMITS.values:,} values")
    row = orjson.loads(octets)
    if not isinstance(row, dict):
        raise ValueError("is no JSON object")
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and value:
            found |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            found[name] = value
    return found


def csv_row(names: Sequence[str]) -> Parse:
    """Returns what parses a line of a table with these columns."""
    import csv

    def parse(octets: bytes) -> Mapping[str, Any]:
        try:
            cells = next(csv.reader([octets.decode()], strict=True), [])
        except csv.Error as error:
            raise ValueError(f"is no row of CSV: {error}") from error
        if len(cells) != len(names):
            raise ValueError(f"has {len(cells)} cells, and the table has {len(names)} columns")
        return dict(zip(names, cells, strict=True))

    return parse


def jsonl(file: Path, rows: int | None, size: int | None, keep: Path | None) -> Lines:
    """The rows of a JSONL file; arguments as for `Lines`."""
    return Lines(file, Form(json_row), rows, size, keep)


def csv_table(file: Path, rows: int | None, size: int | None, keep: Path | None) -> Lines:
    """The rows of a CSV file with a heading; arguments as for `Lines`."""
    try:
        with opened(file) as binary:
            heading = binary.readline(1 << 16)
        names = heading.decode().rstrip("\r\n").split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            file, f"has no heading that can be read ({error}): build it again"
        ) from error
    return Lines(file, Form(csv_row(names), heading=True), rows, size, keep)
