"""What people see of puzzle datasets: drawings of examples, tables of rows, facts on a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gristmill.browse.columns import Columns
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token, Type
from gristmill.families import Column
from gristmill.markdown import INLINE, image
from gristmill.puzzles.domains.arc_grid import COLOURS, EOS, FIRST_COLOUR, PAD
from gristmill.puzzles.domains.arc_grid import SIDE as ARC_SIDE
from gristmill.puzzles.domains.domino_rows import (
    FIRST,
    NONE,
    ON_LEFT,
    ON_RIGHT,
    VALUES,
    Scenario,
    Tile,
)
from gristmill.puzzles.domains.domino_rows import SEQ_LEN as DOMINO_LENGTH
from gristmill.puzzles.domains.domino_rows import decoded as scenario_of
from gristmill.puzzles.domains.grid import GOAL, OPEN, PATH, START, WALL, Symbols, extents, side_of
from gristmill.puzzles.format import BLANK, FIELDS, IDENTIFIERS, SPLITS, array, metadata
from gristmill.puzzles.read.rows import Dataset
from gristmill.reading.reader import array_fact, counted
from gristmill.svg import OVERVIEW, SOFT, bitmap, small_card, small_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from gristmill.browse.opening import Files

_COLUMNS = (
    Column("inputs", "int32[seq_len]", "tokens of the question, one row an example"),
    Column("labels", "int32[seq_len]", "tokens of the answer"),
    Column("puzzle_identifiers", "int32", "identifier of each puzzle, a place in identifiers.json"),
    Column("puzzle_indices", "int32", "first example of each puzzle, and the end of the last"),
    Column("group_indices", "int32", "first puzzle of each group, and the end of the last"),
)


def columns(asset: str) -> Sequence[Column]:
    """Returns the arrays of any asset, without the name of the set before each."""
    return _COLUMNS


Grid = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

WRONG: Final = "#e5303c"
"""What breaks the rules of its puzzle."""
_PAPER: Final = "#f3ecdc"
_BETWEEN: Final = "#334455"
_TOP: Final = 46
"""Where a drawing starts below the title and the note."""
_ROOM: Final = OVERVIEW - 20
_TALLEST: Final = 168
_LARGEST: Final = 110
"""Most rows or columns of a grid that is drawn."""


class Look(NamedTuple):
    """How the cells of one class look: the fill, and for a terminal mark and style."""

    fill: str = ""
    mark: str = "  "
    style: str = ""


class Drawn(Protocol):
    """What is drawn of an example."""

    def svg(self, title: str) -> str:
        """A picture that an event has room for, unless it has very many cells."""

    def in_terminal(self) -> RenderableType:
        """For a console of rich. What colours say is also said by characters."""


@dataclass(frozen=True)
class Panel:
    """A grid of a drawing. cells: places in `looks`. texts: of cells, one character or none."""

    caption: str
    cells: Grid
    looks: Sequence[Look]
    texts: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True)
class Drawing:
    """Grids of one size. note: the line below the title. block: cells between lines of a board."""

    note: str
    panels: Sequence[Panel]
    block: int = 0

    def svg(self, title: str) -> str:
        """The cells of all grids, or the texts of the first one."""
        first = self.panels[0]
        rows, columns = first.cells.shape
        if first.texts:
            size, body = 18, [*_texts(first.texts, self.block, 18)]
        else:
            gap = np.full((rows, max(1, columns // 6)), -1)
            cells = np.hstack([part for panel in self.panels for part in (gap, panel.cells)][1:])
            size = max(1, min(16, _ROOM // cells.shape[1], _TALLEST // rows))
            # Only colours that occur: each takes characters.
            used = np.unique(cells)
            places = [np.searchsorted(used, line).tolist() for line in cells]
            fills = [first.looks[k].fill or _PAPER if k >= 0 else _BETWEEN for k in used.tolist()]
            body = [bitmap(places, fills, 10, _TOP, size)]
        return _sheet(size * rows, title, self.note, body)

    def in_terminal(self) -> RenderableType:
        """Each grid as a text, two characters a cell."""
        from rich.columns import Columns

        return Columns([self._text(panel) for panel in self.panels], padding=(0, 4))

    def _text(self, panel: Panel) -> Text:
        from rich.text import Text

        text = Text(no_wrap=True).append(f"{panel.caption}\n", "dim")
        block = self.block
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
        text.right_crop()
        return text


def _texts(texts: Sequence[Sequence[str]], block: int, size: int) -> Iterator[str]:
    side = len(texts)
    walls = "".join(f"M{k} 0v{side}M0 {k}h{side}" for k in range(0, side + 1, block or side))
    yield f"<g transform='translate(10 {_TOP}) scale({size})'>"
    yield f"<path d='M0 {side / 2:g}h{side}' stroke='{_PAPER}' stroke-width='{side}'/>"
    yield f"<path d='{walls}' stroke='#222' stroke-width='.08'/>"
    yield "<g transform='translate(.5 .75)' font-size='.75' text-anchor='middle' fill='#222'>"
    for row, line in enumerate(texts):
        if held := [str(column) for column, text in enumerate(line) if text]:
            yield f"<text x='{' '.join(held)}' y='{row}'>{''.join(line)}</text>"
    yield "</g></g>"


def _sheet(tall: int, title: str, note: str, body: Sequence[str]) -> str:
    heading = small_text(10, 20, title, " font-weight='700'")
    below = small_text(10, 38, note, f" fill='{SOFT}'")
    return small_card(_TOP + tall + 10, [heading, below, *body])


_ARC_PALETTE: Final = (
    *("#111111", "#1e78d6", "#f04438", "#33b74a", "#f7d417"),
    *("#a6a6a6", "#e321b2", "#f88a2a", "#83d3f2", "#86172b"),
)
"""Colours 0 to 9 of ARC."""
_DARK: Final = (0, 1, 2, 6, 9)
"""Colours of ARC on which a digit must be white."""
_UNKNOWN: Final = Look("#ffffff", "? ", f"bold {WRONG}")
_ARC_LOOKS: Final = (
    Look(),
    Look("#d9cdb4", "· ", "dim"),
    *(
        Look(fill, f"{colour} ", f"{'white' if colour in _DARK else 'black'} on {fill}")
        for colour, fill in enumerate(_ARC_PALETTE)
    ),
    _UNKNOWN,
)
"""By token; the last one is of all other tokens."""
_MAZE_LOOKS: Final = (
    Look(),
    Look("#4a4038", "██", "bright_black"),
    Look("#f2a65a", "o ", "bold black on #f2a65a"),
    Look("#2e8b57", "S ", "bold white on #2e8b57"),
    Look("#c0392b", "G ", "bold white on #c0392b"),
    Look(WRONG, "?!", f"bold {WRONG}"),
)
_SUDOKU_SIDE: Final = 9
_BLANK: Final = 1
_SUDOKU_LOOKS: Final = (
    Look(mark=" ", style="bold"),
    Look(mark=" ", style="bright_blue"),
    Look(mark="!", style=f"bold {WRONG}"),
)
"""Of givens, of digits that are filled in, and of what is against the rules."""
_FILLS: Final = (
    *("#f7dfa8", "#cfe6c9", "#cbdff5", "#f6d0c8"),
    *("#e2d4f0", "#c8ebe6", "#e8e0d0", "#f5cfe3"),
)
"""Grounds of the tokens of grids, in turn; token 0 has none."""


def _arc(inputs: Grid, labels: Grid) -> Drawing:
    """The input and the output of an example of ARC with their EOS borders, without rows of PAD."""
    grids = [row.reshape(ARC_SIDE, ARC_SIDE) for row in (inputs, labels)]
    window = _extent(grids)
    sizes, panels = [], []
    for name, grid in zip(("input", "output"), grids, strict=True):
        has_colour = grid > EOS
        held = _extent([has_colour])
        high, wide = has_colour[held].shape
        row, column = held[0].start, held[1].start
        place = f" at ({row}, {column})" if row or column else ""
        sizes.append(f"{high} × {wide}" if has_colour.any() else "no colours")
        is_known = (grid >= PAD) & (grid < FIRST_COLOUR + COLOURS)
        shown = np.where(is_known, grid, len(_ARC_LOOKS) - 1)[window]
        panels.append(Panel(f"{name} {sizes[-1]}{place}", shown, _ARC_LOOKS))
    return Drawing(" → ".join(sizes), panels)


def _extent(grids: Sequence[npt.NDArray[np.generic]]) -> tuple[slice, slice]:
    """The rows and columns around all cells that are not 0, one cell at least."""
    used = np.any([grid != 0 for grid in grids], axis=0)
    rows, columns = np.nonzero(used.any(axis=1))[0], np.nonzero(used.any(axis=0))[0]
    if not len(rows):
        return slice(0, 1), slice(0, 1)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _maze(inputs: Grid, labels: Grid) -> Drawing:
    """A maze with the path of the label in it; what the label contradicts is red."""
    side = side_of(len(inputs)) or 0
    given, solved = (row.reshape(side, side) for row in (inputs, labels))
    is_known = (given >= WALL) & (given <= GOAL)
    allowed = is_known & ((given == solved) | ((given == OPEN) & (solved == PATH)))
    classes = [given == WALL, solved == PATH, given == START, given == GOAL, ~allowed]
    cells = np.zeros(given.shape, np.int64)
    for number, mask in enumerate(classes, 1):
        cells[mask] = number
    caption = f"{side} × {side}, path of {int((solved == PATH).sum())}"
    return Drawing(caption, [Panel(f"{caption} cells", cells, _MAZE_LOOKS)])


def _sudoku(inputs: Grid, labels: Grid) -> Drawing:
    """The givens of a Sudoku, and its solution, in which what breaks a rule is marked."""
    given, solution = (row.reshape(_SUDOKU_SIDE, _SUDOKU_SIDE) for row in (inputs, labels))
    is_given = given > _BLANK
    is_digit = (solution > _BLANK) & (solution <= _SUDOKU_SIDE + 1)
    wrong = _twice(solution) | (is_given & (given != solution)) | ~is_digit
    count = f"{int(is_given.sum())} givens"
    panels = [
        Panel(
            caption,
            np.where(red, 2, np.where(is_given, 0, 1)),
            _SUDOKU_LOOKS,
            [[_digit(token) for token in line] for line in grid.tolist()],
        )
        for caption, grid, red in (
            (count, given, _twice(given)),
            ("solution, givens bold, ! against the rules", solution, wrong),
        )
    ]
    return Drawing(count, panels, block=3)


def _digit(token: int) -> str:
    """A token as people read it: a digit, nothing for a blank or PAD, `?` for all others."""
    if token in (0, _BLANK):
        return ""
    return str(token - 1) if _BLANK < token <= _SUDOKU_SIDE + 1 else "?"


def _twice(board: Grid) -> Mask:
    """The cells whose digit is twice in their row, column or box, bool [9, 9]."""
    cells = board.reshape(-1)
    row, column = np.divmod(np.arange(len(cells)), _SUDOKU_SIDE)
    box = row // 3 * 3 + column // 3
    peers = (row[:, None] == row) | (column[:, None] == column) | (box[:, None] == box)
    same = (cells[:, None] == cells) & peers & ~np.eye(len(cells), dtype=bool)
    found: Mask = same.any(axis=1).reshape(board.shape) & (board > _BLANK)
    return found


def _grid(inputs: Grid, labels: Grid, config: Mapping[str, Any]) -> Drawing:
    """The input and the output of an example of grids, without what is beyond both."""
    texts = Symbols.of(config["alphabet"], config["values"], config["pad"]).texts
    grids = [row.reshape(_sides(config)) for row in (inputs, labels)]
    sizes = [tuple(extents(each[None])[0].tolist()) for each in grids]
    rows, columns = (max(1, *of) for of in zip(*sizes, strict=True))
    windows = [each[:rows, :columns] for each in grids]
    used = np.unique(windows).tolist()
    looks = [_look_of(token, texts) for token in used]
    panels = [
        Panel(f"{name} {high} × {wide}", np.searchsorted(used, cells), looks)
        for name, cells, (high, wide) in zip(("input", "output"), windows, sizes, strict=True)
    ]
    return Drawing(" → ".join(f"{high} × {wide}" for high, wide in sizes), panels)


def _look_of(token: int, texts: Sequence[str]) -> Look:
    """How a token of grids looks. texts: of the tokens, see `Symbols`."""
    if not token:
        return Look()
    if not 0 <= token < len(texts):
        return _UNKNOWN
    fill = _FILLS[token % len(_FILLS)]
    return Look(fill, texts[token][-2:].ljust(2), f"black on {fill}")


def _sides(config: Mapping[str, Any]) -> tuple[int, int]:
    return int(config.get("height") or 0), int(config.get("width") or 0)


_POSITIONS: Final = {NONE: "", ON_LEFT: " left", ON_RIGHT: " right", FIRST: " first"}
_CHOSEN: Final = "#f2a65a"


@dataclass(frozen=True)
class Hand:
    """The hand of a Domino scenario, and in a terminal the chain, too."""

    scene: Scenario

    @property
    def move(self) -> str:
        """The move of the label in words."""
        tile, position = self.scene.move, self.scene.position
        if tile is None:
            return "no move"
        return (
            f"play {'-'.join(map(_pips, tile))}{_POSITIONS.get(position, f' position {position}')}"
        )

    def svg(self, title: str) -> str:
        """The tiles of the hand, the one of the label in its colour."""
        hand = self.scene.hand
        corners = [(10 + place % 4 * 52, 2 + place // 4 * 32) for place in range(len(hand))]
        outlines = [f"M{x} {y}h48v24h-48z" for x, y in corners]
        chosen = outlines[hand.index(self.scene.move)] if self.scene.move in hand else ""
        texts = "".join(
            f"<text x='{x + 12} {x + 36}' y='{y + 17}'>{_pips(low)}{_pips(high)}</text>"
            for (low, high), (x, y) in zip(hand, corners, strict=True)
        )
        body = [
            f"<g transform='translate(0 {_TOP})'><path d='{''.join(outlines)}' fill='{_PAPER}'/>",
            f"<path d='{chosen}' fill='{_CHOSEN}'/>",
            f"<g font-size='14' fill='#222' text-anchor='middle'>{texts}</g></g>",
        ]
        ends = (
            f"ends {' and '.join(map(_pips, self.scene.ends))}"
            if self.scene.ends
            else "empty table"
        )
        tall = 32 * max(1, -(-len(hand) // 4))
        return _sheet(tall, title, f"{ends} · {self.move}", body)

    def in_terminal(self) -> RenderableType:
        """A line for the chain, turned so that equal halves meet, and one for each tile."""
        from rich.text import Text

        table, ends = self.scene.table, self.scene.ends
        text = Text("table: " if table else "table: empty", no_wrap=True)
        for tile, fits in _turned(table, ends[0] if ends else -1):
            text.append(_tile(tile) + ("" if fits else "!"), "" if fits else f"bold {WRONG}")
        text.append("\nhand: * can be played, >> the label\n", "dim")
        for tile in self.scene.hand:
            playable = not table or bool(set(tile) & set(ends or ()))
            is_chosen = tile == self.scene.move
            style = f"bold black on {_CHOSEN}" if is_chosen else "" if playable else "dim"
            text.append((">>" if is_chosen else "  ") + ("* " if playable else "  "))
            text.append(_tile(tile), style).append("\n")
        return text.append(self.move, "bold")


def _turned(table: Sequence[Tile], left: int) -> Iterator[tuple[Tile, bool]]:
    """The tiles of a chain as they lie, each with whether it fits; one that does not is stored."""
    end = left
    for low, high in table:
        fits = end in (low, high)
        tile = (high, low) if fits and end != low else (low, high)
        yield tile, fits
        end = tile[1]


def _tile(tile: Tile) -> str:
    return f"[{_pips(tile[0])}|{_pips(tile[1])}]"


def _pips(value: int) -> str:
    return str(value) if 0 <= value < VALUES else "?"


def drawing(
    kind: str,
    inputs: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> Drawn | None:
    """What is drawn of an example; None for other kinds and lengths."""
    # int64, in which no arithmetic of pictures overflows.
    given, wanted = (np.asarray(row).astype(np.int64).reshape(-1) for row in (inputs, labels))
    count = len(given)
    side = side_of(count) or 0
    if kind == "arc" and side == ARC_SIDE:
        return _arc(given, wanted)
    if kind == "sudoku" and side == _SUDOKU_SIDE:
        return _sudoku(given, wanted)
    if kind == "maze" and 0 < side <= _LARGEST:
        return _maze(given, wanted)
    if kind == "domino" and count == DOMINO_LENGTH:
        return Hand(scenario_of(given, wanted))
    if kind == "grid" and max(_sides(config)) <= _LARGEST and 0 < count == prod(_sides(config)):
        return _grid(given, wanted, config)
    return None


_TYPES: Final[Mapping[str, Type]] = {
    "identifier": "text",
    "puzzle": "integer",
    "group": "integer",
    "draw": "integer",
    "source": "text",
    "source_row": "integer",
    "inputs": "list",
    "labels": "list",
}
_STEP: Final = 1 << 16
_LOOKED_AT: Final = 20
"""Rows of which one is drawn on the page of an asset."""
_LONG_TITLE: Final = "x" * 60


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield a table for each set of each split."""
    data = Dataset(folder)
    for split, set_name in data.sets():
        yield _table(data, files, split, set_name)


def sample(folder: Path) -> int:
    """The first row whose picture fits the page of the asset, or 0."""
    data = Dataset(folder)
    for place in islice(data.sets(), 1):
        arrays = data.arrays(*place)
        for row in range(min(_LOOKED_AT, len(arrays.inputs))):
            drawn = drawing(data.kind or "", arrays.inputs[row], arrays.labels[row], data.config)
            if drawn is None or len(image(_LONG_TITLE, drawn.svg(_LONG_TITLE))) <= INLINE:
                return row
    return 0


def _table(data: Dataset, files: Files, split: str, set_name: str) -> Stored:
    def drawing_of(row: Record) -> Drawn | None:
        return drawing(data.kind or "", row.values["inputs"], row.values["labels"], data.config)

    def pictures(row: Record) -> Sequence[Picture]:
        name = row.values["identifier"]
        title = f"{split} {row.number:,}" + f" · {name}" * (name != BLANK)
        drawn = drawing_of(row)
        return [] if drawn is None else [Picture(title, drawn.svg(title))]

    def in_terminal(row: Record, _: Mapping[str, Any]) -> Sequence[RenderableType]:
        drawn = drawing_of(row)
        return [] if drawn is None else [drawn.in_terminal()]

    def tokens(row: Record) -> Sequence[Token]:
        return [
            Token(text, token, counts=name == "labels", span=name)
            for name in ("inputs", "labels")
            for token, text in _as_grid(row.values[name], data.config)
        ]

    return Stored(
        f"{split}/{set_name}",
        lambda: _examples(data, files, split, set_name),
        ("identifier", "source"),
        sample=lambda row: (str(row.number), {"split": split, "set": set_name}),
        pictures=pictures,
        tokens=tokens,
        chosen={"split": split, "set": set_name},
        ids=("identifier",),
        drawn=in_terminal,
    )


def _as_grid(tokens: Sequence[int], config: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the tokens of a row with their texts, a line for each row of the grid; 0 is a point."""
    wide = _sides(config)[1] or side_of(len(tokens)) or len(tokens)
    digits = max(map(len, map(str, tokens)), default=1)
    for at, token in enumerate(tokens, 1):
        end = "\n" if at % wide == 0 or at == len(tokens) else " "
        yield token, f"{token or '·':>{digits}}{end}"


def _examples(data: Dataset, files: Files, split: str, set_name: str) -> Columns:
    for name in FIELDS:
        files.checked(array(split, set_name, name))
    files.checked(IDENTIFIERS)
    arrays = data.arrays(split, set_name)
    types = {
        name: kind
        for name, kind in _TYPES.items()
        if arrays.origins is not None or name not in ("draw", "source", "source_row")
    }

    @cache
    def sources() -> list[str]:
        return [file.path for file in data.sources.files]

    def named(numbers: Any, texts: Sequence[str]) -> list[str | None]:
        return [texts[at] if 0 <= at < len(texts) else None for at in numbers.tolist()]

    def get(names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        puzzle = np.searchsorted(arrays.puzzle_indices, np.arange(first, stop), side="right") - 1
        inside = np.clip(puzzle, 0, len(arrays.puzzle_identifiers) - 1)
        origins: Any = None if arrays.origins is None else arrays.origins[first:stop]
        of: Mapping[str, Callable[[], Any]] = {
            "inputs": lambda: arrays.inputs[first:stop],
            "labels": lambda: arrays.labels[first:stop],
            "puzzle": lambda: puzzle,
            "group": lambda: np.searchsorted(arrays.group_indices, puzzle, side="right") - 1,
            "identifier": lambda: named(arrays.puzzle_identifiers[inside], data.identifiers),
            "source": lambda: named(origins[:, 0], sources()),
            "source_row": lambda: origins[:, 1],
            "draw": lambda: origins[:, 2],
        }
        return {name: of[name]() for name in names}

    path = data.folder / array(split, set_name, "inputs")
    return Columns(path, types, len(arrays.inputs), get, step=_STEP)


def facts_of(_: str, folder: Path) -> Iterator[str]:
    """Yield what is in a dataset, a line each. Raises BadInput where a file cannot be read."""
    data = Dataset(folder)
    for place in data.sets():
        arrays = data.arrays(*place)
        groups = counted(max(0, len(arrays.group_indices) - 1), "group")
        puzzles = counted(len(arrays.puzzle_identifiers), "puzzle")
        yield f"{'/'.join(place)}: {groups}, {puzzles}, {counted(len(arrays.inputs), 'example')}"
        for field in FIELDS:
            yield array_fact(array(*place, field), getattr(arrays, field))
    for split in SPLITS:
        described = vars(data.metadata(split)).items()
        yield f"{metadata(split)}: {', '.join(f'{key} {value}' for key, value in described)}"
    yield f"{IDENTIFIERS}: {counted(len(data.identifiers), 'name')}"
