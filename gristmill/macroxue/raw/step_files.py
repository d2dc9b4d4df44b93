"""Drops of .npy steps, and their runs. Source: docs/formats/macroxue.md#steps-of-other-programs."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, permutations
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.inbox.listing import Account, ColumnState
from gristmill.inbox.marks import is_mark, left_out_of
from gristmill.macroxue.format.files import Run, read_runs, read_valuation_types
from gristmill.macroxue.format.rows import MOVES, Rows, rows_header
from gristmill.macroxue.raw.strict_parser import FileDigest, RawDigest
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, has_file, open_file
from gristmill.untrusted.toml import read_toml
from gristmill.untrusted.walk import list_files

INBOX: Final = "macroxue"
STEPS: Final = "steps.toml"
"""The file that says which columns the steps files of a drop have."""
_DATABASE, _NAMES = "metadata.db", "valuation_types.json"
_LOOKED_AT, _GUESSED = 100, 1000
"""Rows whose columns are shown, and by which their meaning is guessed."""
_DIGITS: Final = re.compile(r"([0-9]+)")
_READ_BYTES, _ROW_BYTES, _NAMES_BYTES = 1 << 20, 1 << 16, 1 << 20

# Names that a column is known by, and the kinds and shapes that it may have.
_ONE: Final[tuple[tuple[int, ...], ...]] = ((),)
_COLUMNS: Final[Mapping[str, tuple[tuple[str, ...], str, tuple[tuple[int, ...], ...]]]] = {
    "run_id": (("run_id",), "iu", _ONE),
    "step_index": (("step_index", "step_idx"), "iu", _ONE),
    "board": (("board", "exps"), "iu", ((), (16,))),
    "board_eval": (("board_eval",), "iu", _ONE),
    "tile_65536_mask": (("tile_65536_mask",), "iu", _ONE),
    "move_dir": (("move_dir", "move"), "iuSU", _ONE),
    "valuation_type": (("valuation_type",), "iu", _ONE),
    "ev_legal": (("ev_legal",), "iu", _ONE),
    "max_rank": (("max_rank",), "iu", _ONE),
    "seed": (("seed",), "iu", _ONE),
    "branch_evs": (("branch_evs",), "f", ((4,),)),
}


_TURNS: Final = (
    *(("right", "down"), ("down", "left"), ("left", "up"), ("up", "right")),
    *(("left", "down"), ("up", "left"), ("right", "up"), ("down", "right")),
)
"""The cells of a file whose boards the symmetries 0 to 7 turn into those of a pack."""
READINGS: Final[Mapping[str, tuple[Sequence[Any], str]]] = {
    "first_cell": (("high", "low"), '"high" or "low"'),
    "directions": ([*permutations(MOVES)], "each of up, down, left and right once"),
    "cells": (_TURNS, 'the directions of cells and of lines, as ["right", "down"]'),
}
"""The values that each key of a reading may have, and their words."""


@dataclass(frozen=True)
class Reading:
    """What boards and directions of a program mean; the defaults are those of a pack.

    first_cell: the nibble of a 64-bit board that has the first cell, the highest or the lowest.
    directions: what the numbers 0 to 3 of moves mean, which is the order of values and their bits.
    cells: the direction in which cells follow one another, and that of the lines of four.
    """

    first_cell: str = "high"
    directions: tuple[str, ...] = MOVES
    cells: tuple[str, str] = _TURNS[0]

    @staticmethod
    def of(path: Path, table: Mapping[str, Any]) -> Reading:
        """What a steps.toml says. Raises BadInput for a value that is not one of the allowed."""
        stated: dict[str, Any] = {}
        for key, (allowed, words) in READINGS.items():
            value = table.get(key, getattr(Reading, key))
            stated[key] = tuple(value) if isinstance(value, list) else value
            if stated[key] not in allowed:
                raise BadInput(path, f"{key} = {shown(value)}: needs {words}")
        return Reading(**stated)

    @property
    def moves(self) -> npt.NDArray[np.uint8]:
        """The move that each number means: uint8 [4]."""
        return np.array([MOVES.index(name) for name in self.directions], np.uint8)

    @property
    def turn(self) -> int:
        """The symmetry that turns the boards of the file into those of a pack."""
        return _TURNS.index(self.cells)


@dataclass(frozen=True)
class StepFile:
    """One steps file: its name, the byte at which its rows begin, and their number."""

    name: str
    offset: int
    rows: int


@dataclass(frozen=True)
class StepDrop:
    """A drop of steps; its runs are not known yet. kinds: names by id, None without a file."""

    folder: Path
    links: LinkRule
    fields: Mapping[str, str]
    reading: Reading
    dtype: np.dtype[Any]
    files: tuple[StepFile, ...]
    kinds: tuple[str, ...] | None
    small: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the drop."""
        return _shown(self.folder.resolve().name)

    @property
    def has_names(self) -> bool:
        """Whether the moves are names of directions, which mean the same in any order."""
        column = self.fields.get("move_dir")
        return column is not None and self.dtype[column].kind not in "iu"

    @property
    def taken(self) -> list[str]:
        """Names of the files that are read."""
        return [*self.small, *sorted(file.name for file in self.files)]

    @property
    def meta_name(self) -> str:
        """The file that says most of a run."""
        return _DATABASE if _DATABASE in self.small else STEPS

    def opened(self, name: str) -> BinaryIO:
        """Open a file of the drop."""
        return open_file(self.folder / name, root=self.folder, links=self.links)

    def account(self) -> Account:
        """What becomes of each file."""
        left = dict.fromkeys(self.others, f"no file of the steps that {STEPS} describes")
        return Account({"": self.taken}, left | left_out_of(self.folder, self.taken))


@dataclass(frozen=True, eq=False)
class StepRun:
    """A run in the steps files of a drop; listed: what metadata.db says of it, else None.

    pieces: int64 [K, 3], where its rows are: number of the file, first row, rows.
    """

    drop: str
    steps: StepDrop
    raw_run: int
    pieces: npt.NDArray[np.int64]
    listed: Run | None
    digests: tuple[FileDigest, FileDigest]

    source: ClassVar = "steps of other programs"

    @property
    def meta_name(self) -> str:
        """The file that says most of the run."""
        return self.steps.meta_name

    @property
    def steps_name(self) -> str:
        """The file of the first row."""
        return self.steps.files[int(self.pieces[0, 0]) if len(self.pieces) else 0].name

    @property
    def steps_size(self) -> int:
        """Bytes of the rows."""
        return int(self.pieces[:, 2].sum()) * self.steps.dtype.itemsize

    @property
    def raw_place(self) -> dict[str, int]:
        """What the trace says of the run besides its files."""
        return {"raw_run": self.raw_run}

    @property
    def key(self) -> list[Any]:
        """What tells the run from the other runs of its drop, and from one that was changed."""
        return [self.drop, self.raw_run, self.steps_size]

    def name_of(self, file: str) -> str:
        """The name in the drop of a file that an error names."""
        return Path(file).name

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """Of each row, in the order of files: number of the file, and row in it: int64 [N, 2]."""
        number, start, count = self.pieces.T
        before = np.cumsum(count) - count
        rows = np.repeat(start - before, count) + np.arange(count.sum())
        return np.stack([np.repeat(number, count), rows], axis=1)

    def rows(self) -> Rows:
        """The rows, in the order of files. Raises BadInput for a file that changes meanwhile."""
        size, octets = self.steps.dtype.itemsize, []
        for number in np.unique(self.pieces[:, 0]).tolist():
            file = self.steps.files[number]
            with self.steps.opened(file.name) as opened:
                for _, start, count in self.pieces[self.pieces[:, 0] == number].tolist():
                    opened.seek(file.offset + start * size)
                    octets.append(opened.read(count * size))
                    if len(octets[-1]) != count * size:
                        raise _changed(self.steps, file)
        return np.frombuffer(b"".join(octets), self.steps.dtype)


def find_steps(folder: Path, links: LinkRule = REFUSE_LINKS) -> StepDrop | None:
    """The files and columns of a drop of steps, by names and headers; None for another drop."""
    if not folder.is_dir() or not has_file(folder / STEPS, root=folder, links=links):
        return None
    sizes = _sizes(folder, links)
    table = read_toml(folder / STEPS, root=folder, links=links)
    fields, reading = _fields(folder / STEPS, table), Reading.of(folder / STEPS, table)
    names = _step_names(folder, sizes)
    if not names:
        raise BadInput(folder, f"holds {STEPS}, and neither steps.npy nor steps-*.npy beside it")
    if "step_index" not in fields:
        # Rows count on from file to file, whose numbers may have no zeros: steps-2, steps-10.
        names.sort(key=lambda name: [int(x) if x.isdecimal() else x for x in _DIGITS.split(name)])
    small = tuple(name for name in (STEPS, _DATABASE, _NAMES) if name in sizes)
    if sizes.get(_NAMES, 0) > _NAMES_BYTES:
        raise BadInput(folder / _NAMES, f"has more than {_NAMES_BYTES} bytes")
    kinds = read_valuation_types(folder / _NAMES) if _NAMES in small else None
    files, dtypes = [], []
    for name in names:
        with open_file(folder / name, root=folder, links=links) as file:
            dtype, offset, rows = rows_header(folder / name, file)
        files.append(StepFile(name, offset, rows))
        dtypes.append(dtype)
        if dtype != dtypes[0]:
            raise BadInput(folder / name, f"has other columns than {names[0]}: drop it by itself")
    if not any(file.rows for file in files):
        raise BadInput(folder / names[0], "holds no row of steps: write it again")
    _check(folder, names[0], dtypes[0], fields)
    if "first_cell" in table and dtypes[0][fields["board"]].shape:
        rule = "first_cell: the board has a number for each cell; `cells` says their order"
        raise BadInput(folder / STEPS, rule)
    others = tuple(sorted(sizes.keys() - {*small, *names}))
    return StepDrop(folder, links, fields, reading, dtypes[0], tuple(files), kinds, small, others)


def column_states(
    drop: Path, links: LinkRule, _account: Account, _counts: Mapping[str, float]
) -> list[ColumnState]:
    """What becomes of the columns of steps files, by the first rows; none of logs."""
    from gristmill.corpora.account import Head, states_of

    steps = find_steps(drop, links)
    if steps is None:
        return []
    file = next(each for each in steps.files if each.rows)
    rows = _first_rows(drop / file.name, links)[:_LOOKED_AT]
    names = steps.dtype.names or ()
    made = [
        {n: v.decode("latin-1") if isinstance(v := row[n].tolist(), bytes) else v for n in names}
        for row in rows
    ]
    return states_of([Head("", made)], {column: key for key, column in steps.fields.items()})


def proposal(folder: Path, links: LinkRule = REFUSE_LINKS) -> str:
    """The text of a steps.toml for the steps files in a folder; empty where there are none."""
    names = _step_names(folder, _sizes(folder, links))
    if not names:
        return ""
    path = folder / names[0]
    rows = _first_rows(path, links)
    columns = rows.dtype.names or ()
    found = {
        field: next((name for name in known if name in columns), None)
        for field, (known, _, _) in _COLUMNS.items()
    }
    for field, column in _by_values(rows, found):
        found[field] = found[field] or column
    for field in ("run_id", "board"):
        if not found[field]:
            known, there = " or ".join(_COLUMNS[field][0]), ", ".join(columns) or "no names"
            rule = f"has no column {known}, but {there}: say which is the {field} in a file {STEPS}"
            raise BadInput(path, f"{rule} beside it")
    if wrong := _other_values(rows, str(found["board"]), found["move_dir"]):
        raise BadInput(path, wrong)
    lines = [f'{field} = "{column}"' for field, column in found.items() if column]
    return "\n".join(["schema = 1", 'kind = "steps"', "", "[fields]", *lines]) + "\n"


def _first_rows(path: Path, links: LinkRule) -> Rows:
    """The first rows of a steps file."""
    with open_file(path, root=path.parent, links=links) as file:
        dtype, offset, count = rows_header(path, file)
        file.seek(offset)
        return np.frombuffer(file.read(min(count, _GUESSED) * dtype.itemsize), dtype)


def _by_values(rows: Rows, named: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Yield the column of each field that no name says, where the values of one alone can be it."""
    free = [name for name in rows.dtype.names or () if name not in named.values()]
    kinds = {name: rows.dtype[name].subdtype or (rows.dtype[name], ()) for name in free}
    whole = {name: shape for name, (base, shape) in kinds.items() if base.kind in "iu"}
    numbers = {n: rows[n].astype(np.int64) for n, shape in whole.items() if not shape}
    step = named["step_index"] or next((n for n, own in numbers.items() if _counts(own)), None)
    can_be = {
        "board": [n for n, shape in whole.items() if shape in ((16,), (4, 4))],
        "move_dir": [n for n, own in numbers.items() if {*own.tolist()} == {*range(4)}],
    }
    if step is not None:
        starts = np.flatnonzero(np.diff(rows[step].astype(np.int64)) != 1)
        changes = {n: np.flatnonzero(np.diff(own)) for n, own in numbers.items() if n != step}
        can_be["run_id"] = [n for n, at in changes.items() if np.array_equal(at, starts)]
        yield "step_index", step
    yield from ((field, one[0]) for field, one in can_be.items() if len(one) == 1)


def _counts(numbers: npt.NDArray[np.int64]) -> bool:
    """Whether numbers count from 0 on, again and again."""
    is_next = (numbers[1:] == numbers[:-1] + 1) | (numbers[1:] == 0)
    return bool(numbers.max(initial=0) > 0 and numbers[0] == 0 and is_next.all())


def _other_values(rows: Rows, board: str, move: str | None) -> str:
    """What values say that no reading fits, and what to save instead; empty for none."""
    if rows.dtype[board].shape == (4, 4):
        return f'{board}: has 4 x 4 cells: save `rows["{board}"].reshape(-1, 16)`'
    cells = rows[board]
    if cells.ndim == 2 and cells.max(initial=0) > 17 and not (cells & (cells - 1)).any():
        ranks = f'np.log2(np.maximum(rows["{board}"], 1))'
        return f"{board}: holds tiles, 2, 4, 8 and on, not ranks: save `{ranks}` as uint8"
    if move is None:
        return ""
    kind = rows.dtype[move].kind
    known = np.arange(4) if kind in "iu" else np.array(MOVES, f"{kind}5")
    other, listed = np.unique(rows[move][~np.isin(rows[move], known)])[:4], "other values"
    with suppress(SystemError, ValueError):  # of characters that are none
        listed = ", ".join(v.decode() if isinstance(v, bytes) else str(v) for v in other.tolist())
    rule = f"{move}: has {listed}: moves are 0 to 3, or up, down, left and right: save these"
    return rule if len(other) else ""


def runs_of(drop: StepDrop) -> list[StepRun]:
    """The runs of a drop of steps, by run id. All its files are read and hashed once."""
    digests = {}
    ids, pieces = [np.empty(0, drop.dtype[drop.fields["run_id"]])], [np.empty((0, 3), np.int64)]
    for number, file in enumerate(drop.files):
        digest, row = RawDigest(), 0
        for own in _chunks(drop, file, digest):
            starts = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
            counts = np.diff(starts, append=len(own))
            ids.append(own[starts])
            pieces.append(np.stack([np.full(len(starts), number), row + starts, counts], axis=1))
            row += len(own)
        digests[file.name] = FileDigest(digest.size, digest.hex)
    every, places = np.concatenate(ids), np.concatenate(pieces)
    order = np.argsort(every, kind="stable")
    known, starts = np.unique(every[order], return_index=True)
    by_run = dict(zip(known.tolist(), np.split(places[order], starts[1:]), strict=False))
    listed = {}
    if _DATABASE in drop.small:
        listed = {run.id: run for run in read_runs(drop.folder / _DATABASE)}
    with drop.opened(drop.meta_name) as opened:
        meta = RawDigest()
        while octets := opened.read(_READ_BYTES):
            meta.update(octets)
    found = []
    for run in sorted(by_run.keys() | listed.keys()):
        own = by_run.get(run, places[:0])
        first = drop.files[int(own[0, 0]) if len(own) else 0].name
        both = (FileDigest(meta.size, meta.hex), digests[first])
        found.append(StepRun(drop.name, drop, run, own, listed.get(run), both))
    return found


def _chunks(drop: StepDrop, file: StepFile, digest: RawDigest) -> Iterator[npt.NDArray[Any]]:
    """Yield the run ids of a file, some rows at a time, and hash it."""
    size, rows = drop.dtype.itemsize, 0
    with drop.opened(file.name) as opened:
        digest.update(opened.read(file.offset))
        while octets := opened.read(max(_READ_BYTES // size, 1) * size):
            digest.update(octets)
            rows += len(octets) // size
            if len(octets) % size or rows > file.rows:
                raise _changed(drop, file)
            yield np.frombuffer(octets, drop.dtype)[drop.fields["run_id"]]
    if rows != file.rows:
        raise _changed(drop, file)


def _changed(drop: StepDrop, file: StepFile) -> BadInput:
    return BadInput(drop.folder / file.name, "changed while it was read: build again once it stays")


def _sizes(folder: Path, links: LinkRule) -> dict[str, int]:
    """Bytes of each file by name, without marks, settings and hidden files."""
    sizes = {}
    for entry in list_files(folder, root=folder, links=links):
        if entry.refusal is not None:
            raise BadInput(folder / entry.name, entry.refusal)
        name = _shown(entry.name)
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        if not is_hidden and not is_mark(name) and name != FILE:
            sizes[name] = entry.stat.st_size
    return sizes


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _step_names(folder: Path, names: Collection[str]) -> list[str]:
    """Names of the steps files, in their order. Raises BadInput where both forms are there."""
    shards = sorted(
        name
        for name in names
        if name.startswith("steps-") and name.endswith(".npy") and "/" not in name
    )
    if "steps.npy" in names and shards:
        rule = f"holds both steps.npy and {shards[0]}: remove the one that is stale"
        raise BadInput(folder, rule)
    return ["steps.npy"] if "steps.npy" in names else shards


def _fields(path: Path, table: Mapping[str, Any]) -> dict[str, str]:
    """The column of each field. Raises BadInput for another key, kind or field."""
    for key, value in {"schema": 1, "kind": "steps"}.items():
        if table.get(key) != value:
            raise BadInput(path, f"needs {key} = {shown(value)}, not {shown(table.get(key))}")
    fields = table.get("fields")
    keys = ["schema", "kind", "fields", *READINGS]
    if other := sorted(table.keys() - {*keys}):
        raise BadInput(path, f"{other[0]}: unknown key; the keys are {', '.join(keys)}")
    if not isinstance(fields, dict):
        raise BadInput(path, "needs a table [fields], the column of each field of a pack")
    for field, column in fields.items():
        if field not in _COLUMNS:
            known = ", ".join(_COLUMNS)
            question = did_you_mean(field, _COLUMNS)
            raise BadInput(path, f"[fields] {field}: unknown field{question}; they are {known}")
        if not isinstance(column, str):
            raise BadInput(path, f"[fields] {field} = {shown(column)}: name a column in quotes")
    if missing := {"run_id", "board"} - fields.keys():
        raise BadInput(path, f"[fields] needs {min(missing)}")
    if "ev_legal" in fields and "branch_evs" not in fields:
        raise BadInput(path, "[fields] ev_legal: it says nothing without branch_evs; leave it out")
    return dict(fields)


def _check(folder: Path, name: str, dtype: np.dtype[Any], fields: Mapping[str, str]) -> None:
    """Raise BadInput where the columns of the steps files are none that the fields can have."""
    columns = dtype.names or ()
    if dtype.itemsize > _ROW_BYTES:
        raise BadInput(folder / name, f"rows of {dtype.itemsize:,} bytes, more than {_ROW_BYTES:,}")
    for field, column in fields.items():
        where = f'[fields] {field} = "{column}"'
        if column not in columns:
            rule = f"{where}: {name} has no such column; it has {', '.join(columns)}"
            raise BadInput(folder / STEPS, rule)
        base, shape = dtype[column].subdtype or (dtype[column], ())
        _, kinds, shapes = _COLUMNS[field]
        is_packed = field == "board" and shape == ()
        if base.kind not in kinds or shape not in shapes or (is_packed and base.itemsize != 8):
            rule = f"{where}: {name} holds {dtype[column]} there"
            needed = _NEEDED.get(field, "one integer a row")
            raise BadInput(folder / STEPS, f"{rule}; the field needs {needed}")


_NEEDED: Final = {
    "board": "16 ranks a row, or 16 nibbles in an integer of 64 bits",
    "move_dir": "one integer or name of a direction a row",
    "branch_evs": "4 floating-point numbers a row",
}


NPY: Final = (
    "`macroxue` reads them from steps*.npy, whose rows have named columns, and ranks for cells "
    "(1 is the tile 2), as "
    '`np.save("steps.npy", np.array(rows, [("game", "u4"), ("exps", "u1", 16), ("move", "u1")]))` '
    "writes them, beside a steps.toml that says which column is run_id and which is board, as "
    'schema = 1, kind = "steps", [fields] run_id = "game", board = "exps"'
)
"""What makes a drop of boards."""
_RANKS: Final = {*map(str, range(18)), *(str(1 << rank) for rank in range(18))}
"""Cells of a board, as ranks or as tiles."""


def board_hints(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what rows are that hold boards, or steps of a game; rows: that were looked at."""
    names = {name for row in rows for name in row}
    if {"board", "move", "branch_evs"} <= names:
        yield (
            "a log of a game of 2048: `macroxue` reads a folder in which each NAME.jsonl.gz has "
            "its NAME.meta.json beside it: look at the folder"
        )
    elif rows and all(map(_has_board, rows)):
        yield f"boards of 2048, by the 16 cells of each row: {NPY}"
    elif {"board", "move"} <= names or {"state", "action"} <= names:
        yield f"steps of a game; if they are boards of 2048, {NPY}"


def _has_board(row: Mapping[str, Any]) -> bool:
    """Whether a row has the cells of a board, with at most a few numbers beside them."""
    words = re.findall(r"[^]\s,;:(){}'\"[]+", " ".join(map(str, row.values())))
    runs = [len([*own]) for is_cell, own in groupby(words, _RANKS.__contains__) if is_cell]
    return any(16 <= length < 24 for length in runs)
