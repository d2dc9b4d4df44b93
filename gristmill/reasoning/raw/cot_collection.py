"""Public forms of cot_collection: the release of CoT-Collection, and tables of FLAN CoT.

Source: `docs/formats/reasoning.md#forms-of-cot_collection`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import chain, extra, text
from gristmill.reasoning.raw.shapes import PUBLIC, Form
from gristmill.reasoning.raw.tables import FLAN


def _public(row: Mapping[str, Any]) -> Record:
    # The public `source` is the question; the seed's `source` says where a record comes from,
    # which is the public `type`.
    cot, steps = chain(row.get("rationale"))
    extras = (extra(row.get("task")), extra(row.get("type")))
    return Record(text(row["source"]), text(row["target"]), cot, extras, steps, PUBLIC)


def _flan(row: Mapping[str, Any]) -> Record:
    cot, _ = chain(row["rationale"])
    extras = (row[FLAN] or None, None)
    return Record(text(row["question"]), text(row["answer"]), cot, extras, shape=FLAN)


FORMS: Final = (
    Form(FLAN, (FLAN, "question", "answer", "rationale"), _flan),
    Form(
        PUBLIC,
        ("source", "target"),
        _public,
        without=("question",),
        optional=("rationale", "task", "type"),
    ),
)
