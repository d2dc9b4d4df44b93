"""A folder of annotations that the trainer's annotator wrote: its files, and its rows by game.

The rows belong to the games of the copied metadata.db, whatever their run ids are in a pool or a
view. Source: docs/formats/macroxue.md#annotations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.inbox.listing import Account
from gristmill.macroxue.format.files import Run, read_runs
from gristmill.macroxue.format.rows import MANIFEST, ROWS, STEMS, UNKNOWN, Rows, row_dtype
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file, read_file
from gristmill.untrusted.json_text import load_json
from gristmill.untrusted.npy_header import read_header
from gristmill.untrusted.walk import list_files

_NAME: Final = re.compile(r"(annotations(?:-student|-value|-value-bins)?)-([0-9]{1,9})\.npy")
_COPIES: Final = ("metadata.db", MANIFEST, "valuation_types.json")
_MOST_MANIFEST: Final = 64 << 20
Identity = tuple[int, int, int, int]


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a drop of annotations."""
    Annotations(drop, links)
    taken, left_out = [], {}
    for entry in list_files(drop, root=drop, links=links):
        if entry.refusal is not None:
            raise BadInput(drop / entry.name, entry.refusal)
        if entry.name in _COPIES or _NAME.fullmatch(entry.name):
            taken.append(entry.name)
        else:
            left_out[entry.name] = "no file of annotations"
    return Account({"": sorted(taken)}, left_out)


def annotation_files(drop: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """The files of a drop that are read, sorted. Raises as `account`."""
    return [drop / name for name in account(drop, links).taken[""]]


class Annotations:
    """The rows of a folder of annotations; memory grows with runs, not with rows.

    Raises BadInput where a file is missing or is not what its name says, and where the rows of a
    run do not stand together.
    """

    def __init__(self, folder: Path, links: LinkRule = REFUSE_LINKS) -> None:
        self.folder, self._links = folder, links
        self.maps: dict[str, list[npt.NDArray[Any]]] = {}
        for stem, files in self._named().items():
            self.maps[stem] = [self._opened(stem, files[number]) for number in sorted(files)]
        counts = [len(rows) for rows in self.maps[ROWS]]
        for stem, maps in self.maps.items():
            if [len(rows) for rows in maps] != counts:
                rule = f"the files {stem}-* have not as many rows as {ROWS}-*: copy all of them"
                raise BadInput(folder, f"{rule} again")
        self._firsts, self.rows = np.cumsum([0, *counts]), sum(counts)
        self.manifest = self._manifest()
        self._bounds = self._bounds_of_runs()
        self.games: dict[Identity, int] = {
            (run.seed, run.steps, run.max_score, run.highest_tile): run.id
            for run in read_runs(folder / "metadata.db")
            if run.id in self._bounds
        }

    def _named(self) -> Mapping[str, dict[int, str]]:
        found: dict[str, dict[int, str]] = {stem: {} for stem in STEMS}
        for entry in list_files(self.folder, root=self.folder, links=self._links):
            if match := _NAME.fullmatch(entry.name):
                found[match[1]][int(match[2])] = entry.name
        if not found[ROWS]:
            raise BadInput(self.folder, "holds no annotations-000000.npy: no folder of annotations")
        return {stem: files for stem, files in found.items() if files}

    def _opened(self, stem: str, name: str) -> npt.NDArray[Any]:
        path = self.folder / name
        with open_file(path, root=self.folder, links=self._links, buffering=0) as file:
            try:
                shape, fortran, dtype = read_header(file)
            except ValueError as error:
                raise BadInput(path, f"no npy header that can be read: {error}") from error
            row = None if fortran else row_dtype(stem, shape, dtype)
            if row is None:
                raise BadInput(path, f"{dtype} {shape} is not what {stem}-*.npy holds")
            offset, size = file.tell(), file.seek(0, 2)
            if size != offset + shape[0] * row.itemsize:
                rule = f"the header says {shape[0]} rows of {row.itemsize} bytes, but the file has"
                raise BadInput(path, f"{rule} {size} bytes: copy it again")
            if not shape[0]:
                return np.empty(0, row)
            return np.asarray(np.memmap(file, row, "r", offset, (shape[0],)))

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            octets = read_file(path, root=self.folder, most=_MOST_MANIFEST, links=self._links)
        except FileNotFoundError as error:
            raise BadInput(path, "is missing: copy it with the annotations") from error
        found = load_json(octets, path)
        if not isinstance(found, dict):
            raise BadInput(path, "is not an object")
        return found

    def _bounds_of_runs(self) -> dict[int, tuple[int, int]]:
        """The first row of each run, and the row behind its last."""
        starts = [np.empty(0, np.int64)]
        ids: list[int] = []
        last = -1
        for first, rows in zip(self._firsts.tolist(), self.maps[ROWS], strict=False):
            column = rows["run_id"]
            new = np.flatnonzero(np.diff(column.astype(np.int64), prepend=last))
            starts.append(first + new)
            ids += column[new].tolist()
            last = int(column[-1]) if len(column) else last
        if len(set(ids)) != len(ids):
            raise BadInput(self.folder, "the rows of a run do not stand together: sort them by run")
        places = [*np.concatenate(starts).tolist(), self.rows]
        return {run: (places[at], places[at + 1]) for at, run in enumerate(ids)}

    def take(self, stem: str, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Rows of a stem by their numbers, as a new array."""
        maps = self.maps[stem]
        cuts = np.searchsorted(places, self._firsts)
        parts = [
            rows[places[cuts[at] : cuts[at + 1]] - self._firsts[at]] for at, rows in enumerate(maps)
        ]
        return np.concatenate(parts) if parts else np.empty(0, maps[0].dtype)

    def places(self, run: Run, steps: Rows) -> npt.NDArray[np.int64]:
        """The number of the annotation of each step row of a game, -1 for none: int64 [N].

        Raises BadInput for annotations of another game: of a step that it does not have, or with
        another `teacher_move`.
        """
        none = np.full(len(steps), -1, np.int64)
        own = self.games.get((run.seed, run.steps, run.max_score, run.highest_tile))
        if own is None:
            return none
        start, stop = self._bounds[own]
        rows = self.take(ROWS, np.arange(start, stop))
        column, wanted = rows["step_index"], steps["step_index"]
        if (np.diff(column.astype(np.int64)) < 0).any():
            raise BadInput(self.folder, f"run {own}: step_index falls: sort the rows by step")
        found = np.searchsorted(column, wanted)
        hits = found < len(column)
        hits[hits] = column[found[hits]] == wanted[hits]
        if not np.isin(column, wanted).all():
            at = int(np.flatnonzero(~np.isin(column, wanted))[0])
            raise self._other_game(own, start + at, f"step {column[at]} is not in the game")
        teacher = rows["teacher_move"][found[hits]]
        differs = (teacher != UNKNOWN) & (teacher != steps["move_dir"][hits])
        if differs.any():
            at = int(np.flatnonzero(hits)[differs][0])
            moves = f"{rows['teacher_move'][found[at]]}, the game's move is {steps['move_dir'][at]}"
            raise self._other_game(
                own, start + int(found[at]), f"step {wanted[at]}: teacher_move is {moves}"
            )
        return np.where(hits, start + found, none)

    def _other_game(self, run: int, row: int, found: str) -> BadInput:
        cure = "annotate this dataset again, or take its metadata.db"
        return BadInput(self.folder, f"run {run}, row {row}: {found}: {cure}")
