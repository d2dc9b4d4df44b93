"""A normalised record to the text that is tokenised, and where its blocks are in it.

Source: `docs/formats/reasoning.md#rendered-text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

HEADER: Final = "Answer:\n"
"""Begins the answer block."""
BETWEEN: Final = "\n\n"
"""Separates blocks."""


class Rendered(NamedTuple):
    """A rendered text and its blocks.

    text: empty where all blocks are empty.
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
    """The rendered text with its blocks; the text is that of `text_of`.

    record: as for `text_of`.
    """
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
