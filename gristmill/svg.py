"""Small pictures as SVG: a card to draw on, text, cells in colours.

Dagster never scales a picture, and its theme is not the browser's: a picture is at most OVERVIEW
pixels wide, which the UI shows on the asset's overview, and it stands on GROUND, which suits a
light page and a dark one. Dagster shows it inline if it is short (`markdown.INLINE`).

All text is escaped here, and characters that SVG forbids are replaced.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Final

from gristmill.printable import printable

OVERVIEW: Final = 224
"""Pixels that an asset's overview shows beside the keys of its metadata, in a window of 1280."""

GROUND, INK, SOFT, RULE = "#345", "#eee", "#bcc", "#789"
BOLD, MIDDLE = " font-weight='700'", " text-anchor='middle'"
END = " text-anchor='end'"
"""Attributes for `small_text`."""
_TEXT: Final = 12
_CHARACTER: Final = 0.56
"""Width of a character as a part of the size of its font, in fonts without serifs."""


def small_card(height: int, body: Sequence[str], width: int = OVERVIEW) -> str:
    """An SVG of few characters, whose text has 12 pixels by default.

    height: in pixels. body: elements; attributes in single quotes. width: default OVERVIEW.
    """
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'"
        f" style='font:{_TEXT}px sans-serif' fill='{INK}'>"
        f"<rect width='{width}' height='{height}' rx='6' fill='{GROUND}'/>{''.join(body)}</svg>"
    )


def small_text(x: float, y: float, text: str, more: str = "", width: float = OVERVIEW - 20) -> str:
    """Text of a card, cut to a width; more: attributes, such as ` fill='#fff'`."""
    most = max(4, int(width / (_TEXT * _CHARACTER)))
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    shown = escape(printable(text), quote=False)
    return f"<text x='{x:g}' y='{y:g}'{more}>{shown}</text>"


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
