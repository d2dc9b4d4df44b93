"""What the columns of a table hold: histograms, frequent values and words, lengths; in one pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.browse.source import Looked, Table, keep_file
from gristmill.browse.table import SECONDS, Column, StillCounting, Where

if TYPE_CHECKING:
    import polars as pl

FORM: Final = 1
"""Of the kept files; another number leaves those that stand."""
_BARS, _FINE = 20, 2_000
"""Bars of a histogram, and the classes that are counted for it."""
_SHOWN, _COUNTED = 8, 4_096
"""Frequent values that are shown, and those that are counted at a time."""
_HASHES: Final = 1 << 16
"""Distinct values that are counted exactly; of more the number is within a percent or so."""
_FEW: Final = 12
"""Distinct numbers that are shown as values, not as a histogram."""
_SAMPLED, _CHARACTERS = 2_000, 400
"""Texts of a step whose words are counted, and characters of each."""
_LONGEST: Final = 200
"""Characters of a value that is counted as one."""


class Bar(NamedTuple):
    """How many rows have a value from `begin` to `end`, which of whole numbers is one of them."""

    begin: float
    end: float
    rows: int


@dataclass(frozen=True)
class Held:
    """What a column holds.

    rows: all of them. empty: those without a value, or with "". distinct: values; `exactly` says
    whether that is counted, not estimated. bars: of numbers, or where `of_lengths`, of the
    characters of texts or the members of lists. values: the most frequent ones, with their counts.
    words: of the first characters of some texts, likewise.
    """

    rows: int
    empty: int
    distinct: int
    exactly: bool = True
    of_lengths: bool = False
    bars: Sequence[Bar] = ()
    values: Sequence[tuple[str, int]] = ()
    words: Sequence[tuple[str, int]] = ()


class _Histogram:
    """Counts of numbers in classes of a power of ten, which widens with their range."""

    def __init__(self, is_whole: bool) -> None:
        self._whole, self._width = is_whole, 0.0
        self._classes = self._counts = np.zeros(0, np.int64)

    def add(self, values: npt.NDArray[np.float64]) -> None:
        if not len(values):
            return
        low, high = float(values.min()), float(values.max())
        if not self._width:
            span = max(high - low, abs(high) * 1e-6, 1e-9)
            power = float(10.0 ** np.ceil(np.log10(span / _FINE)))
            self._width = max(1.0, power) if self._whole else power
        while (high - low) / self._width >= _FINE:
            self._merge(self._classes // 10, self._counts, 10 * self._width)
        at = np.floor(values / self._width).astype(np.int64)
        counts = np.bincount(at - at.min())
        classes = np.append(self._classes, np.arange(len(counts)) + at.min())
        self._merge(classes, np.append(self._counts, counts), self._width)
        while np.ptp(self._classes) >= _FINE:
            self._merge(self._classes // 10, self._counts, 10 * self._width)

    def _merge(self, classes: Any, counts: Any, width: float) -> None:
        self._classes, where = np.unique(classes, return_inverse=True)
        self._counts = np.bincount(where, counts, len(self._classes)).astype(np.int64)
        self._width = width

    def bars(self) -> list[Bar]:
        """At most `_BARS` of them, whose ends are round numbers."""
        if not len(self._classes):
            return []
        steps = (base * 10**power for power in range(5) for base in (1, 2, 5))
        first, last = self._classes[[0, -1]].tolist()
        step = next(each for each in steps if last // each - first // each < _BARS)
        counts = np.bincount(self._classes // step - first // step, self._counts).astype(int)
        ends = ((first // step + at) * step * self._width for at in range(len(counts) + 1))
        rounded = [float(f"{each:.9g}") for each in ends]
        last_of = 1 if self._whole else 0
        return [
            Bar(begin, end - last_of, count)
            for begin, end, count in zip(rounded, rounded[1:], counts.tolist(), strict=False)
        ]


class _Frequent:
    """The most frequent of some values, within a bound: counts of dropped ones are lost."""

    def __init__(self) -> None:
        self._held: list[pl.DataFrame] = []

    def add(self, counted: pl.DataFrame) -> None:
        """counted: columns `value` and `count`."""
        import polars as pl

        both = pl.concat([*self._held, counted.top_k(_COUNTED, by="count")])
        together = both.group_by("value").agg(pl.col("count").sum())
        self._held = [together.top_k(_COUNTED, by="count")]

    def first(self) -> list[tuple[str, int]]:
        order = [each.sort("count", "value", descending=[True, False]) for each in self._held]
        return [(str(value), count) for each in order for value, count in each.head(_SHOWN).rows()]


class _Of:
    """What one column holds, so far."""

    def __init__(self, column: Column) -> None:
        self._type = column.type
        self._rows = self._empty = 0
        self._is_number = column.type in ("integer", "number")
        self._numbers = _Histogram(column.type != "number")
        self._values, self._words = _Frequent(), _Frequent()
        self._hashes = np.zeros(0, np.uint64)
        self._sampled = self._found = 0

    def add(self, values: pl.Series) -> None:
        import polars as pl

        if self._type in ("truth", "text"):  # as filters compare it; of nulls alone it has no type
            values = values.cast(pl.String)
        self._rows += len(values)
        held = values.drop_nulls()
        if self._type == "text":
            held = held.filter(held != "")
        elif held.dtype.is_float():
            held = held.filter(held.is_finite())
        self._empty += len(values) - len(held)
        if self._is_number or self._type == "list":
            self._numbers.add(held.to_numpy().astype(np.float64, copy=False))
        elif self._type == "text":
            self._numbers.add(held.str.len_chars().to_numpy().astype(np.float64))
        if self._type != "list" and len(held):
            self._count(held)

    def _count(self, held: pl.Series) -> None:
        import polars as pl

        counted = held.alias("value").value_counts(name="count")
        hashes = counted["value"].hash().to_numpy()
        if len(self._hashes) == _HASHES:
            hashes = hashes[hashes < self._hashes[-1]]
        both = np.sort(np.concatenate([self._hashes, hashes]), kind="stable")
        self._hashes = both[np.append(True, both[1:] != both[:-1])][:_HASHES]
        if self._is_number and len(self._hashes) > _COUNTED:
            return
        if self._type == "text":
            some = held.gather_every(max(1, len(held) // _SAMPLED))
            found = some.str.slice(0, _CHARACTERS).str.to_lowercase().str.extract_all(r"\p{L}{4,}")
            words = found.explode().drop_nulls().alias("value")
            self._words.add(words.value_counts(name="count"))
            self._sampled, self._found = self._sampled + len(some), self._found + len(words)
        if 2 * len(counted) <= len(held) or len(held) <= _COUNTED:
            if self._type == "text":
                counted = counted.with_columns(pl.col("value").str.slice(0, _LONGEST))
            self._values.add(counted)

    def held(self) -> Held:
        distinct, exactly = len(self._hashes), len(self._hashes) < _HASHES
        if not exactly:
            distinct = int((_HASHES - 1) / (float(self._hashes[-1]) / 2.0**64))
        found = self._rows - self._empty
        values = self._values.first() if distinct <= _FEW or not self._is_number else []
        is_named = self._is_number or self._type == "truth"
        if not is_named and (distinct * 2 > found > _FEW or any(len(v) > 60 for v, _ in values)):
            values = []
        return Held(
            self._rows,
            self._empty,
            min(distinct, found),
            exactly,
            of_lengths=not self._is_number,
            bars=[] if self._is_number and values else self._numbers.bars(),
            values=values,
            words=[] if values or self._found < 3 * self._sampled else self._words.first(),
        )


class Statistics:
    """What the columns of a table hold, counted some seconds at a time, and kept.

    path: the file that keeps them between processes, None for none. Columns that are made for each
    row, as decoded text, are left out.
    """

    def __init__(self, table: Table, path: Path | None) -> None:
        self._table, self._path = table, path
        self._lock = threading.Lock()
        self._columns = [each for each in table.columns if each.sortable or each.type == "list"]
        self._of: dict[str, _Of] = {}
        self._looks: Iterator[Looked] | None = None
        self.known: Mapping[str, Held] | None = self._load()

    def ask(self, seconds: float = SECONDS) -> Mapping[str, Held]:
        """Returns what each column holds. Raises StillCounting after a time; ask again."""
        until = time.monotonic() + seconds
        with self._lock:
            if self.known is not None:
                return self.known
            if self._looks is None:
                self._of = {each.name: _Of(each) for each in self._columns}
                lists = frozenset(each.name for each in self._columns if each.type == "list")
                self._looks = self._table.look(Where(None, tuple(self._of), lengths=lists))
            try:
                for looked in self._table.until(until, self._looks):
                    for name, of in self._of.items():
                        of.add(looked.frame[name])
            except StillCounting:
                raise
            except BaseException:
                self._looks = None  # a look that failed has ended, and not with the last row
                raise
            self.known = {name: of.held() for name, of in self._of.items()}
            self._of, self._looks = {}, None
            self._save(self.known)
            return self.known

    def _load(self) -> Mapping[str, Held] | None:
        import orjson

        try:
            found = orjson.loads(self._path.read_bytes()) if self._path is not None else None
            return found and {name: _read(each) for name, each in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            return None

    def _save(self, known: Mapping[str, Held]) -> None:
        import orjson

        if self._path is not None:
            held = {name: asdict(each) for name, each in known.items()}
            keep_file(self._path, orjson.dumps(held, default=tuple))


def _read(found: dict[str, Any]) -> Held:
    bars = [Bar(*each) for each in found.pop("bars")]
    values, words = ([(str(a), int(b)) for a, b in found.pop(name)] for name in ("values", "words"))
    return Held(**found, bars=bars, values=values, words=words)
