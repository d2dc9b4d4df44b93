"""A record to the text that is tokenised. Source: `docs/formats/reasoning.md#rendered-text`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from gristmill.corpora.records import Record

HEADER: Final = "Answer:\n"
"""Begins the answer block."""
BETWEEN: Final = "\n\n"
"""Separates blocks."""


class Rendered(NamedTuple):
    """A rendered text and its blocks.

    question, cot, answer: of each block its characters in the text, half-open, without the
        header `Answer:`; None for an empty block.
    """

    text: str
    question: tuple[int, int] | None
    cot: tuple[int, int] | None
    answer: tuple[int, int] | None


def text_of(record: Mapping[str, Any]) -> str:
    """The rendered text alone.

    record: of a normalised file: `question`, `answer` and `cot` are strings, null or missing.
    """
    blocks = []
    if question := (record.get("question") or "").strip():
        blocks.append(question)
    if cot := (record.get("cot") or "").strip():
        blocks.append(cot)
    if answer := (record.get("answer") or "").strip():
        blocks.append(HEADER + answer)
    return BETWEEN.join(blocks)


def rendered(record: Mapping[str, Any]) -> Rendered:
    """The rendered text with its blocks; the text is that of `text_of`."""
    spans: list[tuple[int, int] | None] = []
    parts: list[str] = []
    length = 0
    for name, header in (("question", ""), ("cot", ""), ("answer", HEADER)):
        block = (record.get(name) or "").strip()
        if not block:
            spans.append(None)
            continue
        before = (BETWEEN if parts else "") + header
        start = length + len(before)
        length = start + len(block)
        parts.append(before + block)
        spans.append((start, length))
    return Rendered("".join(parts), *spans)


Hook = Callable[[Record], Record]
"""Takes a record, returns it cleaned; the same object where there is nothing to clean."""

_BRACE: Final = re.compile(r"\\boxed\s*\{|\\.|[{}]", re.DOTALL)
_ANNOTATION: Final = re.compile(r"<<[^<>\n]*>>")
_FINAL_LINE: Final = re.compile(r"^####[ \t]*", re.MULTILINE)
_OPTIONS: Final = re.compile(r"^Options:[ \t]*\n", re.MULTILINE)
_OPTION: Final = re.compile(r"(?:[-*][ \t]*)?(?:\(?[A-Za-z]\)[ \t]*)?(.*)")
_LETTER: Final = re.compile(r"\(?([A-Za-z])\)?\.?")
_EFFECTS: Final = {"more": "more", "less": "less", "no effect": "no_effect"}
_MOST_OPTIONS: Final = 26


def unboxed(text: str) -> str:
    r"""A text with `\boxed{x}` as `x`; a box that does not close stays.

    text: boxes may hold braces and other boxes; `\{` is no brace.
    """
    parts: list[str] = []
    opened: list[int | None] = []
    place = 0
    for match in _BRACE.finditer(text):
        mark = match.group()
        parts.append(text[place : match.start()])
        place = match.end()
        if mark.endswith("{") and mark[:2] != "\\{":
            # Where a box begins in the parts; a plain brace has no place.
            opened.append(len(parts) if len(mark) > 1 else None)
        elif mark == "}" and opened and (box := opened.pop()) is not None:
            parts[box] = mark = ""
        parts.append(mark)
    return "".join([*parts, text[place:]])


def _with_texts(record: Record, change: Callable[[str], str]) -> Record:
    """The record with its answer, chain of thought and steps changed."""
    cot = record.cot if record.cot is None else change(record.cot)
    steps = record.steps
    if steps is not None:
        # `cot` is the joined steps, so that steps are found in it.
        steps = [changed for step in steps if (changed := change(step).strip())]
        cot = "\n".join(steps) or None
    return record._replace(answer=change(record.answer), cot=cot, steps=steps or None)


def _boxed(record: Record) -> Record:
    return _with_texts(record, unboxed)


def _annotations(record: Record) -> Record:
    return _with_texts(record, lambda text: _ANNOTATION.sub("", text))


def _final_lines(record: Record) -> Record:
    return _with_texts(record, lambda text: _FINAL_LINE.sub("", text))


def _effect(record: Record) -> Record:
    label = " ".join(record.answer.replace("_", " ").split()).casefold()
    return record._replace(answer=_EFFECTS.get(label, record.answer))


def _options(record: Record) -> Record:
    """Options of a question as `(A) text`, one a line, and the answer as its letter."""
    match = _OPTIONS.search(record.question)
    if match is None:
        return record
    block, blank, rest = record.question[match.end() :].partition("\n\n")
    texts = [_option(line) for line in block.splitlines() if line.strip()]
    if not 1 < len(texts) <= _MOST_OPTIONS:
        return record
    letters = [chr(ord("A") + place) for place in range(len(texts))]
    lines = [f"({letter}) {text}" for letter, text in zip(letters, texts, strict=True)]
    question = record.question[: match.end()] + "\n".join(lines) + blank + rest
    answer = record.answer.strip()
    if texts.count(answer) == 1:
        answer = f"({letters[texts.index(answer)]})"
    elif (letter := _LETTER.fullmatch(answer)) and letter[1].upper() in letters:
        answer = f"({letter[1].upper()})"
    else:
        answer = record.answer
    return record._replace(question=question, answer=answer)


def _option(line: str) -> str:
    match = _OPTION.fullmatch(line.strip())
    return line.strip() if match is None else match[1].strip()


HOOKS: Final[Mapping[str, Mapping[str, Hook]]] = {
    "boxed": dict.fromkeys(("gsm8k", "openr1_math_220k", "reasoning_traces"), _boxed),
    "annotations": {"gsm8k": _annotations},
    "final_line": dict.fromkeys(("gsm8k", "reasoning_traces"), _final_lines),
    "choices": {"wiqa": _effect, "cot_collection": _options},
}
"""What each hook does, by its name and by corpus; a corpus that is not named stays as it is."""
