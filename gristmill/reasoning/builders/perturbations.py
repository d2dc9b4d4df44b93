"""Perturbations of the texts of a record: those that normalising absorbs, and others.

See also `invariance.py`, which measures what they change.
Source: `docs/formats/reasoning.md#reports`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

Perturb = Callable[[str, Random], str]
"""Takes a text and a source of chance; returns the text perturbed."""

_STOPS: Final = re.compile(r"([.!?]) (?! )")
_DOUBLE: Final = re.compile(r"  +")
_FINAL_STOP: Final = re.compile(r"\.(?=\s*\Z)")
_ANNOTATION: Final = re.compile(r"<<[^<>\n]*>>")
_SPACE: Final = re.compile(" ")


def _one_doubled_space(text: str, random: Random) -> str:
    places = [match.start() for match in _SPACE.finditer(text)]
    if not places:
        return text
    place = random.choice(places)
    return f"{text[:place]} {text[place:]}"


GATED: Final[Mapping[str, Perturb]] = {
    "edge_whitespace": lambda text, _: f" \n\t{text}\u00a0 \n" if text else text,
    "byte_order_mark": lambda text, _: f"\ufeff{text}" if text else text,
    "trailing_newline": lambda text, _: f"{text}\n" if text else text,
    "crlf": lambda text, _: text.replace("\n", "\r\n"),
}
"""Perturbations that normalising and rendering claim to absorb."""

REPORTED: Final[Mapping[str, Perturb]] = {
    "no_final_period": lambda text, _: _FINAL_STOP.sub("", text),
    "single_spaces": lambda text, _: _DOUBLE.sub(" ", text),
    "curly_quotes": lambda text, _: text.replace("'", "\u2019"),
    "double_space_after_stop": lambda text, _: _STOPS.sub(r"\1  ", text),
    "one_doubled_space": _one_doubled_space,
    "space_at_line_ends": lambda text, _: text.replace("\n", " \n"),
    "no_break_space": lambda text, _: text.replace(" ", "\u00a0", 1),
    "no_annotations": lambda text, _: _ANNOTATION.sub("", text),
}
"""Perturbations that change tokens; how many is reported."""
