"""Annotations of arithmetic, `<<48/2=24>>`, in a question and its answer, and where each part is.

Only a plain number is a result: `.5`, `6,000`, `1/3` and `$6` are none. Of several `=` the last one
counts. Source: `docs/formats/reasoning.md#spans`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Range = tuple[int, int]

_ANNOTATION: Final = re.compile(r"<<(?P<expression>[^>]*)=(?P<result>\s*-?\d+(?:\.\d+)?\s*)>>")
_PART: Final = re.compile(
    r"(?P<operand>\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)|(?P<operator>[-+*/()%x×÷−])"
)
_BEFORE: Final = 12
"""Characters before an annotation in which the outer `=` is looked for."""
_BUCKETS: Final = ((10, "[0,10)"), (100, "[10,100)"), (1000, "[100,1000)"))
_LARGEST: Final = "[1000+)"


class Annotation(NamedTuple):
    """The parts of an annotation as half-open ranges of characters.

    whole: with its brackets. expression, result: without what parts them. inner: the `=` between.
    outer: the `=` before the annotation, None where there is none near.
    operands, operators: numbers and signs of the expression, in order.
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
