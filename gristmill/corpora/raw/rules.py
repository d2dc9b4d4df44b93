"""Which records of a corpus stay, and forms whose rows are steps of one record.

The rules are `keep`, `split`, `dedup`, and share and cap of `sample`. What is drawn is drawn by
hashes of texts, so that it is the same on every machine.
Source: `docs/formats/reasoning.md#corpus-files`, `docs/formats/reasoning.md#forms-of-reveal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappush, heappushpop
from typing import Any, Final, NamedTuple

from gristmill.contract import GristmillError
from gristmill.corpora.corpus import ROLES, Corpus, Form
from gristmill.corpora.raw.texts import BETWEEN, REASONS, ClassName, Unfit, flattened, text, truth
from gristmill.corpora.raw.transforms import Row
from gristmill.corpora.raw.values import Names, column, read_of
from gristmill.corpora.records import Record
from gristmill.settings.fields import did_you_mean

MOST_BYTES: Final = 256 << 20
"""Bytes of the texts of one split, at most."""
_ROW_BYTES: Final = 500
Place = tuple[int, int]
"""Number of a file in its split from 0, and row in it from 1."""


@dataclass
class _Held:
    """What the rows of one record have in common, and its steps.

    place: of its first row. extras: of each extra the texts, with the number of their step.
    """

    place: Place
    question: str
    answer: str
    extras: list[dict[tuple[int, str], None]]
    steps: dict[int, str] = field(default_factory=dict)


class Group:
    """The rows of a split by record. Rows of one record may be anywhere in the split.

    form: with `group`; question and answer are those of a record's first row, each row's `cot` is
        a step, and an extra has its texts of all rows, each once.
    """

    def __init__(
        self, corpus: Corpus, form: Form, names: Names, most_bytes: int = MOST_BYTES
    ) -> None:
        group, values = form.group or {}, form.values
        self._corpus, self._shape = corpus.name, form.name
        self._by, self._order = group["by"], group["order"]
        self._key, self._number = column(self._by, names), column(self._order, names)
        self._step_name = str(values["cot"])
        self._step = read_of(values["cot"], names)
        self._question = read_of(values["question"], names)
        self._answer = read_of(values.get("answer", {"constant": ""}), names)
        self._extras = [
            read_of(values[name], names) if name in values else None
            for name in corpus.extra_columns
        ]
        self._held: dict[str, _Held] = {}
        self._left = most_bytes
        self.rows = 0

    def add(self, row: Row, place: Place) -> None:
        """Take a row.

        Raises Unfit for a row without a key, step or number, GristmillError where the rows of
        the split are too large together.
        """
        key, number = text(self._key(row)).strip(), self._whole(self._number(row))
        if not key:
            raise self._unfit(self._by, f"its {self._by} is empty")
        step = text(self._step(row)).strip()
        if not step:
            raise self._unfit(self._step_name, f"its {self._step_name} is empty")
        extras = [
            "" if read is None else (flattened(read(row)) or "").strip() for read in self._extras
        ]
        question, answer = text(self._question(row)), text(self._answer(row))
        self._left -= _ROW_BYTES + sum(map(len, (key, step, question, answer, *extras)))
        if self._left < 0:
            raise GristmillError(
                f"the rows of one split of {self._corpus} have more than {MOST_BYTES:,} bytes of "
                "text: give one row a record, or divide the files by split"
            )
        if (held := self._held.get(key)) is None:
            held = _Held(place, question, answer, [{} for _ in extras])
            self._held[key] = held
        # A step has a row for each of its evidences.
        held.steps.setdefault(number, step)
        for texts, found in zip(held.extras, extras, strict=True):
            if found:
                texts[number, found] = None
        self.rows += 1

    def records(self) -> Iterator[tuple[Place, Record]]:
        """The records with the place of their first row, in the order of these."""
        for held in self._held.values():
            steps = [held.steps[number] for number in sorted(held.steps)]
            extras = tuple(map(_joined, held.extras))
            cot = BETWEEN.join(steps) or None
            yield (
                held.place,
                Record(held.question, held.answer, cot, extras, steps or None, self._shape),
            )

    def _unfit(self, name: str, rule: str) -> Unfit:
        return Unfit(name if name in REASONS else "group", rule)

    def _whole(self, value: Any) -> int:
        try:
            if isinstance(value, str) and len(value) < 20:
                return int(value)
            if isinstance(value, int | float) and value == int(value):
                return int(value)
        except (ValueError, OverflowError):
            pass
        raise self._unfit(self._order, f"{self._order} {str(value)[:40]!r} is no whole number")


def _joined(texts: Iterable[tuple[int, str]]) -> str | None:
    """The texts in the order of their steps, each once."""
    by_step = sorted(texts, key=lambda numbered: numbered[0])
    return BETWEEN.join(dict.fromkeys(text for _, text in by_step)) or None


SEED: Final = 1337
_SHOWN: Final = 40
_TESTS: Final = ("in", "not_in", "equals", "chars", "at_least", "at_most", "present")
_MEANT: Final = {
    **dict.fromkeys(("min", "minimum", "least", "gte", "ge"), "at_least"),
    **dict.fromkeys(("max", "maximum", "most", "lte", "le"), "at_most"),
}
"""Names that people write for tests that do not look like them."""
_EMPTY: Final[Row] = {}


def drawn(key: str, seed: int, salt: str) -> float:
    """A number from 0 to 1 that a text draws: of the hash of `<seed>:<salt>:<key>`."""
    data = f"{seed}:{salt}:{key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") / 2.0**64


class Drawn(NamedTuple):
    """The last of the numbers that a cap keeps, and how many records with that number it keeps."""

    number: float
    records: int


class Rules:
    """The rules of a corpus for one split.

    split: whose records stay where rows are divided; None: those of all splits.
    last: of the records that the cap keeps; None (default) keeps all, to find it out.

    Raises ValueError, naming the key, for a rule that is wrong. Memory: 100 bytes a record where
    `dedup` is set, and up to the cap where `sample` has one.
    """

    def __init__(self, corpus: Corpus, split: str | None, last: Drawn | None = None) -> None:
        names = Names()
        self._keep = [_Keep(each, names) for each in corpus.keep]
        self._fields = (*ROLES, *corpus.extra_columns)
        self._id = None if corpus.id is None else column(corpus.id, names)
        self._dedup = [(name, self._value("dedup", name, names)) for name in corpus.dedup]
        self._seen: list[set[int]] = [set() for _ in self._dedup]
        self._sample, self._split, self._wanted = corpus.sample, corpus.split, split
        by = (corpus.split or {}).get("by")
        self._by = None if by is None else self._value("split", by, names)
        self.columns = names.columns
        self._cap: int | None = (corpus.sample or {}).get("cap")
        self._least: list[float] = []
        self._wanted_last, self._ties = last, last.records if last else 0
        self.is_empty = not (corpus.dedup or corpus.sample or corpus.split)

    def _value(self, rule: str, name: str, names: Names) -> Callable[[Row, Record], Any]:
        """What reads a value of the record where it has the name, else a column of the row."""
        if name in ROLES:
            return lambda row, record: getattr(record, name)
        if name in self._fields:
            place = self._fields.index(name) - len(ROLES)
            return lambda row, record: record.extras[place]
        try:
            get = column(name, names)
        except ValueError as error:
            raise ValueError(f"{rule}: {error}") from error
        return lambda row, record: get(row)

    def id_of(self, row: Row) -> str | None:
        """The id of a row, None where the recipe names none, or the row has none."""
        return None if self._id is None else flattened(self._id(row)) or None

    def check_row(self, row: Row) -> None:
        """Raise Unfit for a row that `keep` leaves out."""
        for keep in self._keep:
            keep.check(row)

    def check(self, record: Record, row: Row = _EMPTY) -> None:
        """Raise Unfit for a record that another rule leaves out. row: that it was read from."""
        if self.is_empty:
            return
        key = self._key(record, row)
        is_divided = self._split is not None and self._wanted is not None
        if is_divided and (split := self.split_of(record, row)) != self._wanted:
            raise Unfit(f"split:{split}", f"belongs to the split {split}")
        for (name, value), seen in zip(self._dedup, self._seen, strict=True):
            said = text(value(row, record)).encode("utf-8", "surrogatepass")
            digest = int.from_bytes(blake2b(said, digest_size=8).digest(), "big")
            if digest in seen:
                raise Unfit(f"dedup:{name}", f"its {name} is that of a record before it")
            seen.add(digest)
        if self._sample is not None:
            number = drawn(key, self._sample.get("seed", SEED), "sample")
            if number >= (share := self._sample.get("share", 1.0)):
                raise Unfit("sample", f"is not in the sample of {share:g}")
            if self._cap is not None:
                self._check_cap(number, self._cap)

    def _check_cap(self, number: float, cap: int) -> None:
        """Raise Unfit for a record behind the last that stays; without it, count the number."""
        if (last := self._wanted_last) is None:
            push = heappush if len(self._least) < cap else heappushpop
            push(self._least, -number)
            return
        if number == last.number and self._ties:
            self._ties -= 1
        elif number >= last.number:
            raise Unfit("cap", f"is not among the {cap:,} records with the least numbers")

    @property
    def last(self) -> Drawn | None:
        """The last record that the cap keeps, of those that were checked; None where all stay."""
        if not self._least:
            return None
        number = -self._least[0]
        return Drawn(number, self._least.count(-number))

    def _key(self, record: Record, row: Row) -> str:
        if (found := self.id_of(row)) is not None:
            return found
        return "\0".join((record.question, record.answer, record.cot or ""))

    def split_of(self, record: Record, row: Row) -> str:
        """The split that the rule gives a record; train where there is no rule."""
        key = self._key(record, row) if self._by is None else text(self._by(row, record))
        rule = self._split or {}
        place, begin = drawn(key, rule.get("seed", SEED), "split"), 0.0
        for name in ("validation", "test"):
            begin += rule.get(name, 0.0)
            if place < begin:
                return name
        return "train"


class _Keep:
    """One rule of `keep`: rows whose column passes its tests stay."""

    def __init__(self, rule: Mapping[str, Any], names: Names) -> None:
        if not isinstance(rule, Mapping) or not isinstance(rule.get("column"), str):
            raise ValueError('keep: a rule is a table as { column = "language", in = ["en"] }')
        self._name = rule["column"]
        tests = {key: value for key, value in rule.items() if key != "column"}
        for key, value in tests.items():
            if key not in _TESTS:
                known = ", ".join(_TESTS)
                hint = did_you_mean(_MEANT.get(key, key), _TESTS)
                raise ValueError(f"keep: unknown key {key!r}{hint}; known: column, {known}")
            if problem := _problem(key, value):
                raise ValueError(f"keep: `{key}` must be {problem}")
        if not tests:
            raise ValueError(f"keep: the rule for {self._name} has none of {', '.join(_TESTS)}")
        self._tests, self._get = tests, column(self._name, names)

    def check(self, row: Row) -> None:
        value = self._get(row)
        for key, wanted in self._tests.items():
            if not _passes(key, value, wanted):
                shown = repr((flattened(value) or "")[:_SHOWN])
                raise Unfit(f"keep:{self._name}", f"its {self._name} is {shown}, against `{key}`")


def _problem(key: str, value: object) -> str | None:
    """What the value of a test must be, None where it is right."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if key in ("in", "not_in"):
        return None if isinstance(value, list) and value else "a list of values"
    if key in ("at_least", "at_most"):
        return None if is_number else "a number"
    if key == "present":
        return None if isinstance(value, bool) else "true or false"
    if key == "chars":
        numbers = isinstance(value, list) and [type(each) for each in value] == [int, int]
        return None if numbers else "two whole numbers, the least and the most"
    return None if isinstance(value, str | int | float | bool) else "a text or a number"


def _passes(key: str, value: Any, wanted: Any) -> bool:
    if key in ("at_least", "at_most"):
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return False
        try:
            number = float(value)
        except ValueError:
            return False
        return bool(number >= wanted if key == "at_least" else number <= wanted)
    if key in ("chars", "present"):
        said = flattened(value) or ""
        is_there = bool(said.strip()) is bool(wanted)
        return is_there if key == "present" else bool(wanted[0] <= len(said) <= wanted[1])
    if key == "equals":
        return _equals(value, wanted)
    return any(_equals(value, each) for each in wanted) == (key == "in")


def _equals(value: Any, wanted: Any) -> bool:
    """Whether a value is the one of a test; a truth value is also its word in a table."""
    if type(value) is type(wanted) and value == wanted:
        return True
    said = flattened(value)
    if isinstance(wanted, bool):
        said = flattened(truth(said))
    elif isinstance(value, ClassName) and said != wanted:
        said = str(int(value))
    return said == flattened(wanted)
