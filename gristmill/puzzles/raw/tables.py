"""Tables and banks of Sudokus and mazes: rated CSV files, and files with a puzzle a line.

Source: docs/formats/puzzles.md#rated-csv, docs/formats/puzzles.md#sudoku-sources
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, os_reason
from gristmill.inbox.marks import is_mark, not_samples
from gristmill.puzzles.domains.grid import CELLS, CHARSET, encoded, side_of
from gristmill.puzzles.format import SPLITS, Split
from gristmill.puzzles.raw.file_forms import (
    BYTE_ORDER_MARK,
    CARRIAGE_RETURN,
    check_encoding,
    check_names,
    is_table,
    split_tables,
    text_lines,
    unpack_hint,
)
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS, Limits
from gristmill.untrusted.lines import reads
from gristmill.untrusted.walk import list_files

COLUMNS: Final = ("source", "question", "answer", "rating")
COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "question": ("question", "quizzes", "quiz", "puzzle", "puzzles"),
    "answer": ("answer", "answers", "solution", "solutions"),
    "rating": ("rating", "difficulty"),
}
"""What a header may call a column, in lower case."""
CSV_LIMITS: Final = replace(LIMITS, bytes=1 << 36, rows=(1 << 31) - 1, line_bytes=1 << 18)
"""Limits of a CSV file: 64 GiB, 2,147,483,647 lines, 256 KiB for a line."""

BANK_LIMITS: Final = replace(CSV_LIMITS, line_bytes=1 << 12)
"""Limits of a bank: those of a CSV file, but 4 KiB for a line."""
NO_BANKS: Final = ("license", "licence", "readme", "copying", "notice")
"""Names of text files, without their ending and in lower case, that hold no puzzles."""

_ROWS: Final = 4096
_LOOKED_AT, _GUESSED = 100, 1000
"""Rows whose columns are shown, and by which the meaning of columns is guessed."""
_SHOWN: Final = 40
_COMMA, _NEWLINE, _RETURN = b",\n\r"
_AS_TEXT: Final = "; a program that takes a column for numbers drops zeros, so write it as text"
_OTHER_SIGN: Final = re.compile(rb"[;\t|]")
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")

Bytes = npt.NDArray[np.uint8]
Held = tuple[int, bytes, bytes, bytes | None]
"""Line, question, answer and rating of a row."""


@dataclass(frozen=True)
class RatedRows:
    """Rows of a table: questions and answers, uint8 [rows, length], lines and ratings."""

    path: Path
    questions: Bytes
    answers: Bytes
    lines: npt.NDArray[np.int64]
    rating: Callable[[int], bytes | None] | None

    def __len__(self) -> int:
        return len(self.questions)

    def whole_ratings(self) -> npt.NDArray[np.int64]:
        """The ratings of a table, int64 [rows]. Raises BadInput for one that is no whole number."""
        if self.rating is None:
            rule = "has no column rating, which min_difficulty compares with: leave it out"
            raise BadInput(self.path, rule, 1)
        ratings = np.empty(len(self), np.int64)
        for row, line in enumerate(self.lines.tolist()):
            text = (self.rating(row) or b"").decode("utf-8", "replace")
            try:
                ratings[row] = int(text)
            except OverflowError as error:
                rule = f"the rating {text[:_SHOWN]!r} does not fit into 64 bits: take the row out"
                raise BadInput(self.path, rule, line) from error
            except ValueError as error:
                rule = (
                    f"the rating {text[:_SHOWN]!r} is not a whole number, which min_difficulty"
                    " compares with: convert the ratings (as 7.2 to 72), or leave min_difficulty"
                    " out"
                )
                raise BadInput(self.path, rule, line) from error
        return ratings

    def rating_numbers(self) -> npt.NDArray[np.float64]:
        """The ratings of a bank, float64 [rows]. Raises BadInput for a row without a number."""
        ratings = np.empty(len(self), np.float64)
        for row, line in enumerate(self.lines.tolist()):
            text = self.rating(row) if self.rating is not None else None
            try:
                ratings[row] = float(text) if text is not None else np.nan
            except ValueError:
                ratings[row] = np.nan
            if not np.isfinite(ratings[row]):
                shown = "no rating" if text is None else f"the rating {text[:_SHOWN]!r}"
                rule = f"has {shown}, but min_difficulty needs a number: leave min_difficulty out"
                raise BadInput(self.path, rule, line)
        return ratings


def _together(held: Sequence[Held], path: Path, is_rated: bool = True) -> RatedRows:
    """Rows that were read one by one."""
    numbers, *texts, ratings = zip(*held, strict=True)
    questions, answers = (
        np.frombuffer(b"".join(each), np.uint8).reshape(len(held), -1) for each in texts
    )
    rating = ratings.__getitem__ if is_rated else None
    return RatedRows(path, questions, answers, np.array(numbers), rating)


def columns_of(question: str | None, answer: str | None) -> dict[str, str]:
    """The columns that settings name, as `read_rows` takes them."""
    named = {"question": question, "answer": answer}
    return {role: name for role, name in named.items() if name}


def read_rows(
    path: Path,
    *,
    length: int | None = None,
    columns: Mapping[str, str] | None = None,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = CSV_LIMITS,
    see: Callable[[bytes], None] | None = None,
) -> Iterator[RatedRows]:
    """Yield the rows of a rated CSV file, thousands together; BadInput names a broken line."""
    reader = _Reader(path, length, limits, columns or {})
    reader.gone = links.forgotten.get(path, ())
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        if file.seek(0, 2) > limits.bytes:
            raise BadInput(path, f"has more than {limits.bytes:,} bytes")
        file.seek(0)
        for part in reads(file):
            if see is not None:
                see(part)
            yield from reader.take(part)
    yield from reader.end()


def check_header(
    path: Path, links: LinkRule = REFUSE_LINKS, columns: Mapping[str, str] | None = None
) -> None:
    """Raise BadInput where the first line of a file does not name the columns of puzzles."""
    reader = _Reader(path, None, CSV_LIMITS, columns or {})
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        head = file.read(CSV_LIMITS.line_bytes)
    reader.check_header(head)


def first_rows(path: Path, links: LinkRule = REFUSE_LINKS) -> list[dict[str, str]]:
    """The first rows of a table by the names of its header, of its first 256 KiB; none longer."""
    with open_file(path, root=path.parent, links=links) as file:
        return rows_in(file.read(CSV_LIMITS.line_bytes))[:_LOOKED_AT]


def rows_in(head: bytes) -> list[dict[str, str]]:
    """The rows at the beginning of a table, by the names of its header; none longer."""
    lines = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").splitlines()
    try:
        return [*islice(csv.DictReader(lines, restkey="", restval=""), _GUESSED)]
    except csv.Error:
        return []


class _Reader:
    """Takes the bytes of a file, gives its rows."""

    def __init__(
        self, path: Path, length: int | None, limits: Limits, columns: Mapping[str, str]
    ) -> None:
        self._path, self._length, self._limits = path, length, limits
        self._given = columns
        self.gone: Collection[int] = ()
        self._header: tuple[str, ...] = COLUMNS
        # Those of question, answer and rating.
        self._columns = [1, 2, 3]
        self._rest = b""
        self._line = 1
        self._blank = 0
        self._has_row = False

    def check_header(self, head: bytes) -> None:
        """Check the first line. head: the beginning of the file."""
        if not head:
            self._end_of_file()
        self._take_header(head + b"\n")

    def take(self, part: bytes) -> Iterator[RatedRows]:
        """The rows that are whole with this part of the file."""
        text = self._rest + part
        end = text.rfind(b"\n") + 1
        self._rest = text[end:]
        if len(self._rest) > self._limits.line_bytes:
            if b"\r" in self._rest and not end:
                raise self._wrong(CARRIAGE_RETURN)
            line = self._line + text.count(b"\n")
            raise self._wrong(f"a line of more than {self._limits.line_bytes:,} bytes", line)
        yield from self._rows(text[:end])

    def end(self) -> Iterator[RatedRows]:
        """The last row, where no newline ends it."""
        if self._rest:
            yield from self._rows(self._rest + b"\n")
        self._end_of_file()

    def _end_of_file(self) -> None:
        if self._line == 1:
            raise self._wrong("is empty: the first line must be " + ",".join(COLUMNS), None)
        if not self._has_row:
            raise self._wrong("has no row below its header: get the file again", None)

    def _rows(self, text: bytes) -> Iterator[RatedRows]:
        """The rows of whole lines."""
        if text and self._line == 1:
            text = text[self._take_header(text) :]
        if self._line - 1 + text.count(b"\n") > self._limits.rows:
            raise self._wrong(f"more than {self._limits.rows:,} lines", None)
        rows = self._usual(text) if text and not self.gone else None
        for each in [rows] if rows is not None else self._by_line(text):
            self._has_row = True
            yield each

    def _usual(self, text: bytes) -> RatedRows | None:
        """The rows of lines without quotes that all have the columns of the header; else None."""
        # Looking for two bytes takes longer than all else.
        if b'"' in text or (b"\r" in text and text.count(b"\r") != text.count(b"\r\n")):
            return None
        view = np.frombuffer(text, np.uint8)
        marks = np.flatnonzero((view == _COMMA) | (view == _NEWLINE))
        if len(marks) % len(self._header):
            return None
        ends = marks.reshape(-1, len(self._header))
        is_end = view[ends] == _NEWLINE
        if is_end[:, :-1].any() or not is_end[:, -1].all():
            return None
        begins = np.append(0, marks[:-1] + 1).reshape(ends.shape)
        ends[:, -1] -= view[ends[:, -1] - 1] == _RETURN
        question, answer, rating = self._columns
        length = self._length or int(ends[0, question] - begins[0, question])
        if length == 0 or ((ends - begins)[:, [question, answer]] != length).any():
            return None
        self._length = length
        cells = np.lib.stride_tricks.sliding_window_view(view, length)
        lines = np.arange(self._line, self._line + len(ends))
        self._line += len(ends)

        def text_of(row: int) -> bytes:
            return text[begins[row, rating] : ends[row, rating]]

        read = (cells[begins[:, question]], cells[begins[:, answer]])
        return RatedRows(self._path, *read, lines, text_of if rating >= 0 else None)

    def _by_line(self, text: bytes) -> Iterator[RatedRows]:
        """The rows of lines in any form, by the rules of Python's csv."""
        question, answer, rating = self._columns
        held: list[Held] = []
        for line in text.split(b"\n")[:-1]:
            fields = None if self._line in self.gone else self._fields(line)
            if fields is None:
                self._blank += self._line not in self.gone
                self._limits.check_blank(self._blank, self._line - self._blank, self._path)
            else:
                self._check_lengths(fields[question], fields[answer])
                read = [fields[at].encode("latin-1") for at in (question, answer, rating)]
                held.append((self._line, read[0], read[1], read[2]))
            self._line += 1
            if len(held) == _ROWS:
                yield _together(held, self._path, rating >= 0)
                held = []
        if held:
            yield _together(held, self._path, rating >= 0)

    def _check_lengths(self, question: str, answer: str) -> None:
        if not question and self._length is None:
            raise self._wrong("the question is empty")
        self._length = self._length or len(question)
        for name, field in (("question", question), ("answer", answer)):
            if len(field) != self._length:
                rule = f"the {name} has {len(field)} characters, must have {self._length}"
                hint = _AS_TEXT if 0 < len(field) < self._length else ""
                raise self._wrong(f"{rule}: correct the row, or take it out{hint}")

    def _take_header(self, text: bytes) -> int:
        check_encoding(text, self._path)
        text = text[: text.index(b"\n") + 1]
        if b"\r" in text.rstrip(b"\r\n"):
            raise self._wrong(CARRIAGE_RETURN, 1)
        fields = self._fields(text.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n"), False)
        self._header = tuple(name.strip().lower() for name in fields or ())
        self._columns[:] = [self._column(role, text) for role in COLUMN_NAMES]
        if self._columns[0] == self._columns[1]:
            name = self._header[self._columns[0]][:_SHOWN]
            rule = f"the column {name!r} is that of questions and of answers: name two columns"
            raise self._wrong(rule, 1)
        self._line = 2
        return len(text)

    def _column(self, role: str, text: bytes) -> int:
        """The number of a column, -1 for ratings that are not there."""
        given = self._given.get(role)
        named = (given.lower(),) if given else COLUMN_NAMES[role]
        found = [number for number, name in enumerate(self._header) if name in named]
        if len(found) == 1:
            return found[0]
        if role == "rating":
            return -1
        shown = text.decode("utf-8", "replace").strip()[:_SHOWN]
        rule = f"the first line is {shown!r}, must be {','.join(COLUMNS)}, or name one column"
        cure = f"rename it, or set {role}_column to its name"
        if role == "answer":
            cure += "; Sudokus without answers are read from .txt, a puzzle a line"
        if len(self._header) == 1 and (sign := _OTHER_SIGN.search(text)):
            cure = f"part the columns by commas, not by {sign[0].decode()!r}"
        elif not any(_LETTERS.search(name) for name in self._header):
            cure = "write it before the rows, or give a bank of puzzles the ending .txt"
        raise self._wrong(f"{rule} of the {role}s ({', '.join(named)}): {cure}", 1)

    def _fields(self, octets: bytes, checked: bool = True) -> list[str] | None:
        """The fields of one line, by the rules of Python's csv; None for a blank line."""
        line = octets.removesuffix(b"\r").decode("latin-1")
        if not line.strip():
            return None
        try:
            (fields,) = csv.reader([line], strict=True)
        except (csv.Error, ValueError) as error:
            rule = f"is not a line of CSV ({error}): quotes must end on the line that they begin on"
            raise self._wrong(rule) from error
        if checked and len(fields) != len(self._header):
            rule = f"has {len(fields)} columns, must have {len(self._header)}: "
            rule += ",".join(self._header)[:_SHOWN]
            raise self._wrong(rule)
        return fields

    def _wrong(self, rule: str, line: int | None = -1) -> BadInput:
        return BadInput(self._path, rule, self._line if line == -1 else line)


class _ByRow(_Reader):
    """Gives each row by itself."""

    def row(self, octets: bytes, number: int) -> Held:
        """The row of a line that is not blank, which has this number."""
        self._line = number
        fields = self._fields(octets) or []
        question, answer = (fields[at] for at in self._columns[:2])
        self._check_lengths(question, answer)
        return number, question.encode("latin-1"), answer.encode("latin-1"), None


def each_row(
    path: Path, head: bytes, columns: Mapping[str, str], length: int | None
) -> Iterator[Held | BadInput]:
    """Yield the first rows of a table or a bank; one that breaks a rule is its error."""
    reader, has_header = _ByRow(path, length, CSV_LIMITS, columns), is_table(path.name)
    if has_header:
        reader.check_header(head)
    for number, line in enumerate(head.split(b"\n"), 1):
        if not line.strip() or (has_header and number == 1):
            continue
        try:
            if has_header:
                yield reader.row(line, number)
            elif b"\r" in line.rstrip():
                yield BadInput(path, CARRIAGE_RETURN, number)
            elif (row := _row(line.split(), path, number)) is not None:
                yield number, *row
        except BadInput as error:
            yield error


_KNOWN: Final = ", ".join(repr(character) for character in CHARSET)


@dataclass(frozen=True)
class MazeRows:
    """Some mazes: tokens 1 to 5, uint8 [rows, side * side], and lines from 1."""

    inputs: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int64]


def read_mazes(
    path: Path,
    *,
    length: int | None = None,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = CSV_LIMITS,
    see: Callable[[bytes], None] | None = None,
) -> Iterator[MazeRows]:
    """Yield the mazes of a file in batches. length: of each maze; default: that of the first."""
    from gristmill.puzzles.domains.maze_paths import RULES, findings, rule_names

    for rows in read_rows(path, length=length, links=links, limits=limits, see=see):
        cells = rows.questions.shape[1]
        if side_of(cells) is None:
            rule = f"a maze of {cells} cells is not square: it needs as many lines as columns"
            raise BadInput(path, rule, int(rows.lines[0]))
        inputs = _tokens(rows, "question", rows.questions)
        labels = _tokens(rows, "answer", rows.answers)
        broken = findings(inputs, labels)
        for row in np.flatnonzero(broken)[:1].tolist():
            rule = RULES[rule_names(int(broken[row]))[0]]
            raise BadInput(path, f"{rule}: correct or remove the line", int(rows.lines[row]))
        yield MazeRows(inputs, labels, rows.lines)


def _tokens(rows: RatedRows, name: str, characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    tokens = encoded(characters)
    is_unknown = tokens == 0
    if is_unknown.any():
        row = int(np.flatnonzero(is_unknown.any(axis=1))[0])
        character = chr(characters[row][is_unknown[row]][0])
        rule = f"the {name} has the character {character!r}: a cell is one of {_KNOWN}"
        raise BadInput(rows.path, rule, int(rows.lines[row]))
    return tokens


@dataclass(frozen=True)
class SudokuFile:
    """A file with Sudokus. split: the one that its name says, None for a bank or another table."""

    path: Path
    split: str | None


def sudoku_files(folder: Path, links: LinkRule = REFUSE_LINKS) -> list[SudokuFile]:
    """The files of Sudokus, sorted: both split tables, or else `*.txt`, or else `*.csv`."""
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


def read_bank(
    path: Path,
    *,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = BANK_LIMITS,
    see: Callable[[bytes], None] | None = None,
) -> Iterator[RatedRows]:
    """Yield the rows of a bank, thousands together, without comments, in some MiB."""
    held: list[Held] = []
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
