"""Small pictures as SVG: a card to draw on, text, bars of counts, an address for Markdown.

See also each family's `show/` for what is drawn on the card. All text is
escaped here, and characters that SVG forbids are replaced.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from gristmill.printable import printable

PAPER, INK, RULE, BAR = "#faf8ef", "#776e65", "#bbada0", "#f2b179"
_FONT = "font-family=\"'Clear Sans','Helvetica Neue',Arial,'DejaVu Sans',sans-serif\""
MIDDLE, END, BOLD = ' text-anchor="middle"', ' text-anchor="end"', ' font-weight="700"'
"""Attributes for `text`."""


def data_uri(svg: str) -> str:
    """The SVG as an address that Markdown images take."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


def text_at(x: float, y: float, text: str, size: float, fill: str, more: str = "") -> str:
    """Text from (x, y) on its base line; more: attributes such as MIDDLE and BOLD."""
    shown = escape(printable(text))
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{more}>{shown}</text>'


def card(width: int, height: int, label: str, body: Sequence[str], scale: float = 1.0) -> str:
    """A whole SVG with a rounded background, `width` by `height` units to draw on.

    label: what a screen reader says. scale: pixels a unit, where it is shown.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale:g}"'
        f' height="{height * scale:g}" viewBox="0 0 {width} {height}" role="img"'
        f" {_FONT}><title>{escape(printable(label))}</title>"
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>{"".join(body)}</svg>'
    )


def histogram_svg(title: str, bars: Sequence[tuple[str, int]], note: str = "") -> str:
    """Upright bars with their counts above and labels below; for up to some twenty bars."""
    step, bottom, tallest = 54, 186, 118
    width = max(360, 40 + step * len(bars))
    most = max((count for _, count in bars), default=0)
    body = [text_at(20, 30, title, 15, INK, BOLD)]
    if note:
        body.append(text_at(width - 20, 30, note, 11.5, INK, END))
    body.append(f'<path d="M20 {bottom}.5H{width - 20}" stroke="{RULE}" stroke-width="1"/>')
    for k, (label, count) in enumerate(bars):
        x = (width - step * len(bars)) / 2 + step * k
        tall = max(2.0, tallest * count / most) if count else 0.0
        if count:
            body.append(
                f'<rect x="{x + 6:g}" y="{bottom - tall:.1f}" width="{step - 12}"'
                f' height="{tall:.1f}" rx="3" fill="{BAR}"/>'
            )
        number = text_at(x + step / 2, bottom - tall - 6, f"{count:,}", 12, INK, MIDDLE)
        body.append(number if count else "")
        body.append(text_at(x + step / 2, bottom + 18, label, 11.5, INK, MIDDLE))
    return card(width, bottom + 34, title, body)
