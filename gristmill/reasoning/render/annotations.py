"""Annotations of arithmetic, `<<48/2=24>>`, in a question and its answer, and the rows of spans.

Only a plain number is a result: `.5`, `6,000`, `1/3` and `$6` are none. Of several `=` the last one
counts. Source: `docs/formats/reasoning.md#spans`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.contract import BadInput

Range = tuple[int, int]

_ANNOTATION: Final = re.compile(r"<<(?P<expression>[^>]*)=(?P<result>\s*-?\d+(?:\.\d+)?\s*)>>")
_PART: Final = re.compile(
    r"(?P<operand>\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)|(?P<operator>[-+*/()%x×÷−])"
)
_BEFORE: Final = 12
"""Characters before an annotation in which the outer `=` is looked for."""
_BUCKETS: Final = ((10, "[0,10)"), (100, "[10,100)"), (1000, "[100,1000)"))
_LARGEST: Final = "[1000+)"
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    **{"trace_id": str, "example_id": str, "example_idx": int, "raw_file": int, "ann_idx": int},
    **{"ann_text": str, "expr_str": str, "C": float, "log_abs_C": float, "magnitude": str},
    **dict.fromkeys(("characters", "bytes", "tokens"), dict),
    **{"result_token_count": int, "result_token_id": int, "skipped": str, "part": str},
}
KEYS: Final = tuple(_TYPES)
"""The keys of a row of spans, in its order."""
_ONE: Final = ("whole", "expression", "result", "inner_eq")
_RANGES: Final = (*_ONE, "outer_eq", "operands", "operators")


class Annotation(NamedTuple):
    """The parts of an annotation as half-open ranges of characters.

    whole: with its brackets. expression, result: without what parts them. inner: the `=` between.
    outer: the `=` before the annotation, None where there is none near.
    """

    whole: Range
    expression: Range
    result: Range
    inner: Range
    outer: Range | None
    operands: tuple[Range, ...]
    operators: tuple[Range, ...]


def text_with_answer(record: Mapping[str, Any]) -> str:
    """The text that annotations are looked for in: question, newline, answer."""
    return f"{record.get('question') or ''}\n{record.get('answer') or ''}"


def annotations_of(text: str) -> Iterator[Annotation]:
    """Yield the annotations of a text, in order."""
    for found in _ANNOTATION.finditer(text) if "<<" in text else ():
        begin, (start, end) = found.start(), found.span("expression")
        outer = text.rfind("=", max(0, begin - _BEFORE), begin)
        parts: dict[str, list[Range]] = {"operand": [], "operator": []}
        for part in _PART.finditer(text, start, end):
            parts[str(part.lastgroup)].append(part.span())
        yield Annotation(
            found.span(),
            (start, end),
            found.span("result"),
            (end, end + 1),
            (outer, outer + 1) if outer >= 0 else None,
            tuple(parts["operand"]),
            tuple(parts["operator"]),
        )


def facts(text: str, found: Annotation) -> dict[str, Any]:
    """What an annotation says: its texts, its result as a number, and how large that is."""
    value = float(text[slice(*found.result)])
    size = abs(value)
    return {
        "ann_text": text[slice(*found.whole)],
        "expr_str": text[slice(*found.expression)].strip(),
        "C": value,
        "log_abs_C": math.log(size + 1),
        "magnitude": next((name for most, name in _BUCKETS if size < most), _LARGEST),
    }


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of `<corpus>/<split>.spans.jsonl`, in its order.

    Raises BadInput with the line for one that is not of this form, or where there is no file.
    """
    if not path.is_file():
        raise BadInput(path, "is not there: build reasoning/spans")
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadInput(path, f"is not JSON ({error}): build it again", number) from error
            if not _is_row(row):
                raise BadInput(path, "is no row of spans: build it again", number)
            yield row


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and tuple(row) == KEYS
        and all(type(row[name]) is kind for name, kind in _TYPES.items())
        and all(_are_ranges(row[unit]) for unit in ("characters", "bytes", "tokens"))
    )


def _are_ranges(found: dict[str, Any]) -> bool:
    if tuple(found) != _RANGES:
        return False
    several = [found["operands"], found["operators"]]
    if not all(isinstance(each, list) for each in several):
        return False
    outer = [] if found["outer_eq"] is None else [found["outer_eq"]]
    pairs = [*(found[name] for name in _ONE), *outer, *several[0], *several[1]]
    return all(
        isinstance(pair, list) and len(pair) == 2 and all(type(each) is int for each in pair)
        for pair in pairs
    )
