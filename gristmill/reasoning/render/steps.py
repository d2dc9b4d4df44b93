"""The reasoning steps of a rendered text: where they are, what they are called, how sure that is.

See also `regions.py`: lines, paragraphs and sentences; `arithmetic.py`: GSM8K's annotations;
`projection.py`: characters to tokens. Source: `docs/formats/reasoning.md#step-rules`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from gristmill.reasoning.render import arithmetic, regions
from gristmill.reasoning.render.regions import Range
from gristmill.reasoning.render.text import Rendered

ANSWER: Final = "Answer"
CHOICE: Final = "Choice"
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
    labels: of each range; see `is_label`.
    confidence: the least one of all ranges, from 0 to 1; 0 where there are none.
    rule: one of `RULES`.
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
    worked = corpus == "gsm8k" and body is None
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
    written = arithmetic.written_in(text[slice(*body)])
    checked = bool(written) and all(map(arithmetic.holds, written))
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
