"""Packs, pools, values and views for people: columns, facts, tables, boards in SVG and colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.browse.columns import Columns, of_arrays, of_values
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture
from gristmill.families import Column
from gristmill.macroxue.format.files import (
    DESCRIPTION,
    read_description,
    read_gaps,
    read_runs,
    read_valuation_types,
)
from gristmill.macroxue.format.rows import (
    STEP_ROW_DTYPE,
    VALUE_ROW_DTYPE,
    Rows,
    decode_boards,
    open_steps,
    open_values,
    step_files,
    value_files,
)
from gristmill.macroxue.read.stream import StepStream
from gristmill.macroxue.rules.game import DIRECTIONS, TrueRanks, true_ranks
from gristmill.printable import cut, printable
from gristmill.reading.reader import Ranges, counted, file_facts, number
from gristmill.svg import RULE, bitmap, small_card, small_text

if TYPE_CHECKING:
    from rich.text import Text

    from gristmill.browse.opening import Files

# The colours of the original game, rank 0 (empty) to 11 (2048); larger tiles share one.
_TILES: Final = (
    *("#cdc1b4", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b"),
    *("#edcf72", "#edcc61", "#edc850", "#edc53f", "#edc22e", "#3c3a32"),
)
_DARK, _LIGHT = "#776e65", "#f9f6f2"


def board_svg(title: str, ranks: Sequence[int]) -> str:
    """A board of 16 ranks, row by row; with a short title it fits the overview of an asset."""
    cell, top = 44, 32
    colours = [min(rank, len(_TILES) - 1) for rank in ranks]
    used = sorted(set(colours))
    squares = [[used.index(rank) for rank in colours[row : row + 4]] for row in range(0, 16, 4)]
    tiles = [str(1 << rank) if rank else "" for rank in ranks]
    # A number is in the middle of six characters; no-break spaces keep their width.
    lines = [
        f"<text y='{row + 0.6:g}' textLength='4'>"
        + "".join(f"{tile:^6}" for tile in tiles[4 * row : 4 * row + 4]).replace(" ", "\xa0")
        + "</text>"
        for row in range(4)
    ]
    walls = "".join(f"M{k} 0v4M0 {k}h4" for k in (1, 2, 3))
    return small_card(
        top + 4 * cell + 10,
        [
            small_text(10, 20, title, " font-weight='700'"),
            f"<g transform='translate(10 {top})scale({cell})' style='font:.27px monospace'"
            " fill='#222'>",
            bitmap(squares, [_TILES[rank] for rank in used], 0, 0, 1),
            f"<path d='{walls}' stroke='{RULE}' stroke-width='.08'/>{''.join(lines)}</g>",
        ],
    )


def board_text(ranks: Sequence[int]) -> Text:
    """A board for a console of rich: three lines a row, in the colours of the tiles."""
    from rich.style import Style
    from rich.text import Text

    board = Text(no_wrap=True)
    for line in range(12):
        for rank in ranks[line // 3 * 4 : line // 3 * 4 + 4]:
            shown = str(1 << rank) if rank and line % 3 == 1 else ""
            ink, ground = _DARK if rank <= 2 else _LIGHT, _TILES[min(rank, len(_TILES) - 1)]
            board.append(f"{shown:^8}", Style(color=ink, bgcolor=ground, bold=True))
        board.append("\n")
    return board


_STEPS = {
    "run_id": "the run: runs.id in metadata.db",
    "step_index": "number of the step in its game",
    "board": "the board before the move, four bits a cell",
    "board_eval": "evaluation of the board, of the true ranks",
    "tile_65536_mask": "cells with a tile of 65,536 or more",
    "move_dir": "the chosen move: 0 up, 1 down, 2 left, 3 right",
    "valuation_type": "id of the name in valuation_types.json",
    "ev_legal": "bit 0 up, 1 down, 2 left, 3 right: the expected value was a number",
    "max_rank": "as the log has it",
    "seed": "low 32 bits of the seed",
    "branch_evs": "expected values of up, down, left, right; 0.0 where there is none",
}
_VALUES = {
    "run_id": "as in the steps",
    "step_index": "as in the steps",
    "reward": "points of the recorded move",
    "reward_scaled": "reward times reward_scale",
    "return_raw": "discounted return",
    "return_scaled": "the return on the scale of value heads",
}
_DATABASE = (
    Column("runs.id", "INTEGER", "run_id"),
    Column("runs.seed", "BIGINT", "the meta's seed as a signed number"),
    Column("runs.steps", "INT", "rows of the run"),
    Column("runs.max_score", "INT", "score of the game"),
    Column("runs.highest_tile", "INT", "highest tile of the game"),
    Column("session.meta_key", "TEXT", "a key of the session"),
    Column("session.meta_value", "TEXT", "its value"),
)
_GAPS = (
    Column("gaps.run_id", "INTEGER", "a run with missing steps, whose values are NaN"),
    Column("gaps.step_index", "INT", "the first step that does not follow, or the last step"),
    Column("gaps.reason", "TEXT", "board, or score: what tells that steps are missing"),
)


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables."""
    if asset in ("macroxue/pack", "macroxue/pool"):
        return [*_of(STEP_ROW_DTYPE, "steps", _STEPS), *_DATABASE]
    if asset == "macroxue/values":
        return _of(VALUE_ROW_DTYPE, "values", _VALUES)
    if asset == "macroxue/training_view":
        packed, valued = columns("macroxue/pack"), columns("macroxue/values")
        return [*packed, *valued, *_GAPS]
    return ()


def _of(dtype: np.dtype[np.void], table: str, texts: dict[str, str]) -> list[Column]:
    found = []
    for name in dtype.names or ():
        base, shape = dtype[name].subdtype or (dtype[name], ())
        size = "".join(f"[{length}]" for length in shape)
        found.append(Column(f"{table}.{name}", f"{base.name}{size}", texts[name]))
    return found


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the rows, the ranges of their columns, and the runs, a line each."""
    if asset == "macroxue/training_view":
        for side in read_description(folder).sides:
            for part in ("macroxue/pack", "macroxue/values"):
                lines = _facts(part, folder / side)
                yield from (f"{side}/{line}" if side else line for line in lines)
        return
    yield from _facts(asset, folder)


def _facts(asset: str, folder: Path) -> Iterator[str]:
    has_values = asset == "macroxue/values"
    ranges = Ranges()
    for file in value_files(folder) if has_values else step_files(folder):
        rows = open_values(file) if has_values else open_steps(file)
        yield f"{file.name}: {counted(len(rows), 'row')} of {rows.dtype.itemsize} bytes"
        ranges.add(rows)
    yield from ranges.lines()
    if has_values:
        return
    if (database := folder / "metadata.db").is_file():
        runs = read_runs(database)
        yield f"metadata.db: {counted(len(runs), 'run')}"
        for name in ("steps", "max_score", "highest_tile") if runs else ():
            of_runs = np.array([getattr(run, name) for run in runs], np.int64)
            yield f"{name} of a run: {number(of_runs.min())} to {number(of_runs.max())}"
    if (types := folder / "valuation_types.json").is_file():
        yield f"valuation_types.json: {', '.join(read_valuation_types(types))}"
    yield from file_facts(folder, ("trace.jsonl", "quarantine.jsonl", "warnings.jsonl"))


_ARROWS = "↑↓←→"


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield the tables of a pack, a pool, a value sidecar or a view, the main one first."""
    if asset == "macroxue/values":
        read = partial(_arrays, files, "", value_files, open_values, VALUE_ROW_DTYPE)
        terms = {"run": "run_id", "step": "step_index"}
        yield Stored("values", read, sample=lambda row: (str(row.number), {}), terms=terms)
        return
    sides = read_description(folder).sides if asset == "macroxue/training_view" else ("",)
    for side in sides:
        yield from _of_side(folder / side, files, side)
    for side in sides:
        if read_gaps(folder / side / "metadata.db"):  # a table without rows has nothing to show
            yield _of_runs(files, side, "gaps", read_gaps, "run_id")


def _of_side(folder: Path, files: Files, side: str) -> Iterator[Stored]:
    """The steps and the runs of a pack, or of one side of a view; "" for a folder without sides."""
    within = f"{side}/" if side else ""
    ranks_of = _ranks(folder)
    yield Stored(
        f"{within}steps",
        partial(_arrays, files, within, step_files, open_steps, STEP_ROW_DTYPE),
        searchable=("board",),
        sample=lambda row: _run(side, "run_id", row, step=row.values["step_index"]),
        pictures=lambda row: [
            Picture(f"step {row.number:,}", board_svg(_title(row), ranks_of(row.number)))
        ],
        chosen=_chosen(side),
        terms={"run": "run_id", "step": "step_index"},
        drawn=lambda row, _: [_heading(folder, row), board_text(ranks_of(row.number))],
    )
    yield _of_runs(files, side, "runs", read_runs, "id", searchable=("seed",))


def _of_runs(
    files: Files,
    side: str,
    name: str,
    read: Callable[[Path], Sequence[object]],
    column: str,
    **more: Any,
) -> Stored:
    """A table of metadata.db, whose rows name their run in a column."""
    within = f"{side}/" if side else ""

    def rows() -> Columns:
        path = files.checked(f"{within}metadata.db")
        return of_values(path, [vars(row) for row in read(path)])

    return Stored(
        f"{within}{name}",
        rows,
        sample=partial(_run, side, column),
        chosen=_chosen(side),
        terms={"run": column},
        **more,
    )


def _chosen(side: str) -> Mapping[str, str]:
    return {"split": side} if side else {}


def _run(side: str, column: str, row: Record, **more: Any) -> tuple[str, Mapping[str, Any]]:
    """What `gristmill trace` takes for a row that names its run in a column."""
    return str(row.values[column]), {**more, **_chosen(side)}


def _arrays(
    files: Files,
    within: str,
    find: Callable[[Path], list[Path]],
    open_rows: Callable[[Path], Rows],
    dtype: np.dtype[Any],
) -> Columns:
    paths = [files.checked(f"{within}{path.name}") for path in find(files.folder / within)]
    names = dtype.names or ()
    rows = [{name: each[name] for name in names} for each in map(open_rows, paths)]
    return of_arrays(paths, rows, [name for name in names if name == "board"])


def _title(row: Record) -> str:
    values, move = row.values, row.values["move_dir"]
    step = f"run {values['run_id']} · step {values['step_index']:,}"
    return f"{step} · {_ARROWS[move]} {DIRECTIONS[move]}"


def _heading(folder: Path, row: Record) -> Text:
    from rich.text import Text

    names = read_valuation_types(folder / "valuation_types.json")
    valued = printable(cut(names[row.values["valuation_type"]], 24))
    return Text(f"{_title(row)} · {valued}", "bold")


def _ranks(folder: Path) -> Callable[[int], Sequence[int]]:
    """Returns what gives the 16 ranks of a row: true ranks where they are known, else at most 16.

    Ranks above 65536 follow from the other steps of the run, which are read for such a row.
    """
    stream = cache(lambda: StepStream(folder))

    @lru_cache(1)
    def of_run(first: int, stop: int) -> TrueRanks:
        return true_ranks(stream().read(first, stop), np.zeros(1, np.int64))

    def ranks(number: int) -> Sequence[int]:
        batch = stream().batch(number, number + 1)
        found = decode_boards(batch.rows["board"], batch.rows["tile_65536_mask"])[0]
        if batch.rows["tile_65536_mask"][0]:
            first, stop = stream().run_bounds(batch.first_run)
            known, at = of_run(first, stop), number - first
            if not known.unknown[at]:
                found = known.ranks[at]
        return list(map(int, found))

    return ranks


def late_row(folder: Path) -> int:
    """Returns the number of a late step of the best run, which the page of a pack or view draws."""
    side = read_description(folder).sides[0] if (folder / DESCRIPTION).exists() else ""
    runs = read_runs(folder / side / "metadata.db")
    numbers = [at for at, run in enumerate(runs) if run.steps]
    at = max(numbers, key=lambda at: runs[at].max_score, default=-1)
    return 0 if at < 0 else sum(run.steps for run in runs[:at]) + (runs[at].steps - 1) * 19 // 20
