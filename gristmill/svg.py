"""Small pictures as SVG: a card to draw on, text, bars of counts, an address for Markdown.

Dagster never scales a picture, and its theme is not the browser's: a picture is at most WIDEST
pixels wide, its text has MIN_TEXT pixels or more, and it stands on GROUND, which suits a light page
and a dark one. One picture of an asset is at most OVERVIEW pixels wide: the UI shows it on the
asset's overview (see `markdown.inline_image`).

All text is escaped here, and characters that SVG forbids are replaced.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Final

from gristmill.printable import printable

WIDEST: Final = 480
"""Pixels that a picture is wide at most."""
OVERVIEW: Final = 224
"""Pixels that an asset's overview shows beside the keys of its metadata, in a window of 1280."""
MIN_TEXT: Final = 11
"""Pixels of the smallest text."""

GROUND, INK, SOFT, RULE, BAR = "#345", "#eee", "#bcc", "#789", "#fb7"
_FONT = "font-family=\"'Clear Sans','Helvetica Neue',Arial,'DejaVu Sans',sans-serif\""
MIDDLE, END, BOLD = ' text-anchor="middle"', ' text-anchor="end"', ' font-weight="700"'
"""Attributes for `text`."""
_CHARACTER: Final = 0.56
_BETWEEN: Final = " · "
_CHARACTER_AT: Final = re.compile(r'<text x="([\d.]+)" y="[\d.]+">(\w)</text>', re.ASCII)
_CHARACTERS: Final = re.compile(
    r'<text x="[\d.]+" (?P<y>y="[\d.]+")>\w</text>(?:<text x="[\d.]+" (?P=y)>\w</text>)+', re.ASCII
)
MONOSPACED: Final = 0.605
"""Width of a character as a part of the size of its font, where all are equally wide."""


def shortened(svg: str) -> str:
    """The same picture in fewer characters, for an event.

    Characters of one line that each had an element have one together, and attributes are in `'`,
    since JSON escapes `"`. In texts of drawings both are escaped: where `"` is around attributes,
    `'` is only around the names of fonts, which need none.
    """
    if not svg.startswith('<svg xmlns="'):
        return svg
    return _CHARACTERS.sub(_one_element, svg).replace("'", "").replace('"', "'")


def _one_element(run: re.Match[str]) -> str:
    places, characters = zip(*_CHARACTER_AT.findall(run.group()), strict=True)
    return f'<text x="{" ".join(places)}" {run["y"]}>{"".join(characters)}</text>'


def fitted(text: str, width: float, size: float, part: float = _CHARACTER) -> str:
    """A text, cut to what fits a width.

    part: width of a character as a part of the size; the default suits fonts without serifs.
    """
    most = max(4, int(width / (size * part)))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fitted_caption(text: str, width: float, size: float, part: float = _CHARACTER) -> str:
    """The first parts of a caption, as many as fit a line; one part that does not is cut."""
    parts = text.split(_BETWEEN)
    while len(parts) > 1 and fitted(_BETWEEN.join(parts), width, size, part).endswith("…"):
        parts.pop()
    return fitted(_BETWEEN.join(parts), width, size, part)


def text_at(x: float, y: float, text: str, size: float, fill: str, more: str = "") -> str:
    """Text from (x, y) on its base line; more: attributes such as MIDDLE and BOLD."""
    shown = escape(printable(text))
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{more}>{shown}</text>'


def card(width: int, height: int, label: str, body: Sequence[str]) -> str:
    """A whole SVG with a rounded background, `width` by `height` pixels to draw on.

    label: what a screen reader says.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}"'
        f' height="{height}" viewBox="0 0 {width} {height}" role="img"'
        f" {_FONT}><title>{escape(printable(label))}</title>"
        f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>{"".join(body)}</svg>'
    )


def histogram_svg(title: str, bars: Sequence[tuple[str, int]], note: str = "") -> str:
    """Upright bars with their counts above and labels below; for up to some twenty bars.

    title: line above the bars. bars: label and count of each. note: line below the title.

    Where bars are narrow, some labels are left out, never the last one, and all counts but that of
    the first tallest bar.
    """
    width = min(WIDEST, max(340, 40 + 54 * len(bars)))
    step = min(54.0, (width - 40) / max(len(bars), 1))
    top = 44 if note else 30
    bottom, tallest = top + 150, 118
    most = max((count for _, count in bars), default=0)
    body = [text_at(20, 28, fitted(title, width - 40, 15), 15, INK, BOLD)]
    if note:
        body.append(text_at(20, 46, fitted(note, width - 40, 12), 12, SOFT))
    body.append(f'<path d="M20 {bottom}.5H{width - 20}" stroke="{RULE}" stroke-width="1"/>')
    every = _every([label for label, _ in bars], step)
    counted = [k for k, (_, count) in enumerate(bars) if count]
    if _every([f"{count:,}" for _, count in bars], step) > 1:
        counted = sorted(counted, key=lambda k: -bars[k][1])[:1]
    for k, (label, count) in enumerate(bars):
        x = (width - step * len(bars)) / 2 + step * k
        tall = max(2.0, tallest * count / most) if count else 0.0
        if count:
            gap = min(6.0, step / 8)
            body.append(
                f'<rect x="{x + gap:g}" y="{bottom - tall:.1f}" width="{step - 2 * gap:g}"'
                f' height="{tall:.1f}" rx="{min(3.0, gap):g}" fill="{BAR}"/>'
            )
        if k in counted:
            body.append(text_at(x + step / 2, bottom - tall - 6, f"{count:,}", 11.5, INK, MIDDLE))
        if (len(bars) - 1 - k) % every == 0:
            body.append(text_at(x + step / 2, bottom + 18, label, 11.5, SOFT, MIDDLE))
    return card(width, bottom + 32, title, body)


def _every(texts: Sequence[str], step: float) -> int:
    """Of how many bars one has its text, so that no two of them touch."""
    widest = max((len(text) * 11.5 * _CHARACTER for text in texts), default=0.0)
    return max(1, -int(-(widest + 3) // step))


def small_card(height: int, body: Sequence[str], width: int = OVERVIEW) -> str:
    """A small SVG of few characters for the overview, whose text has 12 pixels by default.

    height: in pixels. body: elements; attributes in single quotes. width: default OVERVIEW.
    """
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'"
        f" style='font:12px sans-serif' fill='{INK}'>"
        f"<rect width='{width}' height='{height}' rx='6' fill='{GROUND}'/>{''.join(body)}</svg>"
    )


def small_text(x: float, y: float, text: str, more: str = "", width: float = OVERVIEW - 20) -> str:
    """Text of a small card, cut to a width; more: attributes, such as ` fill='#fff'`."""
    shown = escape(printable(fitted(text, width, 12)), quote=False)
    return f"<text x='{x:g}' y='{y:g}'{more}>{shown}</text>"


def small_histogram(title: str, bars: Sequence[tuple[str, int]], note: str = "") -> str:
    """Upright bars for the overview: the labels of the first bar and the last one below them.

    title: line above the bars. bars: label and count of each, up to 24. note: second line.
    """
    step = (OVERVIEW - 20) / max(len(bars), 1)
    most = max((count for _, count in bars), default=1) or 1
    places = "".join(
        f"M{10 + step * (k + 0.5):.0f} 110v-{max(1, round(58 * count / most))}"
        for k, (_, count) in enumerate(bars)
        if count
    )
    body = [
        small_text(10, 20, title, " font-weight='700'"),
        small_text(10, 37, note, f" fill='{SOFT}'"),
        f"<path d='{places}' stroke='{BAR}' stroke-width='{max(2, int(step * 0.8))}'/>",
        f"<path d='M10 110h204' stroke='{RULE}'/>",
    ]
    if bars:
        body.append(small_text(10, 126, bars[0][0], f" fill='{SOFT}'", 100))
    if len(bars) > 1:
        body.append(small_text(214, 126, bars[-1][0], f" fill='{SOFT}' text-anchor='end'", 100))
    return small_card(134, body)


def small_shares(title: str, parts: Sequence[tuple[str, int]]) -> str:
    """Counts of up to five kinds as bars that lie, for the overview.

    title: line above the bars. parts: name and count of each; the first five are drawn.
    """
    total = sum(count for _, count in parts) or 1
    shown = parts[:5]
    body = [small_text(10, 20, title, " font-weight='700'")]
    lines, counts = [], []
    for k, (name, count) in enumerate(shown):
        y = 40 + 26 * k
        body.append(small_text(10, y, name, "", 120))
        counts.append(small_text(214, y, f"{count:,}"))
        lines.append(f"M10 {y + 6}h{max(1, round(204 * count / total))}")
    body.append(f"<g text-anchor='end' fill='{SOFT}'>{''.join(counts)}</g>")
    body.append(f"<path d='{''.join(lines)}' stroke='{BAR}' stroke-width='5'/>")
    return small_card(30 + 26 * len(shown), body)


def bitmap(
    rows: Sequence[Sequence[int]], palette: Sequence[str], x: float, y: float, cell: float
) -> str:
    """Cells in colours as one SVG element of few characters.

    rows: numbers of colours, all rows of one length. palette: at most 256 colours `#rrggbb`.
    """
    wide, tall = len(rows[0]), len(rows)
    address = base64.b64encode(_png(rows, palette)).decode("ascii")
    place = f" x='{x:g}' y='{y:g}'" if x or y else ""
    return (
        f"<image{place} width='{cell * wide:g}' height='{cell * tall:g}'"
        f" image-rendering='pixelated' href='data:image/png;base64,{address}'/>"
    )


def _png(rows: Sequence[Sequence[int]], palette: Sequence[str]) -> bytes:
    """A PNG with a palette: https://www.w3.org/TR/png-3/."""
    depth = next(bits for bits in (1, 2, 4, 8) if len(palette) <= 1 << bits)
    packed = bytearray()
    for row in rows:
        bits = "".join(f"{value:0{depth}b}" for value in row)
        bits += "0" * (-len(bits) % 8)
        packed += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), depth, 3, 0, 0, 0)
    colours = b"".join(bytes.fromhex(colour[1:]) for colour in palette)
    parts = (
        (b"IHDR", header),
        (b"PLTE", colours),
        (b"IDAT", zlib.compress(bytes(packed), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
