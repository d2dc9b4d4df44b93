"""Forms of raw records: how one is recognised and read; the seed's form of every corpus.

See also `readers.py`: which forms a corpus has.
Source: `docs/formats/reasoning.md#forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gristmill.reasoning.format.corpora import Corpus
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import Unfit, chain, extra, text

SEED: Final = "seed"
"""Name of the form with the columns that the seed names; gsm8k is published in it."""
PUBLIC: Final = "public"
"""Name of the form of the public release."""

_SHOWN: Final = 20
_LONGEST: Final = 500

Read = Callable[[Mapping[str, Any]], Record]
"""Takes a raw row, gives the record. Raises flatten.Unfit."""


@dataclass(frozen=True)
class Form:
    """One form of a corpus' raw records.

    name: as the record of a build counts it.
    columns: that a row of this form has, null or not.
    read: a row to a record.
    without: columns that a row of this form does not have.
    optional: further columns that are read where a row has them.
    """

    name: str
    columns: tuple[str, ...]
    read: Read
    without: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has this form."""
        for column in self.columns:
            if column not in row:
                return False
        return not (self.without and any(column in row for column in self.without))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.columns)})"


def seed_form(corpus: Corpus) -> Form:
    """The form with the columns that the seed names.

    corpus: whose columns they are. An answer that is missing is empty, a cot or extra is null.
    """
    question, answer, cot = corpus.question_column, corpus.answer_column, corpus.cot_column
    extras = corpus.extra_columns

    def read(row: Mapping[str, Any]) -> Record:
        made, steps = (None, None) if cot is None else chain(row.get(cot))
        values = tuple([extra(row.get(name)) for name in extras])
        return Record(text(row[question]), text(row.get(answer)), made, values, steps)

    others = (answer, *extras) if cot is None else (answer, cot, *extras)
    return Form(SEED, (question,), read, optional=others)


def with_columns(unfit: Unfit, corpus: Corpus, row: object) -> Unfit:
    """Why a row is refused; of an answer that is empty, whether its column is missing."""
    answer, cot = corpus.answer_column, corpus.cot_column
    if unfit.reason != "answer" or not isinstance(row, dict) or answer in row:
        return unfit
    missing = answer if cot is None or cot in row else f"{answer}, and {cot} too"
    return Unfit("answer", f"lacks the column {missing}; {columns_in(row)}")


def columns_in(row: Mapping[str, Any]) -> str:
    """The part of a rule that says which columns a row has. row: of any form."""
    return f"has the columns {', '.join(list(row)[:_SHOWN])[:_LONGEST]}"
