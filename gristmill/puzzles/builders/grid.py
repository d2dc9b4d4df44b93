"""Rows of grids become a dataset: groups, splits and sets, no leaks, symmetries where asked for.

The grids are read once, into one file of tokens beside the parts; tasks name rows of it.
Source: docs/formats/puzzles.md#grids
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset, scratch_folder
from gristmill.puzzles.config import GridConfig
from gristmill.puzzles.domains.grid import KIND, PAD, SYMMETRIES, Cells, Symbols, transform
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.format import SET, SPLITS, Split
from gristmill.puzzles.format.dataset import Batch, Sets, SourceFile
from gristmill.puzzles.raw.file_forms import labelled_folders, source_folders
from gristmill.puzzles.raw.grid_rows import GridFile, GridRow, grid_files, read_grids
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

_TASK_BYTES: Final = 16 << 20
_MOST_NAMED: Final = 10
_ALL: Final = 1 << 64
_TURNED: Final = re.compile(r"_t[1-7]$")


@dataclass(frozen=True)
class GridSummary(DatasetSummary):
    """What was built."""

    rows_read: int
    leaks_dropped: int


@dataclass(frozen=True, slots=True)
class _Row:
    """An example: its file and line, where its cells begin, its two shapes, and its mark."""

    file: int
    line: int
    start: int
    shapes: tuple[tuple[int, int], tuple[int, int]]
    mark: bytes


_Groups = dict[str, dict[str, list[_Row]]]
"""By name of the group and of the puzzle, in the order in which they come first."""


def build_grid(
    dirs: Sequence[Path] | Path,
    out: Path,
    config: GridConfig,
    *,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> GridSummary:
    """Build the dataset of rows of grids.

    dirs: a folder with `*.jsonl`, or several, whose order changes nothing.
    out: a folder that does not exist yet.
    parts: keeps finished parts for the build after a kill; default None.
    progress: gets the rows read, the parts made and the rows joined.
    links: what happens to links in the folders; default: they are refused.

    Raises BadInput with file and line for what breaks a rule, for a config without an alphabet,
    and for test examples that training has.
    """
    folders = labelled_folders(source_folders(dirs))
    if config.alphabet is None and config.values is None:
        rule = 'its cells are not known: write alphabet = "..." or values = ... below [settings]'
        raise BadInput(folders[0][1] if folders else KIND, rule)
    with scratch_folder(out, parts) as scratch:
        path = scratch / "tokens"
        reader = _Reader(config, links)
        with path.open("wb") as tokens, progress.stage("read", "rows") as stage:
            for label, folder in folders:
                for file in grid_files(folder, links):
                    stage.advance(reader.read(file, f"{label}/{file.path.name}", tokens))
        leaks = reader.drop_leaks()
        sides = reader.sides()
        encoding = reader.symbols.encoding(*sides)
        if encoding.vocab_size - 1 > np.iinfo(config.dtype).max:
            rule = f"{encoding.vocab_size} tokens do not fit into {config.dtype}: set dtype = int32"
            raise BadInput(KIND, rule)
        plan = Plan(
            kind=KIND,
            encoding=encoding,
            config=replace(config, height=sides[0], width=sides[1]),
            tasks=list(reader.tasks(sides)),
            make=_Make(path, sides, config.dihedral, config.identifiers),
            files=reader.files,
            sets=reader.sets(),
            first_identifier=config.first_identifier,
            num_puzzle_identifiers=config.num_puzzle_identifiers,
        )
        made = build_dataset(plan, out, parts, progress)
    return GridSummary(**vars(made), rows_read=reader.rows, leaks_dropped=leaks)


class _Reader:
    def __init__(self, config: GridConfig, links: LinkRule) -> None:
        self.files: list[SourceFile] = []
        self.rows = 0
        self._config, self._links = config, links
        self.symbols = Symbols.of(config.alphabet, config.values, config.pad)
        self._cells = 0
        self._groups: dict[Sets, _Groups] = defaultdict(dict)

    def read(self, file: GridFile, name: str, tokens: BinaryIO) -> int:
        """Read a file; the cells of its grids go to `tokens`. Returns the number of its rows."""
        digest = hashlib.sha256()
        count = 0
        for row in read_grids(file.path, self.symbols, self._links, digest.update):
            count += 1
            self._add(row, file, tokens)
        self.files.append(SourceFile(name, digest.hexdigest()))
        self.rows += count
        return count

    def _add(self, row: GridRow, file: GridFile, tokens: BinaryIO) -> None:
        if self._config.identifiers:
            self._check_names(row, file)
        grids = (row.input, row.output)
        for grid in grids:
            tokens.write(np.ascontiguousarray(grid).data)
        forms = []
        for symmetry in range(SYMMETRIES if self._config.dihedral else 1):
            turned = [transform(grid, symmetry) for grid in grids]
            forms.append(
                b"".join(bytes(f"{grid.shape}", "ascii") + grid.tobytes() for grid in turned)
            )
        mark = hashlib.blake2b(min(forms), digest_size=16).digest()
        shapes = tuple((int(grid.shape[0]), int(grid.shape[1])) for grid in grids)
        made = _Row(len(self.files), row.line, self._cells, (shapes[0], shapes[1]), mark)
        self._cells += sum(grid.size for grid in grids)
        alone = f"<{len(self.files)}:{row.line}>"  # no name begins so
        group, puzzle = row.group or row.puzzle or alone, row.puzzle or alone
        split = file.split or self._split(row.group or row.puzzle or mark.hex())
        of_set = self._groups[split, row.set_name]
        of_set.setdefault(group, {}).setdefault(puzzle, []).append(made)

    def _check_names(self, row: GridRow, file: GridFile) -> None:
        """Refuse names that would not be those of one identifier."""
        rule = ""
        if not row.puzzle:
            rule = "has no key puzzle, which names its identifier: identifiers = true needs one"
        elif "/" in row.group + row.puzzle:
            rule = "has '/' in group or puzzle, which stands between them in a name: rename them"
        elif self._config.dihedral and _TURNED.search(row.puzzle):
            rule = f"puzzle {row.puzzle!r} ends as a turned one does: rename it"
        if rule:
            raise BadInput(file.path, rule, row.line)

    def _split(self, group: str) -> Split:
        """The split of a group of a file without one; equal rows without a group share one."""
        key = source_key(self._config.seed, f"{KIND}:split", group)
        return SPLITS[int(key < self._config.test_share * _ALL)]

    def drop_leaks(self) -> int:
        """Leave out, or refuse, the test examples that training has; returns their number."""
        trained = {row.mark: row for row in self._every("train")}
        leaks = [(row, trained[row.mark]) for row in self._every("test") if row.mark in trained]
        if leaks and self._config.leaks == "refuse":
            shown = ", ".join(
                f"{self._where(a)} is {self._where(b)}" for a, b in leaks[:_MOST_NAMED]
            )
            more = ", ..." if len(leaks) > _MOST_NAMED else ""
            like = ", up to symmetry" if self._config.dihedral else ""
            rule = f"{len(leaks):,} examples of the test split are also in training{like}: {shown}"
            raise BadInput(KIND, f"{rule}{more}; take them out, or build with leaks = drop")
        for (split, _), groups in self._groups.items():
            if split != "test":
                continue
            for puzzles in groups.values():
                for name, rows in list(puzzles.items()):
                    rows[:] = [row for row in rows if row.mark not in trained]
                    if not rows:
                        del puzzles[name]
            for name in [name for name, puzzles in groups.items() if not puzzles]:
                del groups[name]
        return len(leaks)

    def _every(self, split: Split) -> Iterator[_Row]:
        for (of_split, _), groups in self._groups.items():
            if of_split == split:
                for puzzles in groups.values():
                    for rows in puzzles.values():
                        yield from rows

    def _where(self, row: _Row) -> str:
        return f"{self.files[row.file].path}:{row.line}"

    def sides(self) -> tuple[int, int]:
        """Rows and columns that grids are padded to; BadInput names a larger one."""
        every = [row for split in SPLITS for row in self._every(split)]
        wanted = (self._config.height, self._config.width)
        largest = [max((s[at] for row in every for s in row.shapes), default=1) for at in (0, 1)]
        if self._config.dihedral and wanted == (None, None):
            largest = [max(largest)] * 2
        found = tuple(side or most for side, most in zip(wanted, largest, strict=True))
        allowed = (min(found), min(found)) if self._config.dihedral else found
        for row in every:
            for name, shape in zip(("input", "output"), row.shapes, strict=True):
                if shape[0] > allowed[0] or shape[1] > allowed[1]:
                    size, most = f"{shape[0]} x {shape[1]}", f"{allowed[0]} x {allowed[1]}"
                    rule = f"the {name} has {size} cells, and {most} fit: raise height and width"
                    raise BadInput(self.files[row.file].path, rule, row.line)
        return found[0], found[1]

    def sets(self) -> dict[str, Sequence[str]]:
        """The names of the sets of each split that have examples, sorted."""
        filled = [key for key, groups in self._groups.items() if groups]
        return {
            str(split): sorted(name for of, name in filled if of == split) or (SET,)
            for split in SPLITS
        }

    def tasks(self, sides: tuple[int, int]) -> Iterator[tuple[str, _Task]]:
        """Name and groups of each part, by split and set."""
        turned = SYMMETRIES if self._config.dihedral else 1
        most = max(1, _TASK_BYTES // (4 * sides[0] * sides[1] * turned))
        for split in SPLITS:
            for set_name in self.sets()[split]:
                gathered: list[tuple[_Puzzle, ...]] = []
                rows = number = 0
                for group, puzzles in self._groups[split, set_name].items():
                    named = ((_name(group, name), tuple(held)) for name, held in puzzles.items())
                    gathered.append(tuple(named))
                    rows += sum(map(len, puzzles.values()))
                    if rows >= most:
                        yield f"{split}-{set_name}-{number:06d}", _Task(split, set_name, gathered)
                        gathered, rows, number = [], 0, number + 1
                if gathered:
                    yield f"{split}-{set_name}-{number:06d}", _Task(split, set_name, gathered)


_Puzzle = tuple[str, tuple[_Row, ...]]
"""Name and examples."""


def _name(group: str, puzzle: str) -> str:
    return puzzle if group == puzzle else f"{group}/{puzzle}"


@dataclass(frozen=True)
class _Task:
    """Some groups of one set, each with its puzzles."""

    split: Split
    set_name: str
    groups: Sequence[tuple[_Puzzle, ...]]


@dataclass(frozen=True)
class _Make:
    path: Path
    sides: tuple[int, int]
    dihedral: bool
    is_named: bool

    def __call__(self, task: _Task) -> Mapping[Sets, Batch]:
        turned = SYMMETRIES if self.dihedral and task.split == "train" else 1
        cells: Cells = np.memmap(self.path, np.uint16, "r")
        count = turned * sum(len(rows) for group in task.groups for _, rows in group)
        tokens = np.full((2, count, *self.sides), PAD, np.int32)
        origins = np.empty((count, 3), np.int32)
        examples: list[int] = []
        names: list[str] = []
        at = 0
        for group in task.groups:
            for name, rows in group:
                for symmetry in range(turned):
                    examples.append(len(rows))
                    names.append(f"{name}_t{symmetry}" if symmetry else name)
                    for row in rows:
                        self._place(cells, row, symmetry, tokens[:, at])
                        origins[at] = row.file, row.line, symmetry
                        at += 1
        batch = Batch(
            inputs=tokens[0].reshape(count, -1),
            labels=tokens[1].reshape(count, -1),
            origins=origins,
            examples=np.array(examples, np.int32),
            puzzles=np.array([turned * len(group) for group in task.groups], np.int32),
            names=tuple(names) if self.is_named else None,
        )
        return {(task.split, task.set_name): batch}

    def _place(self, cells: Cells, row: _Row, symmetry: int, into: npt.NDArray[np.int32]) -> None:
        """Write both grids of an example, turned, at the upper left of their rows."""
        start = row.start
        for (height, width), side in zip(row.shapes, into, strict=True):
            grid = transform(cells[start : start + height * width].reshape(height, -1), symmetry)
            side[: grid.shape[0], : grid.shape[1]] = grid
            start += height * width
