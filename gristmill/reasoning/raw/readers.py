"""The reader of each corpus: a raw row of any known form to a record; forms of cot_collection.

See also `shapes.py`: forms. Source: `docs/formats/reasoning.md#forms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.reasoning.format.corpora import Corpus
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw import metamath, openr1, reveal, trip, wiqa
from gristmill.reasoning.raw.flatten import Unfit, chain, extra, text
from gristmill.reasoning.raw.shapes import PUBLIC, Form, columns_in, seed_form
from gristmill.reasoning.raw.tables import FLAN

Place = tuple[int, int]
"""Number of a file in its split from 0, and row in it from 1."""


def _cot_public(row: Mapping[str, Any]) -> Record:
    # The public `source` is the question; the seed's `source` says where a record comes from,
    # which is the public `type`.
    cot, steps = chain(row.get("rationale"))
    extras = (extra(row.get("task")), extra(row.get("type")))
    return Record(text(row["source"]), text(row["target"]), cot, extras, steps, PUBLIC)


def _cot_flan(row: Mapping[str, Any]) -> Record:
    cot, _ = chain(row["rationale"])
    extras = (row[FLAN] or None, None)
    return Record(text(row["question"]), text(row["answer"]), cot, extras, shape=FLAN)


_REVEAL: Final = "reveal"
_FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "cot_collection": (
        Form(FLAN, (FLAN, "question", "answer", "rationale"), _cot_flan),
        Form(
            PUBLIC,
            ("source", "target"),
            _cot_public,
            without=("question",),
            optional=("rationale", "task", "type"),
        ),
    ),
    "openr1_math_220k": openr1.FORMS,
    "reasoning_traces": metamath.FORMS,
    "trip": trip.FORMS,
    "wiqa": wiqa.FORMS,
}


def columns_of(corpus: Corpus) -> frozenset[str]:
    """The columns that a form of a corpus reads, or looks for.

    corpus: any.
    """
    forms = (*_FORMS.get(corpus.name, ()), seed_form(corpus))
    read = (name for form in forms for name in (*form.columns, *form.without, *form.optional))
    return frozenset((*read, *(reveal.READ if corpus.name == _REVEAL else ())))


class Reader:
    """Reads the rows of one split of a corpus in order.

    corpus: whose rows they are.

    Memory: nothing for most corpora; the rows of the split for reveal.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._forms = (*_FORMS.get(corpus.name, ()), seed_form(corpus))
        self._answers = reveal.Answers() if corpus.name == _REVEAL else None

    def read(self, row: Mapping[str, Any], place: Place) -> Record | None:
        """The record of a row; None where it is a part of a record that `rest` gives.

        row: of any known form.
        place: of the row.

        Raises Unfit for a row that cannot be normalised.
        """
        if self._answers is not None and reveal.fits(row):
            self._answers.add(row, place)
            return None
        for form in self._forms:
            if form.fits(row):
                return form.read(row)
        known = [str(form) for form in self._forms]
        if self._answers is not None:
            known.insert(0, f"{PUBLIC} ({', '.join(reveal.COLUMNS)})")
        rule = f"{columns_in(row)}; the known forms of {self.corpus.name} are {', '.join(known)}"
        raise Unfit("shape", rule + _nearly(self._forms, row))

    def rest(self) -> Iterator[tuple[Place, Record]]:
        """Records that were made of several rows, with the place of their first row."""
        return iter(()) if self._answers is None else self._answers.records()


def _nearly(forms: Sequence[Form], row: Mapping[str, Any]) -> str:
    """Which columns a row lacks of the form that comes nearest; empty where it has none of any."""
    lacks = [(form, [name for name in form.columns if name not in row]) for form in forms]
    near = [
        (len(lacked), form, lacked) for form, lacked in lacks if 0 < len(lacked) < len(form.columns)
    ]
    if not near:
        return ""
    _, form, lacked = min(near, key=lambda each: each[0])
    return f"; of {form.name} it lacks {', '.join(lacked)}"
