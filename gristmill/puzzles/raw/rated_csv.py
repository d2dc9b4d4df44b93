"""Rated CSV files of Sudokus and mazes. Source: docs/formats/puzzles.md#rated-csv."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.domains.maze_grid import CHARSET, encoded, side_of
from gristmill.puzzles.raw.file_forms import BYTE_ORDER_MARK, CARRIAGE_RETURN, check_encoding
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS, Limits
from gristmill.untrusted.lines import reads

COLUMNS: Final = ("source", "question", "answer", "rating")
COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "question": ("question", "quizzes", "quiz", "puzzle", "puzzles"),
    "answer": ("answer", "answers", "solution", "solutions"),
    "rating": ("rating", "difficulty"),
}
"""What a header may call a column, in lower case."""
CSV_LIMITS: Final = replace(LIMITS, bytes=1 << 36, rows=(1 << 31) - 1, line_bytes=1 << 18)
"""Limits of a CSV file: 64 GiB, 2,147,483,647 lines, 256 KiB for a line."""

_ROWS: Final = 8192
_SHOWN: Final = 40
_AS_TEXT: Final = "; a program that takes a column for numbers drops zeros, so write it as text"
_OTHER_SIGN: Final = re.compile(rb"[;\t|]")
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
_BLANK_LINES: Final = re.compile(rb"(?:[ \t\r]*+\n)++")

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class RatedRows:
    """Rows of a file, in its order.

    questions, answers: uint8 [rows, length], the bytes of the file.
    lines: int64 [rows], the line of each row, the first line of the file being 1.
    ratings: int64 [rows], valid where is_whole (bool [rows]) is true: see `whole_ratings`.
    rating_text: returns the text of the rating of a row; None for a file without ratings.
    """

    path: Path
    questions: Bytes
    answers: Bytes
    lines: npt.NDArray[np.int64]
    ratings: npt.NDArray[np.int64]
    is_whole: npt.NDArray[np.bool_]
    rating_text: Callable[[int], str] | None

    def __len__(self) -> int:
        return len(self.questions)

    def whole_ratings(self) -> npt.NDArray[np.int64]:
        """The ratings, int64 [rows]. Raises BadInput for one that is no whole number, or none."""
        if self.rating_text is None:
            rule = "has no column rating, which min_difficulty compares with: leave it out"
            raise BadInput(self.path, rule, 1)
        for row in np.flatnonzero(~self.is_whole).tolist():
            text = self.rating_text(row)
            try:
                self.ratings[row] = int(text)
            except OverflowError as error:
                rule = f"the rating {text[:_SHOWN]!r} does not fit into 64 bits: take the row out"
                raise BadInput(self.path, rule, int(self.lines[row])) from error
            except ValueError as error:
                rule = (
                    f"the rating {text[:_SHOWN]!r} is not a whole number, which min_difficulty"
                    " compares with: convert the ratings (as 7.2 to 72), or leave min_difficulty"
                    " out"
                )
                raise BadInput(self.path, rule, int(self.lines[row])) from error
        return self.ratings


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
    """Yield the rows of a rated CSV file, some thousands together.

    length: bytes of every question and answer; None (default): those of the first question.
    columns: names in the header of `question` and `answer`; default: those that are known.
    links: what happens if the file is a link; default: it is refused.
    limits: `bytes`, `rows`, `blank_lines` and `line_bytes` count.
    see: called with all bytes of the file in order, as a hash takes them; default None.

    Blank lines are passed over. Raises BadInput with the line for a row that has not the columns of
    the header, or a question or answer of another length; for other names, a quoted field that
    continues in the next line, and a file that breaks a limit. Memory: some MiB.
    """
    reader = _Reader(path, length, limits, columns or {})
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


class _Reader:
    """Takes the bytes of a file, gives its rows."""

    def __init__(
        self, path: Path, length: int | None, limits: Limits, columns: Mapping[str, str]
    ) -> None:
        self._path, self._length, self._limits = path, length, limits
        self._given = columns
        self._header: tuple[str, ...] = COLUMNS
        # Those of question, answer and rating.
        self._columns = np.array([1, 2, 3], np.int64)
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
        yield from self._rows(text, end)

    def end(self) -> Iterator[RatedRows]:
        """The last row, where no newline ends it."""
        if self._rest:
            yield from self._rows(self._rest + b"\n", len(self._rest) + 1)
        self._end_of_file()

    def _end_of_file(self) -> None:
        if self._line == 1:
            raise self._wrong("is empty: the first line must be " + ",".join(COLUMNS), None)
        if not self._has_row:
            raise self._wrong("has no row below its header: get the file again", None)

    def _rows(self, text: bytes, end: int) -> Iterator[RatedRows]:
        from gristmill.puzzles.raw.csv_kernel import scan

        view = np.frombuffer(text, np.uint8)
        begin = self._take_header(text) if self._line == 1 and end else 0
        while begin < end:
            if self._line > self._limits.rows:
                raise self._wrong(f"more than {self._limits.rows:,} lines", None)
            if blank := _BLANK_LINES.match(text, begin, end):
                begin = self._past_blank(text, begin, blank.end())
                continue
            length = self._length or self._first_length(text, begin)
            if length:
                self._length = length
                arrays = _Arrays(
                    min(_ROWS, self._limits.rows, (end - begin) // (2 * length) + 1), length
                )
                place = (begin, end, self._line, self._columns, len(self._header))
                count, begin, self._line = scan(view, *place, *arrays.all())
                if count:
                    self._has_row = True
                    yield arrays.rows(count, self._path, text if self._has_rating else None)
                    continue
                for unusual in self._unusual(text, begin):
                    self._has_row = True
                    yield unusual
            begin = self._past(text, begin)

    def _first_length(self, text: bytes, begin: int) -> int:
        """The length of the first question; 0 for a blank line."""
        fields = self._fields(text, begin)
        question = fields[self._columns[0]] if fields is not None else None
        if question == "":
            raise self._wrong("the question is empty")
        return len(question or "")

    def _past(self, text: bytes, begin: int) -> int:
        self._line += 1
        return text.index(b"\n", begin) + 1

    def _past_blank(self, text: bytes, begin: int, end: int) -> int:
        count = text.count(b"\n", begin, end)
        self._line, self._blank = self._line + count, self._blank + count
        self._limits.check_blank(self._blank, self._line - 1 - self._blank, self._path)
        return end

    @property
    def _has_rating(self) -> bool:
        return bool(self._columns[2] >= 0)

    def _take_header(self, text: bytes) -> int:
        check_encoding(text, self._path)
        text = text[: text.index(b"\n") + 1]
        if b"\r" in text.rstrip(b"\r\n"):
            raise self._wrong(CARRIAGE_RETURN, 1)
        found = self._fields(text, len(BYTE_ORDER_MARK) * text.startswith(BYTE_ORDER_MARK), False)
        self._header = tuple(name.strip().lower() for name in found or ())
        self._columns[:] = [self._column(role, text) for role in COLUMN_NAMES]
        if self._columns[0] == self._columns[1]:
            name = self._header[self._columns[0]][:_SHOWN]
            rule = f"the column {name!r} is that of questions and of answers: name two columns"
            raise self._wrong(rule, 1)
        return self._past(text, 0)

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

    def _fields(self, text: bytes, begin: int, checked: bool = True) -> list[str] | None:
        """The fields of one line, by the rules of Python's csv; None for a blank line."""
        line = text[begin : text.index(b"\n", begin)].removesuffix(b"\r").decode("latin-1")
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

    def _unusual(self, text: bytes, begin: int) -> Iterator[RatedRows]:
        """The row of a line that the kernel left; none for a blank line."""
        fields = self._fields(text, begin)
        if fields is None:
            return
        places = self._columns.tolist()
        wanted = [fields[place] for place in places[:2]]
        for name, field in zip(COLUMNS[1:3], wanted, strict=True):
            if len(field) != self._length:
                rule = f"the {name} has {len(field)} characters, must have {self._length}"
                hint = _AS_TEXT if 0 < len(field) < (self._length or 0) else ""
                raise self._wrong(f"{rule}: correct the row, or take it out{hint}")
        question, answer = (field.encode("latin-1") for field in wanted)
        rating = fields[places[2]].encode("latin-1") if self._has_rating else b""
        yield RatedRows(
            self._path,
            np.frombuffer(question, np.uint8).reshape(1, -1),
            np.frombuffer(answer, np.uint8).reshape(1, -1),
            np.array([self._line], np.int64),
            np.zeros(1, np.int64),
            np.zeros(1, np.bool_),
            (lambda _: rating.decode("utf-8", "replace")) if self._has_rating else None,
        )

    def _wrong(self, rule: str, line: int | None = -1) -> BadInput:
        return BadInput(self._path, rule, self._line if line == -1 else line)


class _Arrays:
    """What the kernel fills."""

    def __init__(self, rows: int, length: int) -> None:
        self.questions = np.empty((rows, length), np.uint8)
        self.answers = np.empty((rows, length), np.uint8)
        self.ratings = np.zeros(rows, np.int64)
        self.is_whole = np.zeros(rows, np.bool_)
        self.spots = np.empty((rows, 2), np.int64)
        self.lines = np.empty(rows, np.int64)

    def all(self) -> tuple[Any, ...]:
        """The arrays in the order of the kernel's arguments."""
        tokens = (self.questions, self.answers)
        return (*tokens, self.ratings, self.is_whole, self.spots, self.lines)

    def rows(self, count: int, path: Path, text: bytes | None) -> RatedRows:
        """The first `count` rows. text: that holds their ratings; None: there are none."""
        spots = self.spots

        def rating_text(row: int) -> str:
            assert text is not None
            return text[spots[row, 0] : spots[row, 1]].decode("utf-8", "replace")

        whole, lines = self.is_whole[:count], self.lines[:count]
        tokens = (self.questions[:count], self.answers[:count])
        rated = None if text is None else rating_text
        return RatedRows(path, *tokens, lines, self.ratings[:count], whole, rated)


_KNOWN: Final = ", ".join(repr(character) for character in CHARSET)


@dataclass(frozen=True)
class MazeRows:
    """Some mazes of a file.

    inputs, labels: tokens 1 to 5, uint8 [rows, side * side].
    lines: of the rows in the file, from 1, int64 [rows].
    """

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
    """Yield the mazes of a file in batches.

    length: cells of every maze; None (default): those of the first one.
    """
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
