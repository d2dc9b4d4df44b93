"""Drawings of cells: how a page, an overview and a terminal show what a kind of puzzle draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gristmill.svg import (
    BOLD,
    INK,
    MIDDLE,
    MIN_TEXT,
    OVERVIEW,
    SOFT,
    bitmap,
    card,
    fitted,
    small_card,
    small_text,
    text_at,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

Grid = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEFT: Final = 16
TOP: Final = 54
"""Where large pictures start below the title and the captions."""
PAPER: Final = "#f3ecdc"
"""Of boards and tiles."""
WRONG: Final = "#e5303c"
"""What breaks the rules of its puzzle."""
SMALL_TOP: Final = 46
"""Where small pictures start below the title and the note."""
_CHARACTER: Final = 0.56
_NOTE: Final = 11
_NOTE_LINES: Final = 3
_NARROWEST: Final = 270
_ROOM: Final = OVERVIEW - 20
_TALLEST: Final = 168
_MOST_LETTERS: Final = 4
_BETWEEN: Final = "#334455"


class Look(NamedTuple):
    """How the cells of one class look.

    fill: colour `#rrggbb` of the ground; empty: the paper is seen.
    mark: what a terminal shows, behind the text of the cell. style: of both, for rich.
    ink: attributes of texts in a large picture.
    letter: in the first cells of a large picture, where they have room for it.
    more: further attributes of the ground.
    """

    fill: str = ""
    mark: str = "  "
    style: str = ""
    ink: str = ""
    letter: str = ""
    more: str = ""


class Lines(NamedTuple):
    """Lines around the cells of a rectangle; step: cells between two of them."""

    rows: int
    columns: int
    stroke: str
    row: int = 0
    column: int = 0
    step: int = 1
    width: float = 0.5


@dataclass(frozen=True)
class Panel:
    """A grid of a drawing.

    texts: of the cells, each of one character or empty; None: looks say all.
    """

    caption: str
    cells: Grid
    looks: Sequence[Look]
    lines: Sequence[Lines] = ()
    frame: str = ""
    texts: Sequence[Sequence[str]] | None = None
    terminal_caption: str = ""


class Drawn(Protocol):
    """What is drawn of an example, for a page, an overview, and a terminal."""

    def large(self, title: str = "", notes: Sequence[str] = ()) -> str:
        """As SVG with all that it has.

        title: line above it. notes: lines below it. Both default to nothing.
        """

    def small(self, title: str) -> str | None:
        """As SVG of few characters; None where there is none."""

    def in_terminal(self) -> RenderableType:
        """For a console of rich.

        What colours say is also said by characters: a terminal without them shows as much.
        """


@dataclass(frozen=True)
class Drawing:
    """Grids of one size beside each other: see `Drawn`.

    name: what a screen reader says before the title. note: the line above a small picture.
    size: pixels of a cell in a large picture. gap: pixels between grids. arrow: in the first gap.
    """

    name: str
    note: str
    panels: Sequence[Panel]
    size: int
    gap: int = 0
    arrow: bool = False
    block: int = 0

    def large(self, title: str = "", notes: Sequence[str] = ()) -> str:
        """The grids with their captions, lines, letters and texts."""
        size, left = self.size, LEFT
        rows, columns = self.panels[0].cells.shape
        captions: list[tuple[float, str]] = []
        body: list[str] = []
        for panel in self.panels:
            captions.append((float(left), panel.caption))
            body += _panel(panel, left, size)
            left += size * columns + self.gap
        if self.arrow:
            x, y = LEFT + size * columns + self.gap / 2, TOP + size * rows / 2
            body.append(
                f'<path d="M{x - 7:g} {y:g}h12m-5 -5l5 5l-5 5" fill="none" stroke="{SOFT}"'
                ' stroke-width="2"/>'
            )
        label = f"{self.name} {title}".strip()
        wide = left - self.gap - LEFT
        return sheet(
            wide, size * rows, body, title=title, captions=captions, notes=notes, label=label
        )

    def small(self, title: str) -> str:
        """The cells of all grids, or the texts of the first one."""
        first = self.panels[0]
        rows, columns = first.cells.shape
        if first.texts:
            size, body = 18, _small_texts(first.texts, self.block, 18)
        else:
            gap = np.full((rows, max(1, columns // 6)), -1)
            grids = [part for panel in self.panels for part in (gap, panel.cells)][1:]
            cells = np.hstack(grids)
            size = min(16, _ROOM // cells.shape[1], _TALLEST // rows)
            # Only colours that occur: each takes characters.
            used = np.unique(cells)
            places = [np.searchsorted(used, line).tolist() for line in cells]
            fills = [first.looks[k].fill or PAPER if k >= 0 else _BETWEEN for k in used.tolist()]
            body = [bitmap(places, fills, 10, SMALL_TOP, size)]
        return small_sheet(size * rows, title, self.note, body)

    def in_terminal(self) -> RenderableType:
        """Each grid as a text, two characters a cell."""
        texts = [_text(panel, self.block) for panel in self.panels]
        return beside(*texts) if len(texts) > 1 else texts[0]


def _panel(panel: Panel, left: int, size: int) -> Iterable[str]:
    rows, columns = panel.cells.shape
    yield (
        f'<rect x="{left}" y="{TOP}" width="{size * columns}" height="{size * rows}"'
        f' fill="{PAPER}"{panel.frame}/>'
    )
    for number, look in enumerate(panel.looks):
        mask = panel.cells == number
        if look.fill:
            yield filled(mask, left, TOP, size, look.fill, look.more)
        if look.letter and size * 0.9 >= MIN_TEXT:
            for row, column in np.argwhere(mask).tolist()[:_MOST_LETTERS]:
                x, y = left + size * (column + 0.5), TOP + size * (row + 0.82)
                yield text_at(x, y, look.letter, size * 0.9, "#fff", MIDDLE + BOLD)
    for each in panel.lines:
        yield _lattice(each, left, size)
    for number, look in enumerate(panel.looks if panel.texts else ()):
        texts = "".join(
            f'<text x="{left + size * column + size / 2:g}"'
            f' y="{TOP + size * row + round(0.74 * size)}">{panel.texts[row][column]}</text>'
            for row, column in np.argwhere(panel.cells == number).tolist()
            if panel.texts and panel.texts[row][column]
        )
        if texts:
            yield f'<g font-size="15" text-anchor="middle" {look.ink}>{texts}</g>'


def _lattice(lines: Lines, left: int, size: int) -> str:
    x, y, step = left + size * lines.column, TOP + size * lines.row, size * lines.step
    wide, tall = size * lines.columns, size * lines.rows
    path = "".join(f"M{x} {across}h{wide}" for across in range(y, y + tall + 1, step))
    path += "".join(f"M{down} {y}v{tall}" for down in range(x, x + wide + 1, step))
    return f'<path d="{path}" fill="none" stroke="{lines.stroke}" stroke-width="{lines.width:g}"/>'


def _small_texts(texts: Sequence[Sequence[str]], block: int, size: int) -> list[str]:
    side = len(texts)
    lines = []
    for row, line in enumerate(texts):
        held = [column for column, text in enumerate(line) if text]
        if held:
            places, shown = " ".join(map(str, held)), "".join(line)
            lines.append(f"<text x='{places}' y='{row}'>{shown}</text>")
    walls = "".join(f"M{k} 0v{side}M0 {k}h{side}" for k in range(0, side + 1, block or side))
    return [
        f"<g transform='translate(10 {SMALL_TOP}) scale({size})'>",
        f"<path d='M0 {side / 2:g}h{side}' stroke='{PAPER}' stroke-width='{side}'/>",
        f"<path d='{walls}' stroke='#222' stroke-width='.08'/>",
        "<g transform='translate(.5 .75)' font-size='.75' text-anchor='middle' fill='#222'>",
        *lines,
        "</g></g>",
    ]


def small_sheet(tall: int, title: str, note: str, body: Iterable[str]) -> str:
    """A whole small picture: title, note, and a drawing of `tall` pixels from SMALL_TOP on."""
    heading = small_text(10, 20, title, " font-weight='700'")
    below = small_text(10, 38, note, f" fill='{SOFT}'")
    return small_card(SMALL_TOP + tall + 10, [heading, below, *body])


def beside(*columns: RenderableType) -> RenderableType:
    """Texts next to each other, where the terminal has room."""
    from rich.columns import Columns

    return Columns(columns, padding=(0, 4))


def captioned(caption: str) -> Text:
    """A text that begins with a caption, for a drawing below it."""
    from rich.text import Text

    return Text(no_wrap=True).append(f"{caption}\n", "dim")


def _text(panel: Panel, block: int) -> Text:
    text = captioned(panel.terminal_caption or panel.caption)
    blocks = panel.cells.shape[1] // block if block else 0
    between = "┼".join("─" * (2 * block + (0 < k < blocks - 1)) for k in range(blocks))
    for row, line in enumerate(panel.cells.tolist()):
        if block and row and row % block == 0:
            text.append(f"{between}\n", "dim")
        for column, number in enumerate(line):
            if block and column and column % block == 0:
                text.append("│ ", "dim")
            look = panel.looks[number]
            shown = (panel.texts[row][column] or ".") if panel.texts else ""
            text.append(shown + look.mark, look.style)
        text.append("\n")
    return text


def cells(mask: Mask, left: float, top: float, size: float) -> str:
    """The SVG path of the true cells of a grid, one rectangle for each run in a row.

    mask: bool [rows, columns]. left, top: corner of the grid. size: of a cell.
    """
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    steps = np.diff(padded, axis=1)
    rows, starts = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    return "".join(
        f"M{left + size * start:g} {top + size * row:g}h{size * (end - start):g}"
        f"v{size:g}h-{size * (end - start):g}z"
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    )


def filled(mask: Mask, left: float, top: float, size: float, fill: str, more: str = "") -> str:
    """The true cells of a grid as one SVG element; empty where no cell is true.

    Arguments as for `cells`. fill: colour. more: further attributes.
    """
    if not mask.any():
        return ""
    return f'<path d="{cells(mask, left, top, size)}" fill="{fill}"{more}/>'


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text on at most three lines, the last one cut to what fits.

    Arguments as for `svg.fitted`.
    """
    most = max(4, int(width / (size * _CHARACTER)))
    lines = wrap(text[: most * (_NOTE_LINES + 1)], most) or [""]
    if len(lines) > _NOTE_LINES:
        lines[_NOTE_LINES - 1 :] = [f"{lines[_NOTE_LINES - 1][: most - 1]}…"]
    return lines


def sheet(
    wide: float,
    tall: float,
    body: Iterable[str],
    *,
    title: str,
    captions: Sequence[tuple[float, str]],
    notes: Sequence[str],
    label: str,
) -> str:
    """A whole large picture: title, captions, drawing, notes.

    title: line above it. captions: where each starts, and its text. notes: paragraphs below it.
    """
    width = max(int(wide) + 2 * LEFT, _NARROWEST)
    room = width - 2 * LEFT
    lines = [line for note in notes for line in wrapped(note, room, _NOTE)]
    height = TOP + int(tall) + 14 + 16 * len(lines) + (2 if lines else 0)
    parts = [text_at(LEFT, 24, fitted(title, room, 13), 13, INK, BOLD)]
    parts += [text_at(x, TOP - 8, caption, 11, SOFT) for x, caption in captions]
    parts += body
    for number, line in enumerate(lines):
        y = TOP + tall + 20 + 16 * number
        parts.append(text_at(LEFT, y, line, _NOTE, SOFT))
    return card(width, height, label, parts)
