"""The rows of all Sudoku sources: read, filtered, checked, and kept in one file for the build.

In memory is a row of numbers for each puzzle; the boards are in the file.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains import sudoku_board as board
from gristmill.puzzles.domains import sudoku_checks as checks
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.domains.sudoku_board import CELLS
from gristmill.puzzles.domains.sudoku_checks import GAVE_UP, MOST_GUESSES, solutions_of
from gristmill.puzzles.domains.sudoku_symmetry import invariants
from gristmill.puzzles.format.metadata import SourceFile
from gristmill.puzzles.format.names import SPLITS
from gristmill.puzzles.raw.file_forms import is_table, labelled_folders
from gristmill.puzzles.raw.rated_csv import RatedRows, columns_of, read_rows
from gristmill.puzzles.raw.sudoku_bank import BankRows, SudokuFile, read_bank, sudoku_files
from gristmill.run.progress import Progress, Stage
from gristmill.untrusted.files import LinkRule

Boards = npt.NDArray[np.uint8]
FIRST_AMBIGUOUS: Final = "first ambiguous in "
"""Begins the name of a count that is a line: of a file that of its first puzzle left out."""
_SHOWN: Final = 5


@dataclass(frozen=True)
class Table:
    """The puzzles of all sources, one row each.

    boards: the file, uint8 [rows, 2, 81]: digits of question and answer.
    splits: uint8 [rows], the place in SPLITS. files: int32 [rows], the place in `sources`.
    lines: int32 [rows], from 1. invariants: uint64 [rows].
    sources: the files. paths: where they are, for messages.
    """

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
    """Read the sources of a build.

    Raises BadInput with file and line for a board or an answer that breaks a rule.
    """
    files = _sorted_files(folders, links)
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


def _sorted_files(folders: Sequence[Path], links: LinkRule) -> list[tuple[str, SudokuFile]]:
    found = [
        (f"{label}/{file.path.name}", file)
        for label, folder in labelled_folders(folders)
        for file in sudoku_files(folder, links)
    ]
    return sorted(found, key=lambda named: named[0])


def _splits(
    named: str | None, marks: npt.NDArray[np.uint64], config: SudokuConfig
) -> npt.NDArray[np.uint8]:
    """The split of each row: the file's, or by the invariant, so that twins stay together."""
    if named is not None:
        return np.full(len(marks), SPLITS.index(named), np.uint8)
    key = np.uint64(source_key(config.seed, "sudoku:split", ""))
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
        """The rows for which `kept` is true."""
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
        found: Iterator[RatedRows] | Iterator[BankRows]
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

    def _filtered(self, rows: RatedRows | BankRows) -> _Rows:
        read = (rows.questions, rows.answers)
        questions, answers = (board.digits(text, self.config.blank) for text in read)
        found = _Rows(questions, answers, rows.lines)
        if self.config.min_difficulty is None:
            self._check_digits(found, read)
            return found
        ratings: npt.NDArray[Any] = (
            rows.whole_ratings() if isinstance(rows, RatedRows) else rows.rating_numbers()
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
            if (place := board.first_without_digit(boards)) is not None:
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
        checks.check(given, labels, findings, np.empty(len(given), np.int32))
        if findings.any():
            row = int(np.argmax(findings > 0))
            broken = [*checks.described(given[row], labels[row])]
            more = ", ..." if len(broken) > _SHOWN else ""
            rule = f"the answer is wrong ({', '.join(broken[:_SHOWN])}{more}): correct the row"
            raise BadInput(self.file.path, rule, int(rows.lines[row]))
        return rows
