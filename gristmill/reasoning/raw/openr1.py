"""The public form of openr1_math_220k: which of several generations is the chain of thought.

Source: `docs/formats/reasoning.md#forms-of-openr1_math_220k`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import Unfit, chain, text
from gristmill.reasoning.raw.shapes import PUBLIC, Form

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_COMPLETE: Final = "is_reasoning_complete"
_VERIFIED: Final = ("correctness_math_verify", "correctness_llama")
"""Columns of verdicts, the better one first."""


def thought(generation: str) -> str | None:
    """The thought of a generation, None where it is incomplete.

    generation: a text with `<think>`, the thought, `</think>` and the solution. A text without
        the first begins in the thought; one without the last is incomplete. Of an empty
        thought, the text after it counts.
    """
    before, closed, after = generation.partition(_CLOSE)
    if not closed:
        return None
    inner = before.rpartition(_OPEN)[2] if _OPEN in before else before
    return inner.strip() or after.strip() or None


def _verdicts(row: Mapping[str, Any], column: str) -> list[Any]:
    verdicts = row.get(column)
    return verdicts if isinstance(verdicts, list) else []


def _cot(row: Mapping[str, Any]) -> str | None:
    generations = row["generations"]
    if generations is None:
        generations = []
    if not isinstance(generations, list):
        raise Unfit("generations", "its generations are no list")
    complete = _verdicts(row, _COMPLETE)
    for column in _VERIFIED:
        for generation, *verdicts in zip(
            generations, complete, _verdicts(row, column), strict=False
        ):
            if all(verdict is True for verdict in verdicts):
                found = thought(text(generation))
                if found is not None:
                    return found
    solution, _ = chain(row.get("solution"))
    return solution if solution and solution.strip() else None


def _public(row: Mapping[str, Any]) -> Record:
    cot = _cot(row)
    return Record(text(row["problem"]), text(row["answer"]), cot, (None,), shape=PUBLIC)


FORMS: Final = (
    Form(
        PUBLIC,
        ("problem", "answer", "generations"),
        _public,
        without=("prompt",),
        optional=(_COMPLETE, *_VERIFIED, "solution"),
    ),
)
