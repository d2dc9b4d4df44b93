"""Conversations as one SVG document: coloured tokens, a line a message."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Final

from gristmill.printable import printable
from gristmill.svg import GROUND, INK, MONOSPACED, SOFT, WIDEST, fitted_caption
from gristmill.synth.format import harmony_tokens
from gristmill.synth.show.tokens import Line, ShownToken

_WIDTH: Final = WIDEST
_LEFT: Final = 80
_LINE: Final = 22
_HEIGHT: Final = 17
_CHARACTER: Final = 6.65
_GAP: Final = 2

_FILLS: Final = ("#e3e7ea", "#ffd766", "#a9dfb0")
_EDGES: Final = ("#8a97a0", "#c98a00", "#2f8f46")
_STYLE: Final = (
    "text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#22272b}"
    f".h{{font-weight:bold;fill:{INK}}}.l{{fill:{SOFT}}}.m{{fill:{SOFT}}}"
    + "".join(
        f".s{span}{{fill:{fill};stroke:{edge}}}.s{span}m{{fill:{fill};fill-opacity:.2;"
        f"stroke:{edge};stroke-dasharray:2 2}}"
        for span, (fill, edge) in enumerate(zip(_FILLS, _EDGES, strict=True))
    )
    + ".c{font-weight:bold}"
)


def svg(conversations: Sequence[tuple[str, list[Line]]]) -> str:
    """Return the conversations below each other, with a legend, as one SVG document.

    conversations: titles and messages, as `tokens.conversation` returns them.
    """
    drawing = _Drawing()
    drawing.legend()
    for title, lines in conversations:
        drawing.title(title)
        for line in lines:
            drawing.line(line)
    return drawing.document()


class _Drawing:
    """The rectangles of a class are in one path, which halves the size of the file."""

    def __init__(self) -> None:
        self._paths: dict[str, list[str]] = {}
        self._texts: list[str] = []
        self._y = 8

    def legend(self) -> None:
        x = 10.0
        for span, name in enumerate(harmony_tokens.SPANS):
            x = self._token(ShownToken(name, span, span == harmony_tokens.PROMPT), x) + 8
        self._y += _LINE
        self._text(10, "dashed and pale: masked, not in the loss", "l")
        self._y += _LINE + 6

    def title(self, title: str) -> None:
        self._text(10, fitted_caption(title, _WIDTH - 20, 11, MONOSPACED), "h")
        self._y += _LINE

    def line(self, line: Line) -> None:
        self._text(10, line.label, "l")
        x = float(_LEFT)
        for token in line.tokens:
            if x + _token_width(token) > _WIDTH - 10 and x > _LEFT:
                x, self._y = float(_LEFT), self._y + _LINE
            x = self._token(token, x) + _GAP
        self._y += _LINE + 2

    def _token(self, token: ShownToken, x: float) -> float:
        """Draw a token at `x`; return where it ends."""
        width = _token_width(token)
        if token.span is not None:
            name = f"s{token.span}{'m' if token.masked else ''}"
            outline = f"M{x:.0f} {self._y}h{width:.0f}v{_HEIGHT}h-{width:.0f}z"
            self._paths.setdefault(name, []).append(outline)
        style = " ".join(["c"] * token.control + ["m"] * token.masked)
        style = "l" if token.span is None else style
        self._text(x + 3, token.marked, style)
        return x + width

    def _text(self, x: float, text: str, style: str) -> None:
        name = f' class="{style}"' if style else ""
        shown = escape(printable(text))
        self._texts.append(f'<text x="{x:.0f}" y="{self._y + 12}"{name}>{shown}</text>')

    def document(self) -> str:
        paths = "".join(f'<path class="{n}" d="{"".join(d)}"/>' for n, d in self._paths.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{self._y + 4}" '
            f'viewBox="0 0 {_WIDTH} {self._y + 4}"><style>{_STYLE}</style>'
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>{paths}'
            f"{''.join(self._texts)}</svg>"
        )


def _token_width(token: ShownToken) -> float:
    """Return the width in pixels: wide characters take two columns, combining ones none."""
    columns = sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in token.marked
    )
    return round(columns * _CHARACTER * (1.04 if token.control else 1)) + 6
