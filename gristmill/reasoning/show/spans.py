"""One example with its steps in colours: for a terminal, and as SVG for previews."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gristmill.printable import printable
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.render.text import text_of
from gristmill.svg import GROUND, INK, MONOSPACED, WIDEST, fitted_caption

if TYPE_CHECKING:
    from rich.text import Text

MOST: Final = 2_000
"""Characters of a text that a picture shows."""

# Ground and edge of each colour. Numbered steps take the first ones in turn.
_STEPS: Final = (
    ("#ffe3a3", "#b97a00"),
    ("#cfe6c9", "#3d7d33"),
    ("#cbdff5", "#2d659f"),
    ("#f6d0c8", "#a8472f"),
    ("#e2d4f0", "#6c4596"),
    ("#c8ebe6", "#1f7a70"),
)
_NAMED: Final = {
    "Answer": ("#d8d8d8", "#4d4d4d"),
    "Choice": ("#d8d8d8", "#4d4d4d"),
    "Conflict": _STEPS[3],
    "Effect": _STEPS[1],
    "Precondition": _STEPS[2],
}
_OTHER: Final = "#f2f2f2", "#75818a"

_WIDTH: Final = WIDEST
_LEFT: Final = 12
_LINE: Final = 21
_HEIGHT: Final = 17
_CHARACTER: Final = 6.65
_FONT: Final = "11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


class Fragment(NamedTuple):
    """Text on one line that belongs to one step, or to none.

    label: of the step; None for text between steps.
    """

    text: str
    label: str | None
    first: bool = False


def colours(label: str) -> tuple[str, str]:
    """Ground and edge of a step in SVG, by its label."""
    name, _, number = label.partition(" ")
    if name == "Step" and number.isascii() and number.isdigit() and len(number) < 10:
        return _STEPS[(int(number) - 1) % len(_STEPS)]
    return _NAMED.get(name, _OTHER)


def title(row: AlignRow) -> str:
    """The line above an example: its id, confidence and notes."""
    return printable(f"{row.example_id} · confidence {row.confidence:g} · {row.notes}")


def fragments(row: AlignRow, record: Mapping[str, Any], most: int | None) -> list[list[Fragment]]:
    """The lines of an example's text, each as fragments in order.

    row: its row of the alignment; ranges that the text does not have are left out.
    most: characters that are shown, None for all; the last line says how many more there are.
    """
    text = text_of(record)
    shown = text if most is None else text[:most]
    lines: list[list[Fragment]] = [[]]
    for start, end, label in _parts(row, len(shown)):
        for number, line in enumerate(shown[start:end].split("\n")):
            if number:
                lines.append([])
            if line:
                clean = printable(line.replace("\t", "    "))
                lines[-1].append(Fragment(clean, label, label is not None and not number))
    if len(text) > len(shown):
        lines.append([Fragment(f"… and {len(text) - len(shown):,} more characters", None)])
    return lines


def _parts(row: AlignRow, length: int) -> Iterator[tuple[int, int, str | None]]:
    """Yield consecutive ranges of a text up to `length`, with the label of the step if any."""
    place = 0
    pairs = zip(row.text_offset_ranges, row.step_labels, strict=False)
    for (first, last), label in pairs:
        start, end = max(first, place), min(last, length)
        if start < end:
            yield place, start, None
            yield start, end, printable(label)
            place = end
    yield place, length, None


def terminal(row: AlignRow, record: Mapping[str, Any]) -> Text:
    """An example with its steps on coloured grounds, for a terminal."""
    from rich.text import Text

    text = Text(f"{title(row)}\n", style="bold")
    for line in fragments(row, record, None):
        for fragment in line:
            if fragment.label is None:
                text.append(fragment.text, style="not bold")
                continue
            ground, edge = colours(fragment.label)
            if fragment.first:
                text.append(f" {fragment.label} ", style=f"bold white on {edge}")
            text.append(fragment.text, style=f"not bold black on {ground}")
        text.append("\n")
    return text


def svg(row: AlignRow, record: Mapping[str, Any], most: int = MOST) -> str:
    """An example with its steps on coloured grounds, as one SVG document."""
    drawing = _Drawing()
    drawing.title(title(row))
    for line in fragments(row, record, most):
        drawing.line(line)
    return drawing.document(title(row))


class _Drawing:
    """Fragments from left to right, in lines that end at the width of the picture."""

    def __init__(self) -> None:
        self._body: list[str] = []
        self._x, self._y = float(_LEFT), 10

    def title(self, text: str) -> None:
        parts = text.replace("; ", " · ")
        shown = fitted_caption(parts, _WIDTH - 2 * _LEFT, 11, MONOSPACED)
        self._text(shown, ' font-weight="bold"')
        self._next_line()
        self._y += 4

    def line(self, line: list[Fragment]) -> None:
        for fragment in line:
            if fragment.label is not None and fragment.first:
                self._chip(fragment.label)
            for part in self._wrapped(fragment.text):
                if fragment.label is None:
                    self._text(part)
                else:
                    ground, edge = colours(fragment.label)
                    self._box(_width(part), ground, edge)
                    self._text(part, ' class="s"')
                self._x += _width(part)
        self._next_line()

    def document(self, label: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{self._y + 6}" '
            f'viewBox="0 0 {_WIDTH} {self._y + 6}" role="img"><title>{escape(label)}</title>'
            f"<style>text{{font:{_FONT};fill:{INK};white-space:pre}}.s{{fill:#22272b}}</style>"
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>{"".join(self._body)}</svg>'
        )

    def _chip(self, label: str) -> None:
        """Draw the label of a step where it begins."""
        shown = f" {label.removeprefix('Step ')} "
        if self._x + _width(shown) > _WIDTH - 4 * _LEFT:
            self._next_line()
        _, edge = colours(label)
        self._box(_width(shown), edge, edge)
        self._text(shown, ' font-weight="bold" style="fill:#fff"')
        self._x += _width(shown)

    def _wrapped(self, text: str) -> Iterator[str]:
        """Yield parts of a text that fit on the line, each on the next line, cut at spaces."""
        while text:
            room = _WIDTH - _LEFT - self._x
            fitting = _fitting(text, room)
            if fitting < len(text):
                space = text.rfind(" ", 0, fitting)
                fitting = space + 1 if space >= 0 else fitting
                if space < 0 and self._x > _LEFT:
                    fitting = 0
            if fitting:
                yield text[:fitting]
            text = text[fitting:]
            if text:
                self._next_line()

    def _box(self, width: float, ground: str, edge: str) -> None:
        self._body.append(
            f'<rect x="{self._x:.1f}" y="{self._y}" width="{width:.1f}" height="{_HEIGHT}" '
            f'fill="{ground}" stroke="{edge}" stroke-width=".5"/>'
        )

    def _text(self, text: str, more: str = "") -> None:
        self._body.append(f'<text x="{self._x:.1f}" y="{self._y + 12}"{more}>{escape(text)}</text>')

    def _next_line(self) -> None:
        self._x, self._y = float(_LEFT), self._y + _LINE


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _width(text: str) -> float:
    """Width in pixels: wide characters take two columns, combining ones none."""
    return sum(map(_columns, text)) * _CHARACTER


def _fitting(text: str, room: float) -> int:
    """How many of the first characters fit into a width in pixels, at least 1."""
    used = 0.0
    for place, char in enumerate(text):
        used += _columns(char) * _CHARACTER
        if used > room:
            return max(1, place)
    return len(text)
