"""Plain banks of Sudokus, a puzzle a line. Source: docs/formats/puzzles.md#sudoku-sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, os_reason
from gristmill.inbox.marks import is_mark, not_samples
from gristmill.puzzles.domains.sudoku_board import CELLS
from gristmill.puzzles.format.names import SPLITS, Split
from gristmill.puzzles.raw.file_forms import (
    CARRIAGE_RETURN,
    check_names,
    is_table,
    split_tables,
    text_lines,
    unpack_hint,
)
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.limits import LIMITS, Limits
from gristmill.untrusted.walk import list_files

BANK_LIMITS: Final = replace(LIMITS, bytes=1 << 36, rows=(1 << 31) - 1, line_bytes=1 << 12)
"""Limits of a bank: 64 GiB, 2,147,483,647 lines, 4 KiB for a line."""
NO_BANKS: Final = ("license", "licence", "readme", "copying", "notice")
"""Names of text files, without their ending and in lower case, that hold no puzzles."""

_ROWS: Final = 4096
_SHOWN: Final = 40


@dataclass(frozen=True)
class SudokuFile:
    """A file with Sudokus. split: the one that its name says, None for a bank or another table."""

    path: Path
    split: str | None


def sudoku_files(folder: Path, links: LinkRule = REFUSE_LINKS) -> list[SudokuFile]:
    """The files of a drop that hold Sudokus, sorted by name; its subfolders are not read.

    folder: with `train.csv` and `test.csv`, or else with banks, `*.txt`, or else with tables of
        other names, `*.csv`.
    links: what happens to links; default: they are refused.

    Raises BadInput where there is none, one of the two CSV files alone, or a packed file that would
    count unpacked.
    """
    try:
        entries = sorted(
            list_files(folder, root=folder, links=links, deep=False), key=lambda entry: entry.name
        )
    except OSError as error:
        raise BadInput(folder, f"cannot be read: {os_reason(error)}") from error
    names = [entry.name for entry in entries]
    left = not_samples(folder, filter(is_sudoku_file, names))
    names = [name for name in names if name not in left]
    tables = split_tables(folder, names)
    if len(tables) == 1:
        ((split, name),) = tables.items()
        lacking = f"{next(other for other in SPLITS if other != split)}.csv"
        what = f"no {lacking} but that of a sample" if left else f"no {lacking}"
        rule = f"has {name}, but {what}: add it, or rename a file that has no split"
        raise BadInput(folder, rule)
    counts = is_bank if any(map(is_bank, names)) else is_sudoku_file
    if not tables:
        check_names(folder, names, counts)
    chosen: dict[str, Split | None] = {name: split for split, name in tables.items()} or {
        name: None for name in names if counts(name)
    }
    if not chosen:
        rule = "holds neither tables, `*.csv`, nor a bank, `*.txt`"
        raise BadInput(folder, rule + (unpack_hint(names) or _other_ending(names)))
    for entry in entries:
        if entry.name in chosen and entry.refusal is not None:
            raise BadInput(folder / entry.name, entry.refusal)
    return [
        SudokuFile(folder / entry.name, chosen[entry.name])
        for entry in entries
        if entry.name in chosen
    ]


def _other_ending(names: Sequence[str]) -> str:
    """What to add to a message about a source whose files have other endings."""
    is_other = (not name.startswith(".") and not is_mark(name) and name != FILE for name in names)
    first = next(compress(names, is_other), None)
    return f": give {first} the ending .txt if it has a puzzle a line" if first else ""


def is_sudoku_file(name: str) -> bool:
    """Whether a file of a drop holds Sudokus, by its name."""
    return is_table(name) or is_bank(name)


def is_bank(name: str) -> bool:
    """Whether a file of a source is a bank by its name."""
    stem, _, ending = name.rpartition(".")
    return ending.lower() == "txt" and stem.lower() not in NO_BANKS and not name.startswith(".")


@dataclass
class BankRows:
    """Rows of a bank, in its order.

    questions: uint8 [rows, 81], the bytes of the file. answers: likewise, `0` in all cells of a
        puzzle without a solution. lines: int64 [rows], from 1.
    ratings: the text of each rating, None where a line has none.
    """

    path: Path
    questions: npt.NDArray[np.uint8]
    answers: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int64]
    ratings: list[bytes | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.questions)

    def rating_numbers(self) -> npt.NDArray[np.float64]:
        """The ratings, float64 [rows]. Raises BadInput for a row without one, or with no number."""
        found = np.empty(len(self), np.float64)
        for row, text in enumerate(self.ratings):
            try:
                found[row] = float(text) if text is not None else np.nan
            except ValueError:
                found[row] = np.nan
            if not np.isfinite(found[row]):
                shown = "no rating" if text is None else f"the rating {text[:_SHOWN]!r}"
                rule = f"has {shown}, but min_difficulty needs a number: leave min_difficulty out"
                raise BadInput(self.path, rule, int(self.lines[row]))
        return found


def read_bank(
    path: Path,
    *,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = BANK_LIMITS,
    see: Callable[[bytes], None] | None = None,
) -> Iterator[BankRows]:
    """Yield the rows of a bank, some thousands together.

    links: what happens if the file is a link; default: it is refused.
    limits: `bytes`, `rows` and `line_bytes` count.
    see: called with all bytes of the file in order, as a hash takes them; default None.

    Blank lines and comments are passed over. Raises BadInput with the line for any other form of a
    line, and for a file without a puzzle.
    Memory: some MiB.
    """
    held: list[tuple[int, bytes, bytes, bytes | None]] = []
    has_row = False
    for number, line in text_lines(path, limits, links, see):
        if b"\r" in line.rstrip(b"\r\n"):
            raise BadInput(path, CARRIAGE_RETURN, number)
        if (row := _row(line.split(), path, number)) is None:
            continue
        has_row = True
        held.append((number, *row))
        if len(held) == _ROWS:
            yield _together(held, path)
            held = []
    if not has_row:
        raise BadInput(path, "holds no puzzle: get the file again, or remove it")
    if held:
        yield _together(held, path)


def _row(words: list[bytes], path: Path, number: int) -> tuple[bytes, bytes, bytes | None] | None:
    """Question, answer and rating of a line; None for a comment."""
    sizes = [len(word) for word in words]
    if sizes == [CELLS]:
        return words[0], _UNSOLVED, None
    if sizes == [CELLS, CELLS]:
        return words[0], words[1], None
    if len(sizes) == 3 and sizes[1] == CELLS and CELLS not in (sizes[0], sizes[2]):
        return words[1], _UNSOLVED, words[2]
    # Behind the forms of a puzzle, since `#` may be the sign of a blank cell.
    if words[0].startswith(b"#"):
        return None
    rule = (
        f"has words of {', '.join(map(str, sizes[:6]))} characters: a line is `puzzle`, `puzzle"
        f" solution` or `id puzzle rating`, with spaces between and {CELLS} characters for a puzzle"
        " or solution, or a comment after `#`"
    )
    raise BadInput(path, rule, number)


_UNSOLVED: Final = b"0" * CELLS


def _together(held: list[tuple[int, bytes, bytes, bytes | None]], path: Path) -> BankRows:
    numbers, questions, answers, ratings = zip(*held, strict=True)
    return BankRows(
        path,
        np.frombuffer(b"".join(questions), np.uint8).reshape(-1, CELLS),
        np.frombuffer(b"".join(answers), np.uint8).reshape(-1, CELLS),
        np.array(numbers, np.int64),
        list(ratings),
    )
