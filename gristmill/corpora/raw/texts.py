"""Any JSON value to a text. Source: `docs/formats/reasoning.md#flattening`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from gristmill.corpora.records import Scalar

BETWEEN: Final = "\n"
"""Joins the items of a list."""
_TEXT_KEYS: Final = ("text", "step", "content", "sentence")
_MARK: Final = "\ufeff"

REASONS: Final = (
    *("json", "object", "columns", "utf8", "shape", "number", "generations", "story"),
    *("answer_id", "step", "step_idx", "question", "answer", "evidence", "surrogate"),
    *("white_space", "value", "group", "python", "unknown_keys"),
    *("messages", "role", "tools", "thinking", "weight", "turns"),
)
"""Why a record may be refused: `docs/formats/reasoning.md#refused-records`."""
_LEFT_OUT: Final = ("evidence", "keep", "split", "dedup", "sample", "cap", "drop", "tree")
"""Those of records that are whole, and that a rule of their corpus leaves out."""

CURES: Final[Mapping[str, str]] = {
    "json": "write an object a line with no comma behind it, or one array of objects",
    "object": 'write an object a line, as {"messages": [..]} of a list of messages, or '
    '{"text": ".."} of a text',
    "number": "write null where there is no number",
}
"""What helps against a reason, where its rule does not say it."""


def is_left_out(reason: str) -> bool:
    """Whether a reason is a rule of a corpus, as `evidence` or `keep:language`, and no damage."""
    return reason.partition(":")[0] in _LEFT_OUT


def is_reason(reason: object) -> bool:
    """Whether a text is the reason of a refused record."""
    return reason in REASONS or (isinstance(reason, str) and is_left_out(reason))


class Unfit(Exception):
    """A raw record that cannot be normalised.

    reason: one of `REASONS`.
    rule: that the record breaks, a sentence.
    """

    def __init__(self, reason: str, rule: str) -> None:
        super().__init__(reason, rule)
        self.reason, self.rule = reason, rule


def canonical(text: str) -> str:
    """A text with LF for CRLF and CR, and without byte order marks at its beginning."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.lstrip(_MARK) if text.startswith(_MARK) else text


def flattened(value: Any) -> str | None:
    """A JSON value as a text, None for null and for lists that hold nothing.

    Raises Unfit for a number that is not finite.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return canonical(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return BETWEEN.join(items(value)) or None
    return _object(value)


def items(values: list[Any]) -> list[str]:
    """The items of a list as texts: flattened, stripped, without those that are empty.

    Raises Unfit for a number that is not finite.
    """
    texts = [(flattened(value) or "").strip() for value in values]
    return [text for text in texts if text]


def text(value: Any) -> str:
    """A JSON value as a text; null is empty. Raises Unfit as `flattened`."""
    if type(value) is str and "\r" not in value and value[:1] != _MARK:
        return value
    return flattened(value) or ""


def chain(value: Any) -> tuple[str | None, list[str] | None]:
    """A chain of thought: its text or None, and its steps if it is a list.

    Raises Unfit as `flattened`.
    """
    if isinstance(value, list):
        steps = items(value)
        return (BETWEEN.join(steps), steps) if steps else (None, None)
    return flattened(value), None


def extra(value: Any) -> Scalar:
    """The value of an extra column: scalars as they are, lists and objects as texts.

    Raises Unfit as `flattened`.
    """
    if isinstance(value, str | list | dict):
        return flattened(value)
    if isinstance(value, float):
        _number(value)
    scalar: Scalar = value
    return scalar


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unfit("number", f"{value} is no finite number")
    return str(int(value)) if value.is_integer() else repr(value)


def _object(value: dict[str, Any]) -> str | None:
    """The first known key of an object, or its JSON."""
    for key in _TEXT_KEYS:
        if key in value:
            return flattened(value[key])
    if not value:
        return None
    try:
        return canonical(
            json.dumps(
                value,
                ensure_ascii=False,
                allow_nan=False,
                sort_keys=True,
                separators=(",", ":"),
            )
        )
    except ValueError as error:
        raise Unfit("number", "an object holds a number that is not finite") from error
