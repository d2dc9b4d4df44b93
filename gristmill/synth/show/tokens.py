"""Conversations as coloured token chips in SVG: what is prompt, reasoning, final, and masked.

Which documents to show, and what stands around them, belongs to `picture.py`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import BadInput
from gristmill.printable import printable
from gristmill.synth.format import aligned, harmony_tokens, indexed
from gristmill.synth.read.trace import trace
from gristmill.vocabularies import encode

if TYPE_CHECKING:
    import tiktoken

_WIDTH: Final = 1000
_LEFT: Final = 100
_LINE: Final = 22
_HEIGHT: Final = 17
_CHARACTER: Final = 6.65
_GAP: Final = 2
_HEAD, _TAIL = 30, 6
_PROMPT_HEAD, _PROMPT_TAIL = 12, 4

_FILLS: Final = ("#e3e7ea", "#ffd766", "#a9dfb0")
_EDGES: Final = ("#8a97a0", "#c98a00", "#2f8f46")
_BELOW: Final = {
    "tokens": harmony_tokens.PADDED_VOCABULARY,
    "lossmask": 2,
    "span": len(harmony_tokens.SPANS),
}
_STYLE: Final = (
    "text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#22272b}"
    ".h{font-weight:bold}.l{fill:#5b6770}.m{fill:#75818a}"
    + "".join(
        f".s{span}{{fill:{fill};stroke:{edge}}}.s{span}m{{fill:{fill};fill-opacity:.5;"
        f"stroke:{edge};stroke-dasharray:2 2}}"
        for span, (fill, edge) in enumerate(zip(_FILLS, _EDGES, strict=True))
    )
    + ".c{font-weight:bold}"
)


@dataclass(frozen=True)
class Chip:
    """One token: how it is written, its span, whether the loss leaves it out.

    A chip without a span stands for tokens that are not shown.
    """

    text: str
    span: int | None
    masked: bool
    control: bool = False


@dataclass(frozen=True)
class Line:
    """One message: its label (role, or channel of an assistant) and its chips."""

    label: str
    chips: list[Chip]


def conversation(
    root: Path, number: str, split: str, document: int, vocabulary: Path, whole: bool = False
) -> tuple[str, list[Line]]:
    """A document's title and its messages as chips; long bodies shortened, unless `whole`.

    A chip has the span and mask of its token as a label, which the datasets
    store one place before the token; the first token is no label. BadInput where
    there is no such document, or what stands there cannot be one.
    """
    origin = trace(root, number, split, document)
    prefix = root / split / f"shard_{number}_tokens"
    tokens, mask, span = (
        _values(aligned.sibling(prefix, name), name, document, origin.offsets[-1] + 1)
        for name in _BELOW
    )
    bounds = [*origin.message_bounds(), (len(tokens) - 1, len(tokens))]
    about = " · ".join(x for x in (origin.language, origin.exercise) if x)
    title = (
        f"{split} document {document} · {origin.synth_id} · {len(tokens):,} tokens · "
        f"{origin.input} row {origin.row}" + (f" · {about}" if about else "")
    )
    return printable(title), lines(tokens, mask, span, bounds, vocabulary, whole)


def _values(prefix: Path, name: str, document: int, length: int) -> list[int]:
    """One document of a dataset; BadInput where it cannot be one of this name and length."""
    values = indexed.read(prefix)[document]
    if len(values) != length or values.min() < 0 or values.max() >= _BELOW[name]:
        told = (
            f"document {document} is damaged, `gristmill verify` says more: build the shard again"
        )
        raise BadInput(prefix.with_name(f"{prefix.name}.bin"), told)
    return [int(value) for value in values]


def lines(
    tokens: Sequence[int],
    mask: Sequence[int],
    span: Sequence[int],
    bounds: Sequence[tuple[int, int]],
    vocabulary: Path,
    whole: bool,
) -> list[Line]:
    """One document as chips, a line a message.

    mask, span: of the label, as the datasets store them. bounds: begin and end
        of every message in tokens.
    """
    mask, span = [0, *mask[:-1]], [0, *span[:-1]]
    encoding = encode.encoding(vocabulary)
    found = []
    for begin, end in bounds:
        chips = [
            Chip(
                written(token, encoding),
                span[place],
                not mask[place],
                token >= harmony_tokens.BODY_LIMIT,
            )
            for place, token in enumerate(tokens[begin:end], begin)
        ]
        shown = chips if whole else _shortened(chips, span[begin])
        found.append(Line(_label(tokens[begin:end]), shown))
    return found


def written(token: int, encoding: tiktoken.Encoding) -> str:
    """A token's text on one line: spaces and line ends visible, odd bytes in hexadecimal."""
    if token >= harmony_tokens.BODY_LIMIT:
        return harmony_tokens.name(token)
    data = encoding.decode_single_token_bytes(token)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"‹{data.hex()}›"
    text = text.replace(" ", "·").replace("\n", "⏎").replace("\r", "␍").replace("\t", "⇥")
    return printable(text)


def _label(tokens: Sequence[int]) -> str:
    """The role of a message, or the channel of an assistant's; from its header."""
    if tokens[0] == harmony_tokens.ENDOFTEXT:
        return "end"
    roles = {word: role for role, word in harmony_tokens.ROLE_WORDS.items()}
    channels = {word: channel for channel, word in harmony_tokens.CHANNEL_WORDS.items()}
    if harmony_tokens.CHANNEL in tokens:
        place = list(tokens).index(harmony_tokens.CHANNEL)
        return channels.get(tokens[place + 1], "assistant")
    return roles.get(tokens[1], "message")


def _shortened(chips: list[Chip], span: int) -> list[Chip]:
    head, tail = (_HEAD, _TAIL) if span else (_PROMPT_HEAD, _PROMPT_TAIL)
    if len(chips) <= head + tail + 1:
        return chips
    hidden = len(chips) - head - tail
    return [*chips[:head], Chip(f"… {hidden:,} more …", None, False), *chips[-tail:]]


def svg(conversations: Sequence[tuple[str, list[Line]]]) -> str:
    """The conversations below each other, with a legend, as one SVG document."""
    drawing = _Drawing()
    drawing.legend()
    for title, lines in conversations:
        drawing.title(title)
        for line in lines:
            drawing.line(line)
    return drawing.document()


class _Drawing:
    """Rectangles are gathered in one path a class, which halves the size of the file."""

    def __init__(self) -> None:
        self._paths: dict[str, list[str]] = {}
        self._texts: list[str] = []
        self._y = 8

    def legend(self) -> None:
        x = 10.0
        for span, name in enumerate(("prompt", "reasoning", "final")):
            x = self._chip(Chip(name, span, span == harmony_tokens.PROMPT), x) + 8
        self._text(x, "dashed and pale: masked, not in the loss", "l")
        self._y += _LINE + 6

    def title(self, title: str) -> None:
        self._text(10, title, "h")
        self._y += _LINE

    def line(self, line: Line) -> None:
        self._text(10, line.label, "l")
        x = float(_LEFT)
        for chip in line.chips:
            if x + _chip_width(chip) > _WIDTH - 10 and x > _LEFT:
                x, self._y = float(_LEFT), self._y + _LINE
            x = self._chip(chip, x) + _GAP
        self._y += _LINE + 2

    def _chip(self, chip: Chip, x: float) -> float:
        """Draw a chip at `x`; where it ends."""
        width = _chip_width(chip)
        if chip.span is not None:
            name = f"s{chip.span}{'m' if chip.masked else ''}"
            outline = f"M{x:.0f} {self._y}h{width:.0f}v{_HEIGHT}h-{width:.0f}z"
            self._paths.setdefault(name, []).append(outline)
        style = "l" if chip.span is None else "c" if chip.control else "m" if chip.masked else ""
        self._text(x + 3, chip.text, style)
        return x + width

    def _text(self, x: float, text: str, style: str) -> None:
        name = f' class="{style}"' if style else ""
        self._texts.append(f'<text x="{x:.0f}" y="{self._y + 12}"{name}>{escape(text)}</text>')

    def document(self) -> str:
        paths = "".join(f'<path class="{n}" d="{"".join(d)}"/>' for n, d in self._paths.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{self._y + 4}" '
            f'viewBox="0 0 {_WIDTH} {self._y + 4}"><style>{_STYLE}</style>'
            f'<rect width="100%" height="100%" fill="#fff"/>{paths}{"".join(self._texts)}</svg>'
        )


def _chip_width(chip: Chip) -> float:
    columns = sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in chip.text
    )
    return round(columns * _CHARACTER * (1.04 if chip.control else 1)) + 6
