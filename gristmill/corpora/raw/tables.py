"""The rows of CSV and TSV files. Source: `docs/formats/reasoning.md#drops`."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw.drops import SPLIT_WORDS, kind, words
from gristmill.corpora.raw.texts import Unfit
from gristmill.untrusted.limits import LIMITS, Limits
from gristmill.untrusted.lines import line_places, lines

_MOST_COLUMNS: Final = 10_000
_SHOWN: Final = 80
_QUOTED: Final = re.compile(rb'"[^"]*"')
_NO_QUOTES: Final = "where cells are not in quotes, write quotes = false into corpus.toml"
_TAKEN: Final = 5
_MARKED: Final = re.compile(rb"sep=([,;|\t])\r?\n?")


def rows(
    texts: Iterable[bytes], path: Path, corpus: Corpus, limits: Limits = LIMITS
) -> Iterator[tuple[int, dict[str, Any] | Unfit]]:
    r"""Yield the rows of a table, numbered from 1.

    texts: parts of the UTF-8 text in order.
    path: the file.
    corpus: whose rows they are.
    limits: `line_bytes` and `values` count for a row, `rows` for their number.

    The first row names the columns, blanks around a name are no part of it; of cells they are. An
    empty cell is None. The cells of a CSV are between `delimiter_of` its first line. Where the file
    of the corpus has `headerless` for the table and the first row names no columns of a form, the
    rows are those of a table without a header; where the rule names a form, each has that name as
    a key, and the name of the file as its value.
    Raises BadInput for a header that is none, and for text that is no CSV.
    """
    found = lines(texts, path, limits)
    first = next(found, b"")
    delimiter, is_marked = delimiter_of(first, path)
    found = found if is_marked else chain([first], found)
    rule = _headerless(first, path, corpus, delimiter)
    if rule is None:
        yield from _table_rows(found, path, delimiter, limits, corpus)
    elif delimiter == "\t":
        yield from _headerless_rows(found, path, rule)
    else:
        yield from _table_rows(found, path, delimiter, limits, corpus, rule["columns"])


def delimiter_of(first: bytes, path: Path) -> tuple[str, bool]:
    """What divides the cells of a table, and whether its first line says nothing else.

    first: the line. A CSV without a comma there may have semicolons, tabs or bars, and `sep=;`.
    """
    if (kind(path.name) or ("", ""))[0] == "tsv":
        return "\t", False
    if marked := _MARKED.fullmatch(first):
        return marked[1].decode(), True
    bare = _QUOTED.sub(b"", first)
    counts = {mark: bare.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    return "," if counts[","] else max(counts, key=lambda mark: counts[mark]), False


def _headerless(
    first: bytes, path: Path, corpus: Corpus, delimiter: str
) -> Mapping[str, Any] | None:
    """The rule for tables without names of columns, where this is one. first: its first line."""
    rule = corpus.headerless
    if rule is None or not fnmatchcase(path.name.lower(), rule["files"].lower()):
        return None
    return None if _is_header(first, corpus, delimiter.encode()) else rule


def _is_header(line: bytes, corpus: Corpus, delimiter: bytes) -> bool:
    if line.count(delimiter) >= _MOST_COLUMNS:
        return False
    names = {cell.strip(b'" \r\n') for cell in line.split(delimiter)}
    return any(
        {str(form.values.get(role)).encode() for role in ("question", "answer")} <= names
        for form in corpus.forms
    )


def _headerless_rows(
    found: Iterator[bytes], path: Path, rule: Mapping[str, Any]
) -> Iterator[tuple[int, dict[str, Any] | Unfit]]:
    names, newline = rule["columns"], rule.get("newline")
    more = {rule["form"]: named(path) or None} if "form" in rule else {}
    for number, line in enumerate(found, 1):
        if not line or line.isspace():
            continue
        try:
            text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            yield number, Unfit("utf8", f"is not UTF-8: {error}")
            continue
        columns = text.count("\t") + 1
        if columns != len(names):
            wrong = f"has {columns} columns where {len(names)} are expected"
            yield number, Unfit("columns", wrong)
            continue
        values = text.split("\t")
        if newline is not None:
            values = [cell.replace(newline, "\n") for cell in values]
        yield number, {**more, **dict(zip(names, values, strict=True))}


def named(path: Path) -> str:
    """The name of a file without its endings and the words of splits."""
    return "_".join(word for word in words(path.name) if word not in SPLIT_WORDS)


def _table_rows(
    found: Iterator[bytes],
    path: Path,
    delimiter: str,
    limits: Limits,
    corpus: Corpus,
    names: Sequence[str] | None = None,
) -> Iterator[tuple[int, dict[str, Any] | Unfit]]:
    """The rows of a table. names: of its columns; None: its first row has them."""
    csv.field_size_limit(limits.line_bytes)
    decoder = _Decoder(found, path, delimiter, limits)
    reader = _reader(decoder, delimiter, corpus)
    is_checked = corpus.quotes is None and not corpus.is_built_in
    least = 1 if delimiter == "\t" else _TAKEN + 1
    header, number = names, int(names is not None)
    while True:
        decoder.begin(number)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            rule = f'is no table: {error}: in quotes a quote is written twice, as ""; {_NO_QUOTES}'
            if "new-line character" in str(error):
                rule = "a cell that is not in quotes holds a CR: write such cells in quotes"
            raise BadInput(path, rule, number or None) from error
        if not cells:
            continue
        if header is None:
            header = _header(cells, path)
            number = 1
            continue
        if len(cells) != len(header):
            where = "the header has" if names is None else "`headerless` names"
            rule = f"has {len(cells)} columns where {where} {len(header)}"
            yield number, Unfit("columns", rule)
        elif decoder.is_broken:
            yield number, Unfit("utf8", "is not UTF-8")
        elif (
            is_checked
            and decoder.lines > least
            and (held := _holding_rows(header, cells, delimiter)) is not None
        ):
            what = {"\t": "a tab"}.get(delimiter, repr(delimiter))
            rule = f"its {held[:_SHOWN]} holds {what} and a line end, as where a quote takes rows"
            yield number, Unfit("columns", f"{rule}: {_NO_QUOTES}; quotes = true reads it so")
        else:
            yield number, {name: cell or None for name, cell in zip(header, cells, strict=True)}
        number += 1


def _reader(found: Iterator[str], delimiter: str, corpus: Corpus) -> Iterator[list[str]]:
    """What divides lines at a delimiter; a quote is a character as any other where they are off."""
    quoting: Any = csv.QUOTE_NONE if corpus.quotes is False else csv.QUOTE_MINIMAL
    return csv.reader(found, delimiter=delimiter, strict=True, quoting=quoting)


def _holding_rows(names: Sequence[str], cells: Sequence[str], delimiter: str) -> str | None:
    """The first column whose cell may hold rows that an open quote took; None where none does.

    In a table with tabs such a cell has a tab and a line end. Text has other delimiters, too: there
    the cell has five whole lines, and each has as many as a row.
    """
    for name, cell in zip(names, cells, strict=True):
        if delimiter in cell and "\n" in cell:
            whole = cell.split("\n")[1:-1]
            counts = {line.count(delimiter) for line in whole}
            are_rows = len(whole) >= _TAKEN and counts == {len(names) - 1} != {1}
            if delimiter == "\t" or are_rows:
                return name
    return None


def _header(cells: Sequence[str], path: Path) -> Sequence[str]:
    if len(cells) > _MOST_COLUMNS:
        raise BadInput(path, f"has more than {_MOST_COLUMNS:,} columns")
    stripped = [cell.strip() for cell in cells]
    # As in `question, answer`. Two names that differ in blanks alone stay two. Columns without a
    # name, as of an index or behind a last comma, are several, and nothing reads them.
    named_cells = [cell for cell in stripped if cell]
    if len(set(named_cells)) == len(named_cells):
        return stripped
    if len(set(cells)) < len(cells):
        repeated, _ = Counter(cells).most_common(1)[0]
        rule = f"has the column {repeated[:_SHOWN]!r} twice: the first row must name columns"
        raise BadInput(path, rule)
    return cells


class _Decoder:
    """The lines of a table as text, with bounds on the bytes and the cells of one row."""

    def __init__(self, found: Iterator[bytes], path: Path, delimiter: str, limits: Limits) -> None:
        self._found, self._path, self._limits = found, path, limits
        self._delimiter = delimiter.encode()
        self._size = self._row = self._cells = self.lines = 0
        self.is_broken = False

    def begin(self, row: int) -> None:
        self._size, self._cells, self._row, self.is_broken = 0, 0, row, False
        self.lines = 0

    def __iter__(self) -> _Decoder:
        return self

    def __next__(self) -> str:
        line = next(self._found)
        self.lines += 1
        self._size += len(line)
        if self._size > self._limits.line_bytes:
            rule = f"a row of more than {self._limits.line_bytes:,} bytes: is a quote not closed? "
            rule += _NO_QUOTES
            raise BadInput(self._path, rule, self._row or None)
        self._cells += line.count(self._delimiter)
        if self._cells > self._limits.values:
            rule = (
                f"a row with more than {self._limits.values:,} delimiters, those in quotes included"
            )
            raise BadInput(self._path, rule, self._row or None)
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self.is_broken = True
            return line.decode("utf-8", "replace")


def places(texts: Iterable[bytes], path: Path, corpus: Corpus) -> Iterator[tuple[int, int]]:
    """Where each row of a table begins and ends in its text, in bytes, without the line's end.

    texts, path, corpus: as for `rows`.
    """
    found = lines(texts, path)
    first = next(found, b"")
    delimiter, is_marked = delimiter_of(first, path)
    rule = _headerless(first, path, corpus, delimiter)
    if rule is not None and delimiter == "\t":
        yield from line_places(chain([first], found), path)
        return
    counted = _Counted(found if is_marked else chain([first], found))
    counted.size = len(first) if is_marked else 0
    csv.field_size_limit(LIMITS.line_bytes)
    reader = _reader(counted, delimiter, corpus)
    number = 0 if rule is None else 1
    while True:
        begin = counted.size
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise BadInput(path, f"is no table: {error}", number or None) from error
        if cells is None:
            return
        if cells and number:
            yield begin, counted.size - counted.end
        number += bool(cells)


class _Counted:
    """Lines as text. size: bytes of those that were taken; end: those of the last one's end."""

    def __init__(self, found: Iterator[bytes]) -> None:
        self._found = found
        self.size = self.end = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        line = next(self._found)
        self.size += len(line)
        self.end = len(line) - len(line.rstrip(b"\r\n"))
        return line.decode("utf-8", "replace")
