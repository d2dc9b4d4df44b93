"""The reader of each corpus: a raw row of any known form to a record.

See also `shapes.py`: forms. Source: `docs/formats/reasoning.md#forms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gristmill.reasoning.format.corpora import Corpus
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw import cot_collection, metamath, openr1, reveal, trip, wiqa
from gristmill.reasoning.raw.flatten import Unfit
from gristmill.reasoning.raw.shapes import PUBLIC, Form, seed_form

Place = tuple[int, int]
"""Number of a file in its split from 0, and row in it from 1."""

_FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "cot_collection": cot_collection.FORMS,
    "openr1_math_220k": openr1.FORMS,
    "reasoning_traces": metamath.FORMS,
    "trip": trip.FORMS,
    "wiqa": wiqa.FORMS,
}
_SHOWN: Final = 20


class Reader:
    """Reads the rows of one split of a corpus in order.

    corpus: whose rows they are.

    Memory: nothing for most corpora; the rows of the split for reveal.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._forms = (*_FORMS.get(corpus.name, ()), seed_form(corpus))
        self._answers = reveal.Answers() if corpus.name == "reveal" else None

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
        columns = ", ".join(list(row)[:_SHOWN])[:500]
        rule = f"has the columns {columns}; the known forms of {self.corpus.name} are "
        raise Unfit("shape", rule + ", ".join(known))

    def rest(self) -> Iterator[tuple[Place, Record]]:
        """Records that were made of several rows, with the place of their first row."""
        return iter(()) if self._answers is None else self._answers.records()
