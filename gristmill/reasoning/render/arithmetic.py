"""Arithmetic of GSM8K's annotations `<<expression=result>>`: does each one hold?

Expressions are parsed by rules of arithmetic alone: nothing is executed as code.
Source: `docs/formats/reasoning.md#step-rules`.
"""

from __future__ import annotations

import re
from typing import Final

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
