"""The steps of an example: its text in pieces, and a picture of the first steps."""

from __future__ import annotations

from collections.abc import Iterator

from gristmill import markdown
from gristmill.browse.table import Picture, Token
from gristmill.printable import printable
from gristmill.reasoning.format.align import AlignRow
from gristmill.svg import SOFT, small_card, small_text

_COLOURS = ("#ffe3a3", "#cfe6c9", "#cbdff5", "#f6d0c8", "#e2d4f0", "#c8ebe6")
_MOST = 9
"""Steps of a picture."""


def pieces(row: AlignRow, text: str) -> Iterator[Token]:
    """Yield a text in pieces of a line at most, each with the label of its step.

    Ranges that the text does not have are left out.
    """
    for start, end, label in _parts(row, len(text)):
        *lines, last = text[start:end].split("\n")
        yield from (Token(f"{printable(line)}\n", span=label) for line in lines)
        if last:
            yield Token(printable(last), span=label)


def picture(row: AlignRow, text: str) -> Picture:
    """The first steps of an example, a line each: as many as Dagster shows inline."""
    steps = [part for part in _parts(row, len(text)) if part[2]]
    head = [
        small_text(10, 20, row.example_id, " font-weight='700'"),
        small_text(10, 37, f"{row.confidence:g} · {row.notes}", f" fill='{SOFT}'"),
    ]
    for count in range(min(_MOST, len(steps)), -1, -1):
        lines = [
            small_text(
                10, 56 + 17 * at, f"{label}: {text[start:end]}", f" fill='{_COLOURS[at % 6]}'"
            )
            for at, (start, end, label) in enumerate(steps[:count])
        ]
        drawing = small_card(48 + 17 * count, [*head, *lines])
        if len(markdown.image("steps", drawing)) <= markdown.INLINE:
            break
    return Picture("steps", drawing)


def _parts(row: AlignRow, length: int) -> Iterator[tuple[int, int, str]]:
    """Yield consecutive ranges of a text up to `length`, with the label of the step or nothing."""
    place = 0
    for (first, last), label in zip(row.text_offset_ranges, row.step_labels, strict=False):
        start, end = max(first, place), min(last, length)
        if start < end:
            yield place, start, ""
            yield start, end, printable(label)
            place = end
    yield place, length, ""
