"""CSV files and banks to a dataset of Sudokus.

The rows of all sources are read, filtered and checked. In memory is a row of numbers for each
puzzle; the boards are in one file beside the parts. Source: docs/formats/puzzles.md#sudoku
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset, scratch_folder
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains.grid import (
    CELLS,
    SUDOKU,
    SUDOKU_ENCODING,
    digits,
    first_without_digit,
    text_of,
)
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.domains.sudoku_checks import (
    GAVE_UP,
    MOST_GUESSES,
    check,
    described,
    solutions_of,
)
from gristmill.puzzles.domains.sudoku_symmetry import canonical_forms, groups, invariants, key_of
from gristmill.puzzles.format import AMBIGUOUS, SET, SPLITS
from gristmill.puzzles.format.dataset import Batch, Sets, SourceFile
from gristmill.puzzles.raw.file_forms import is_table, labelled_folders, source_folders
from gristmill.puzzles.raw.tables import (
    RatedRows,
    SudokuFile,
    columns_of,
    read_bank,
    read_rows,
    sudoku_files,
)
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.run.workers import threaded_map
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

Boards = npt.NDArray[np.uint8]
FIRST_AMBIGUOUS: Final = "first ambiguous in "
"""Begins the name of a count that is a line: of a file that of its first puzzle left out."""
_BROKEN: Final = 5


@dataclass(frozen=True)
class Table:
    """The puzzles of all sources, one row each; boards is a file, uint8 [rows, 2, 81]."""

    boards: Path
    splits: npt.NDArray[np.uint8]
    files: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int32]
    invariants: npt.NDArray[np.uint64]
    sources: Sequence[SourceFile]
    paths: Sequence[Path]

    def where(self, row: int) -> str:
        """File and line of a row, as `hard/train.csv:7`."""
        return f"{self.sources[self.files[row]].path}:{self.lines[row]}"

    def read(self, rows: npt.NDArray[np.int64]) -> tuple[Boards, Boards]:
        """Questions and answers of rows, uint8 [rows, 81] each."""
        return read_boards(self.boards, rows)


def read_boards(path: Path, rows: npt.NDArray[np.int64]) -> tuple[Boards, Boards]:
    """Questions and answers of rows of the file of a table, uint8 [rows, 81] each."""
    if not len(rows):
        return np.empty((0, CELLS), np.uint8), np.empty((0, CELLS), np.uint8)
    # Mapped for this call alone, so that the file's pages do not stay in memory.
    held = np.memmap(path, np.uint8, "r").reshape(-1, 2, CELLS)[rows]
    return np.ascontiguousarray(held[:, 0]), np.ascontiguousarray(held[:, 1])


def read_sources(
    folders: Sequence[Path],
    boards: Path,
    config: SudokuConfig,
    links: LinkRule,
    progress: Progress,
    counts: Counter[str],
) -> Table:
    """Read the sources of a build. Raises BadInput for a board or an answer that breaks a rule."""
    found = [
        (f"{label}/{file.path.name}", file)
        for label, folder in labelled_folders(folders)
        for file in sudoku_files(folder, links)
    ]
    files = sorted(found, key=lambda named: named[0])
    columns: list[tuple[npt.NDArray[Any], ...]] = []
    sources: list[SourceFile] = []
    with boards.open("xb") as out, progress.stage("read", "rows") as stage:
        for number, (name, file) in enumerate(files):
            digest = hashlib.sha256()
            for rows in _Reader(name, file, config, counts).rows(links, digest.update, stage):
                out.write(np.stack([rows.questions, rows.answers], axis=1).data)
                marks = invariants(rows.questions)
                numbers = np.full(len(marks), number, np.int32)
                places = (numbers, rows.lines.astype(np.int32), marks)
                columns.append((_splits(file.split, marks, config), *places))
            sources.append(SourceFile(name, digest.hexdigest()))
    empty = (np.empty(0, kind) for kind in (np.uint8, np.int32, np.int32, np.uint64))
    splits, numbers, lines, marks = (
        np.concatenate(column) for column in zip(*columns, tuple(empty), strict=True)
    )
    paths = [file.path for _, file in files]
    return Table(boards, splits, numbers, lines, marks, sources, paths)


def _splits(
    named: str | None, marks: npt.NDArray[np.uint64], config: SudokuConfig
) -> npt.NDArray[np.uint8]:
    """The split of each row: the file's, or by the invariant, so that twins stay together."""
    if named is not None:
        return np.full(len(marks), SPLITS.index(named), np.uint8)
    key = np.uint64(source_key(config.seed, f"{SUDOKU}:split", ""))
    share = (_mixed(marks ^ key) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return (share < config.test_share).astype(np.uint8)


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True)
class _Rows:
    """Rows of one file: digits, uint8 [rows, 81] each, and lines, int64 [rows]."""

    questions: Boards
    answers: Boards
    lines: npt.NDArray[np.int64]

    def where(self, kept: npt.NDArray[np.bool_]) -> _Rows:
        return _Rows(self.questions[kept], self.answers[kept], self.lines[kept])


@dataclass(frozen=True)
class _Reader:
    """Reads one file. name: as the sources have it."""

    name: str
    file: SudokuFile
    config: SudokuConfig
    counts: Counter[str]

    def rows(self, links: LinkRule, see: Any, stage: Stage) -> Iterator[_Rows]:
        """The rows that the config takes, checked."""
        path = self.file.path
        if is_table(path.name):
            columns = columns_of(self.config.question_column, self.config.answer_column)
            found = read_rows(path, length=CELLS, columns=columns, links=links, see=see)
        else:
            found = read_bank(path, links=links, see=see)
        for rows in found:
            self.counts["sources_read"] += len(rows)
            stage.advance(len(rows))
            kept = self._filtered(rows)
            solved = self._solved(kept)
            if len(solved.lines):
                yield self._checked(solved)

    def _filtered(self, rows: RatedRows) -> _Rows:
        read = (rows.questions, rows.answers)
        questions, answers = (digits(text, self.config.blank) for text in read)
        found = _Rows(questions, answers, rows.lines)
        if self.config.min_difficulty is None:
            self._check_digits(found, read)
            return found
        ratings: npt.NDArray[Any] = (
            rows.whole_ratings() if is_table(rows.path.name) else rows.rating_numbers()
        )
        kept = ratings >= self.config.min_difficulty
        self.counts["below_difficulty"] += int(np.count_nonzero(~kept))
        found = found.where(kept)
        self._check_digits(found, (rows.questions[kept], rows.answers[kept]))
        return found

    def _solved(self, rows: _Rows) -> _Rows:
        """The rows with the solutions of those that have no answer; `unique` says of which."""
        lacking = np.flatnonzero(rows.answers.max(axis=1) == 0)
        if is_table(self.file.path.name) or not len(lacking):
            return rows
        solutions, counts, _ = solutions_of(rows.questions[lacking])
        for place, rule in (
            (counts == 0, "has no solution"),
            (counts == GAVE_UP, f"takes more than {MOST_GUESSES:,} guesses to solve"),
        ):
            if not place.any():
                continue
            line = int(rows.lines[lacking[np.argmax(place)]])
            if self.config.unique != "drop":
                cure = 'take the puzzle out, or leave such puzzles out by `unique = "drop"`'
                raise BadInput(self.file.path, f"{rule}: {cure}", line)
            self.counts["ambiguous_dropped"] += int(np.count_nonzero(place))
            first = f"{FIRST_AMBIGUOUS}{self.name}"
            self.counts[first] = min(line, self.counts[first] or line)
        rows.answers[lacking] = solutions
        return rows.where(~np.isin(np.arange(len(rows.lines)), lacking[counts <= 0]))

    def _check_digits(self, rows: _Rows, texts: tuple[Boards, Boards]) -> None:
        """Raise BadInput for a cell that is no digit. texts: questions and answers as bytes."""
        for name, boards, text in zip(
            ("question", "answer"), (rows.questions, rows.answers), texts, strict=True
        ):
            if (place := first_without_digit(boards)) is not None:
                sign = bytes([text[place]]).decode("latin-1")
                rule = (
                    f"the {name} has no digit at character {place[1] + 1}, counted from 1, but"
                    f" {sign!r}: correct the row, or name the sign of blank cells by `blank` below"
                    " [settings]"
                )
                raise BadInput(self.file.path, rule, int(rows.lines[place[0]]))

    def _checked(self, rows: _Rows) -> _Rows:
        given, labels = rows.questions + np.uint8(1), rows.answers + np.uint8(1)
        findings = np.empty(len(given), np.uint8)
        check(given, labels, findings, np.empty(len(given), np.int32))
        if findings.any():
            row = int(np.argmax(findings > 0))
            broken = [*described(given[row], labels[row])]
            more = ", ..." if len(broken) > _BROKEN else ""
            rule = f"the answer is wrong ({', '.join(broken[:_BROKEN])}{more}): correct the row"
            raise BadInput(self.file.path, rule, int(rows.lines[row]))
        return rows


RowNumbers = npt.NDArray[np.int64]

FIRST_REPEAT: Final = "first repeat in "
"""Begins the name of a count that is a line: of a file that of its first row left out."""
_TOGETHER: Final = 8192
_SHOWN: Final = 10


def chosen_rows(table: Table, config: SudokuConfig, counts: Counter[str]) -> dict[str, RowNumbers]:
    """The rows of each split in the order of the dataset."""
    chosen: dict[str, RowNumbers] = {}
    for number, split in enumerate(SPLITS):
        rows = _without_duplicates(table, np.flatnonzero(table.splits == number), counts)
        size = config.subsample_size if split == "train" else None
        is_drawn = size is not None and size < len(rows)
        if is_drawn:
            rows = _in_drawn_order(table, rows, config.seed)
        if config.unique == "drop":
            rows = _unique_ones(table, rows, config.workers, size if is_drawn else None, counts)
        chosen[split] = rows[:size] if is_drawn else rows
    chosen["test"] = _without_leaks(table, chosen["train"], chosen["test"], config, counts)
    return chosen


def _without_duplicates(table: Table, rows: RowNumbers, counts: Counter[str]) -> RowNumbers:
    """The rows without those whose question an earlier row of the split has."""
    marks = table.invariants[rows]
    order = np.argsort(marks, kind="stable")
    same = marks[order][1:] == marks[order][:-1]
    members = order[np.r_[False, same][: len(rows)] | np.r_[same, False][: len(rows)]]
    repeated = np.zeros(len(rows), bool)
    seen: set[bytes] = set()
    mark = None
    for first in range(0, len(members), _TOGETHER):
        places = members[first : first + _TOGETHER]
        questions, _ = table.read(rows[places])
        for place, question in zip(places.tolist(), questions, strict=True):
            if marks[place] != mark:
                mark = marks[place]
                seen.clear()
            text = question.tobytes()
            repeated[place] = text in seen
            seen.add(text)
    counts["duplicates_removed"] += int(np.count_nonzero(repeated))
    _note_first(table, rows[repeated], FIRST_REPEAT, counts)
    return rows[~repeated]


def _note_first(table: Table, rows: RowNumbers, begin: str, counts: Counter[str]) -> None:
    """Note of each file the line of the first of some rows, which may be in any order."""
    for number in np.unique(table.files[rows]).tolist():
        # A file has rows of both splits where it is a bank.
        name = begin + table.sources[number].path
        line = int(table.lines[rows[table.files[rows] == number]].min())
        counts[name] = min(line, counts[name] or line)


def _first_lines(counts: Counter[str], begin: str) -> dict[str, int]:
    return {
        name.removeprefix(begin): line for name, line in counts.items() if name.startswith(begin)
    }


def _in_drawn_order(table: Table, rows: RowNumbers, seed: int) -> RowNumbers:
    keys = np.empty(len(rows), np.uint64)
    for first in range(0, len(rows), _TOGETHER):
        questions, _ = table.read(rows[first : first + _TOGETHER])
        for k, question in enumerate(questions):
            keys[first + k] = source_key(seed, f"{SUDOKU}:subsample", text_of(question))
    return rows[np.argsort(keys, kind="stable")]


def _solutions(boards: Path, rows: RowNumbers) -> npt.NDArray[Any]:
    """How many solutions rows of a table's file have; see `solutions_of`."""
    return solutions_of(read_boards(boards, rows)[0])[1]


def _unique_ones(
    table: Table, rows: RowNumbers, workers: int, most: int | None, counts: Counter[str]
) -> RowNumbers:
    """The rows with one solution, in order; the first `most` of them where that is set."""
    kept: list[RowNumbers] = []
    together = [rows[first : first + _TOGETHER] for first in range(0, len(rows), _TOGETHER)]
    found = 0
    results = threaded_map(partial(_solutions, table.boards), together, workers)
    for batch, solutions in zip(together, results, strict=False):
        kept.append(batch[solutions == 1])
        found += len(kept[-1])
        dropped = batch[solutions != 1]
        counts["ambiguous_dropped"] += len(dropped)
        _note_first(table, dropped, FIRST_AMBIGUOUS, counts)
        if most is not None and found >= most:
            break
    results.close()
    return np.concatenate([np.empty(0, np.int64), *kept])


def _without_leaks(
    table: Table, train: RowNumbers, test: RowNumbers, config: SudokuConfig, counts: Counter[str]
) -> RowNumbers:
    """The test rows that are no training row up to symmetry."""
    originals = _forms(table, train[np.isin(table.invariants[train], table.invariants[test])])
    suspects = _forms(table, test[np.isin(table.invariants[test], table.invariants[train])])
    row_of = {form: row for row, form in reversed(originals)}
    leaks = [(row, row_of[form]) for row, form in suspects if form in row_of]
    if leaks and config.leaks == "refuse":
        shown = ", ".join(f"{table.where(a)} of {table.where(b)}" for a, b in leaks[:_SHOWN])
        more = ", ..." if len(leaks) > _SHOWN else ""
        raise BadInput(
            SUDOKU,
            f"{len(leaks):,} puzzles of the test split are twins of training puzzles, equal or up"
            f" to symmetry: {shown}{more}; take them out, or build with leaks = drop",
        )
    counts["leaks_dropped"] += len(leaks)
    return test[~np.isin(test, [row for row, _ in leaks])]


def _forms(table: Table, rows: RowNumbers) -> list[tuple[int, bytes]]:
    """Row and canonical form of rows."""
    forms: list[tuple[int, bytes]] = []
    for first in range(0, len(rows), _TOGETHER):
        here = rows[first : first + _TOGETHER]
        canonical = canonical_forms(table.read(here)[0])
        forms += zip(here.tolist(), (form.tobytes() for form in canonical), strict=True)
    return forms


_TASK_BYTES: Final = 8 << 20
"""Tokens of a task's batches as uint8."""


@dataclass(frozen=True)
class SudokuSummary(DatasetSummary):
    """What was built."""

    sources_read: int
    below_difficulty: int
    duplicates_removed: int
    first_repeats: Mapping[str, int]
    first_ambiguous: Mapping[str, int]
    ambiguous_dropped: int
    leaks_dropped: int
    augmentations_missing: int


@dataclass(frozen=True)
class SudokuTask:
    """Rows of one split that become groups: places in the table, files and lines, int32."""

    split: str
    boards: Path
    rows: RowNumbers
    files: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int32]
    paths: Sequence[Path]


@dataclass(frozen=True)
class MakeSudokus:
    """Makes the batch of a task: each puzzle and its augmentations as one group."""

    seed: int
    num_aug: int
    is_checked: bool

    def __call__(self, task: SudokuTask) -> Mapping[Sets, Batch]:
        """The batch of a task. Raises BadInput as `check_unique`."""
        questions, answers = read_boards(task.boards, task.rows)
        if self.is_checked:
            check_unique(questions, task)
        num_aug = self.num_aug if task.split == "train" else 0
        keys = np.zeros(len(questions), np.uint64)
        if num_aug:
            keys[:] = [key_of(self.seed, text_of(question)) for question in questions]
        inputs, labels, draws, sizes = groups(questions, answers, keys, num_aug)
        origins = np.empty((len(inputs), 3), np.int32)
        origins[:, 0] = np.repeat(task.files, sizes)
        origins[:, 1] = np.repeat(task.lines, sizes)
        origins[:, 2] = draws
        ones = np.ones(len(inputs), np.int32)
        return {(task.split, SET): Batch(inputs, labels, origins, ones, sizes)}


def check_unique(questions: Boards, task: SudokuTask) -> None:
    """Check that every puzzle of a task has one solution. questions: uint8 [rows, 81]."""
    _, found, _ = solutions_of(questions)
    if (found == 1).all():
        return
    row = int(np.argmax(found != 1))
    rule = (
        f"takes more than {MOST_GUESSES:,} guesses to solve: take the puzzle out"
        if found[row] == GAVE_UP
        else f'{AMBIGUOUS}: take the puzzle out, or leave such puzzles out by `unique = "drop"`'
    )
    raise BadInput(task.paths[task.files[row]], rule, int(task.lines[row]))


def build_sudoku(
    csv_dir: Path | Sequence[Path],
    out: Path,
    config: SudokuConfig,
    *,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> SudokuSummary:
    """Build a Sudoku dataset.

    csv_dir: a folder with `train.csv` and `test.csv`, or with banks, `*.txt`; or several folders,
        whose order does not matter.
    out: a folder that does not exist yet.
    parts: keeps finished parts for the build after a kill; default None.
    progress: gets the rows read, the parts made and the rows joined.
    links: what happens to links in the folders; default: they are refused.

    Raises BadInput with file and line for what breaks a rule, and with the rows of leaks.
    """
    folders = source_folders(csv_dir)
    counts: Counter[str] = Counter()
    with scratch_folder(out, parts) as folder:
        table = read_sources(folders, folder / "boards", config, links, progress, counts)
        chosen = chosen_rows(table, config, counts)
        _check_splits(table, chosen)
        make = MakeSudokus(config.seed, config.num_aug, config.unique == "refuse")
        tasks = [*_tasks(table, chosen, config.num_aug)]
        plan = Plan(
            SUDOKU, SUDOKU_ENCODING, config, tasks, make, table.sources, engine=threaded_map
        )
        made = build_dataset(plan, out, parts, progress)
    return SudokuSummary(
        **vars(made),
        sources_read=counts["sources_read"],
        below_difficulty=counts["below_difficulty"],
        duplicates_removed=counts["duplicates_removed"],
        first_repeats=_first_lines(counts, FIRST_REPEAT),
        first_ambiguous=_first_lines(counts, FIRST_AMBIGUOUS),
        ambiguous_dropped=counts["ambiguous_dropped"],
        leaks_dropped=counts["leaks_dropped"],
        augmentations_missing=made.groups["train"] * config.num_aug - made.augmented,
    )


def _check_splits(table: Table, chosen: Mapping[str, RowNumbers]) -> None:
    """Raise BadInput, with the first file, where a split has no puzzle."""
    for split, rows in chosen.items():
        if not len(rows):
            count = sum(map(len, chosen.values()))
            rule = f"of {count:,} puzzles of the sources none is for the split {split}: add puzzles"
            advice = ", or for files without a split set test_share, or a lower min_difficulty"
            raise BadInput(table.paths[0] if table.paths else SUDOKU, rule + advice)


def _tasks(
    table: Table, chosen: Mapping[str, RowNumbers], num_aug: int
) -> Iterator[tuple[str, SudokuTask]]:
    for split in SPLITS:
        group = 1 + (num_aug if split == "train" else 0)
        size = max(1, _TASK_BYTES // (2 * CELLS * group))
        for first in range(0, len(chosen[split]), size):
            rows = chosen[split][first : first + size]
            places = (table.files[rows], table.lines[rows])
            task = SudokuTask(split, table.boards, rows, *places, table.paths)
            yield f"{split}-{first:010d}", task
