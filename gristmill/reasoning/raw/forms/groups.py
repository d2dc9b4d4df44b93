"""Forms whose rows are steps of a record. Source: `docs/formats/reasoning.md#forms-of-reveal`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.reasoning.format.corpora import Corpus, Form
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import BETWEEN, REASONS, Unfit, flattened, text
from gristmill.reasoning.raw.forms.templates import Row
from gristmill.reasoning.raw.forms.values import Names, column, read_of

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
