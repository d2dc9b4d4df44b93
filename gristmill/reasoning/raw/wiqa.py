"""Public forms of wiqa: flat as the hub has it, and nested as the authors have it.

Source: `docs/formats/reasoning.md#forms-of-wiqa`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import Unfit, chain, text
from gristmill.reasoning.raw.shapes import PUBLIC, Form

NESTED: Final = "nested"
"""Name of the form with the objects `question` and `metadata`."""
_STEM: Final = re.compile(r"suppose (.*?) happens, how will it affect (.*)", re.DOTALL)


def effects(stem: str) -> tuple[str | None, str | None, None]:
    """Perturbation, first effect and second effect of a question; all None for another text."""
    match = _STEM.search(stem)
    if match is None:
        return None, None, None
    return match[1].strip(), match[2].strip().removesuffix("."), None


def _record(stem: Any, answer: Any, steps: Any, shape: str) -> Record:
    question = text(stem)
    cot, kept = chain(steps)
    return Record(question, text(answer), cot, effects(question), kept, shape)


def _flat(row: Mapping[str, Any]) -> Record:
    steps = row["question_para_step"]
    return _record(row["question_stem"], row["answer_label"], steps, PUBLIC)


def _nested(row: Mapping[str, Any]) -> Record:
    question = row["question"]
    if not isinstance(question, dict) or "stem" not in question:
        raise Unfit("shape", "its question is no object with a stem")
    steps = question.get("para_steps")
    return _record(question["stem"], question.get("answer_label"), steps, NESTED)


FORMS: Final = (
    Form(PUBLIC, ("question_stem", "question_para_step", "answer_label"), _flat, ("para_steps",)),
    Form(NESTED, ("question", "metadata"), _nested, without=("question_stem",)),
)
