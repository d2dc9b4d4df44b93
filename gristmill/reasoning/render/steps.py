"""The steps of a rendered text. Source: `docs/formats/reasoning.md#step-rules`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from gristmill.reasoning.render import regions
from gristmill.reasoning.render.regions import Range
from gristmill.reasoning.render.text import Rendered

TOLERANCE: Final = 1e-3
"""Largest difference, relative to a result above 1, else absolute."""

_LONGEST: Final = 400
_DEEPEST: Final = 32
_ANNOTATION: Final = re.compile(r"<<([^<>\n]*)>>")
_TOKEN: Final = re.compile(
    r"[ \t$€£]*+(?:(?P<number>[0-9]{1,3}(?:,[0-9]{3})++(?:\.[0-9]++)?(?![0-9])"
    r"|[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)|(?P<sign>\*\*|//|[-+*/()%^x×÷−]))"
)
_UNIT: Final = re.compile(r"[ \t]*+[A-Za-z°¢]++(?:[ \t.]++[A-Za-z]++)*+[ \t.]*+\Z")
_SAME: Final = {"x": "*", "×": "*", "÷": "/", "−": "-", "^": "**"}


class NoValue(ValueError):
    """An expression that has no value by these rules."""


def written_in(text: str) -> list[str]:
    """The contents of the annotations of a text, in order."""
    return _ANNOTATION.findall(text) if "<<" in text else []


def holds(annotation: str) -> bool:
    """Whether all sides of an annotation have one value.

    annotation: without its angle brackets, as `48/2=24`. A chain, as `1/4=25/100=.25`, holds
        where each side has the value of the last one.

    False where a side has no value.
    """
    if len(annotation) > _LONGEST:
        return False
    *sides, last = annotation.split("=")
    try:
        result = value(last)
        return bool(sides) and all(_near(value(side), result) for side in sides)
    except NoValue:
        return False


def value(expression: str) -> float:
    """The value of an expression.

    expression: numbers with or without thousands separators, a currency sign before them or a
        unit at the end; `+ - * / // ^`, `x`, `×` and `÷`, parentheses, a percent sign behind what
        it divides by 100. A number before a parenthesis multiplies it.

    Raises NoValue for anything else, a division by zero or a value that is not finite.
    """
    if len(expression) > _LONGEST:
        raise NoValue("too long")
    tokens = _tokens(expression)
    try:
        found, rest = _sum(tokens, 0, 0)
    except (ArithmeticError, OverflowError) as error:
        raise NoValue(str(error)) from error
    if rest != len(tokens) or isinstance(found, complex) or found - found != 0:
        raise NoValue(f"not an expression: {expression!r}")
    return found


def _near(found: float, result: float) -> bool:
    return abs(found - result) <= TOLERANCE * max(1.0, abs(result))


def _tokens(expression: str) -> list[str | float]:
    tokens: list[str | float] = []
    place = 0
    while match := _TOKEN.match(expression, place):
        place = match.end()
        if match["number"]:
            tokens.append(float(match["number"].replace(",", "")))
        else:
            tokens.append(_SAME.get(match["sign"], match["sign"]))
    rest = expression[place:].strip()
    if rest and not (tokens and _UNIT.match(expression, place)):
        raise NoValue(f"neither number nor operator: {rest!r}")
    return tokens


def _at(tokens: list[str | float], place: int) -> str | float | None:
    return tokens[place] if place < len(tokens) else None


def _sum(tokens: list[str | float], place: int, depth: int) -> tuple[float, int]:
    total, place = _product(tokens, place, depth)
    while (sign := _at(tokens, place)) in ("+", "-"):
        term, place = _product(tokens, place + 1, depth)
        total = total + term if sign == "+" else total - term
    return total, place


def _product(tokens: list[str | float], place: int, depth: int) -> tuple[float, int]:
    total, place = _signed(tokens, place, depth)
    while (sign := _at(tokens, place)) in ("*", "/", "//", "("):
        factor, place = _signed(tokens, place + (sign != "("), depth)
        if sign == "//":
            total = total // factor
        else:
            total = total / factor if sign == "/" else total * factor
    return total, place


def _signed(tokens: list[str | float], place: int, depth: int) -> tuple[float, int]:
    sign = 1.0
    while (token := _at(tokens, place)) in ("+", "-"):
        sign, place = (-sign if token == "-" else sign), place + 1
    base, place = _primary(tokens, place, depth)
    if _at(tokens, place) == "**":
        if depth >= _DEEPEST:
            raise NoValue("nested too deep")
        exponent, place = _signed(tokens, place + 1, depth + 1)
        base = base**exponent
    return sign * base, place


def _primary(tokens: list[str | float], place: int, depth: int) -> tuple[float, int]:
    token = _at(tokens, place)
    if isinstance(token, float):
        found, place = token, place + 1
    elif token == "(" and depth < _DEEPEST:
        found, place = _sum(tokens, place + 1, depth + 1)
        if _at(tokens, place) != ")":
            raise NoValue("a parenthesis is not closed")
        place += 1
    else:
        raise NoValue(f"no number at {token!r}")
    while _at(tokens, place) == "%":
        found, place = found / 100, place + 1
    return found, place


ANSWER: Final = "Answer"
CHOICE: Final = "Choice"
WORKED: Final = "gsm8k"
"""The corpus whose answers are worked: their lines are steps where there is no chain of thought."""
PROGRAM: Final = ("Conflict", "Effect", "Precondition")
"""Kinds of the lines of a TRIP program; each line begins with its kind."""

NO_STEPS: Final = "no-steps"
"""Rule of an example in which no step was found."""
COT_STEPS: Final = "explicit:cot_steps"
MARKED: Final = "explicit:marks"
PROGRAM_LINES: Final = "explicit:program"
MARKERS: Final = "regex:markers"
PARAGRAPHS: Final = "heuristic:paragraphs"
LINES: Final = "heuristic:lines"
SENTENCES: Final = "heuristic:sentences"
BLOCK: Final = "heuristic:block"
RULES: Final = (
    *(COT_STEPS, MARKED, PROGRAM_LINES, MARKERS, PARAGRAPHS, LINES, SENTENCES, BLOCK),
    NO_STEPS,
)
"""All rules, in the order in which they are tried."""

SURE: Final = 1.0
BROKEN_NUMBERS: Final = 0.8
CHECKED_LINES: Final = 0.89
UNCHECKED_LINES: Final = 0.85
_UNSURE: Final = {PARAGRAPHS: 0.8, LINES: 0.7, SENTENCES: 0.6, BLOCK: 0.5}

# A step that runs over a line end is seldom one step, so lines come before sentences.
_CUTS: Final = (
    (PARAGRAPHS, regions.paragraphs),
    (LINES, regions.lines),
    (SENTENCES, regions.sentences),
)
_LABEL: Final = re.compile(rf"Step (?:0|[1-9][0-9]*)|{'|'.join((ANSWER, CHOICE, *PROGRAM))}")
_KIND: Final = re.compile(rf"(?:{'|'.join(PROGRAM)})\b", re.IGNORECASE)
_RESULT: Final = "####"


class Steps(NamedTuple):
    """The steps of one example.

    ranges: half-open, in characters of the rendered text; ascending, without overlap.
    confidence: the least one of all ranges, from 0 to 1; 0 where there are none.
    """

    ranges: list[Range]
    labels: list[str]
    confidence: float
    rule: str


def is_label(text: str) -> bool:
    """Whether a text may be the label of a step."""
    return _LABEL.fullmatch(text) is not None


def steps_of(
    record: Mapping[str, Any],
    rendered: Rendered,
    corpus: str,
    marks: Mapping[str, str] = MappingProxyType({}),
) -> Steps:
    """Find the steps of an example.

    record: of the normalised file; of it `cot_steps` alone is used, a list of strings.
    marks: of the corpus file: with what a line of a step begins, and the label; default none.

    The steps are those of the CoT; where there is none, those of GSM8K's answer. A last range is
    the answer (wiqa: `Choice`); it is there only behind a step.
    """
    text, final = rendered.text, rendered.answer
    body = rendered.cot
    worked = corpus == WORKED and body is None
    if worked and final is not None:
        body, final = _worked_answer(text, final)
    if body is None or body[0] >= body[1]:
        return Steps([], [], 0.0, NO_STEPS)
    steps = (
        _by_marks(text, body, marks) or _explicit(record, text, body, corpus) or _marked(text, body)
    )
    if steps is None:
        steps = _worked_lines(text, body) if worked else _prose(text, body)
    if final is not None:
        steps.ranges.append(final)
        steps.labels.append(CHOICE if corpus == "wiqa" else ANSWER)
    return steps


def _worked_answer(text: str, answer: Range) -> tuple[Range, Range | None]:
    """GSM8K's answer without its last line `#### n`, and that line if it is there."""
    start, end = answer
    last = text.rfind("\n", start, end) + 1 or start
    if not text.startswith(_RESULT, last):
        return answer, None
    return regions.trimmed(text, start, last), (last, end)


def _by_marks(text: str, body: Range, marks: Mapping[str, str]) -> Steps | None:
    """Steps from each line that begins with a mark to the next; None where the first has none."""
    ranges: list[Range] = []
    labels: list[str] = []
    for start, end in regions.lines(text, *body) if marks else ():
        found = max((mark for mark in marks if text.startswith(mark, start)), key=len, default=None)
        if found is not None:
            ranges.append((start, end))
            labels.append(marks[found])
        elif ranges:
            ranges[-1] = (ranges[-1][0], end)
        else:
            return None
    return Steps(ranges, labels, SURE, MARKED) if ranges else None


def _explicit(record: Mapping[str, Any], text: str, body: Range, corpus: str) -> Steps | None:
    """The steps that the record states: the lines of a TRIP program, or its `cot_steps`."""
    if corpus == "trip":
        lines = regions.lines(text, *body)
        kinds = [_KIND.match(text, *each) for each in lines]
        if all(kinds):
            labels = [match[0].capitalize() for match in kinds if match]
            return Steps(lines, labels, SURE, PROGRAM_LINES)
    return _listed(record.get("cot_steps") or (), text, body)


def _listed(items: Sequence[str], text: str, body: Range) -> Steps | None:
    """The items of a list in their order, each behind the one before; None if one is missing."""
    ranges = []
    cursor, end = body
    for item in items:
        step = item.strip()
        if not step:
            continue
        if (start := text.find(step, cursor, end)) < 0:
            return None
        cursor = start + len(step)
        ranges.append((start, cursor))
    return Steps(ranges, _numbered(ranges), SURE, COT_STEPS) if ranges else None


def _marked(text: str, body: Range) -> Steps | None:
    found = regions.marked(text, *body)
    if not found.ranges:
        return None
    sure = SURE if found.consecutive else BROKEN_NUMBERS
    return Steps(found.ranges, [f"Step {number}" for number in found.numbers], sure, MARKERS)


def _worked_lines(text: str, body: Range) -> Steps:
    ranges = regions.lines(text, *body)
    written = written_in(text[slice(*body)])
    checked = bool(written) and all(map(holds, written))
    return Steps(ranges, _numbered(ranges), CHECKED_LINES if checked else UNCHECKED_LINES, LINES)


def _prose(text: str, body: Range) -> Steps:
    """Paragraphs, lines, sentences or the whole block: the first that has two parts or more."""
    for rule, cut in _CUTS:
        ranges = cut(text, *body)
        if len(ranges) > 1:
            return Steps(ranges, _numbered(ranges), _UNSURE[rule], rule)
    return Steps([body], _numbered([body]), _UNSURE[BLOCK], BLOCK)


def _numbered(ranges: list[Range]) -> list[str]:
    return [f"Step {number}" for number in range(1, len(ranges) + 1)]
