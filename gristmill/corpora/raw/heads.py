"""The first rows of the files of a drop, and what its recipe does with each of their columns.

Source: `docs/formats/reasoning.md#accounts`.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from gristmill.contract import GristmillError
from gristmill.corpora.account import Head, Row, states_of
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw import parquet
from gristmill.corpora.raw.chat import messages as chats
from gristmill.corpora.raw.chat.lists import message_list
from gristmill.corpora.raw.chat.messages import GUESSED, Messages, chat_of, of_messages
from gristmill.corpora.raw.chat.recipe import Chat, chat_of_table
from gristmill.corpora.raw.corpus_file import checked, columns_by_key
from gristmill.corpora.raw.drops import corpus_of, kind
from gristmill.corpora.raw.reader import ignored_by
from gristmill.corpora.raw.rows import rows, unpacked
from gristmill.corpora.raw.tables import delimiter_of
from gristmill.corpora.raw.texts import Unfit
from gristmill.inbox.listing import Account, ColumnState
from gristmill.untrusted import child
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import HEAD_BYTES
from gristmill.untrusted.lines import lines

_FILES: Final = 8
"""Files of a split of which rows are looked at, evenly spaced."""
_ROWS: Final = 2000
"""Rows that are looked at, of all files together."""
_LEAST_ROWS: Final = 100
"""Rows of each file, where it has them."""
_SECONDS: Final = 120
T = TypeVar("T")
_COUNTED: Final = "unknown_keys/"
_OF_MESSAGES: Final = "ignored/"
_NO_COUNTS: Final[Mapping[str, float]] = {}


def corpus_columns(
    drop: Path, links: LinkRule, account: Account, counts: Mapping[str, float] = _NO_COUNTS
) -> list[ColumnState]:
    """What becomes of the columns of a drop of a corpus.

    drop: that is not refused. account: whose files are looked at. counts: of a build of these
    files, as its record has them; default: it is not built.
    """
    corpus = corpus_of(drop, links)
    read = columns_by_key(corpus)
    found = _heads(drop, corpus, [*read], links, account)
    return states_of(found, read, ignored_by(corpus), _named(counts, _COUNTED))


def chat_columns(
    drop: Path, links: LinkRule, account: Account, counts: Mapping[str, float] = _NO_COUNTS
) -> list[ColumnState]:
    """As `corpus_columns`, of a drop of conversations; keys of messages are `messages[].name`."""
    chat = chat_of(drop, links)
    found = _heads(drop, chat.corpus, Messages(chat).columns, links, account)
    return _of_chat(chat, found, counts)


def columns_of_recipe(raw: Mapping[str, Any], heads: Sequence[Head]) -> list[ColumnState]:
    """What a recipe does with the columns of rows. raw: its table, which is right."""
    if raw.get("kind") == "chat":
        return _of_chat(chat_of_table(raw), heads, _NO_COUNTS)
    corpus = checked(raw, raw["name"])
    return states_of(heads, columns_by_key(corpus), ignored_by(corpus))


def _named(counts: Mapping[str, float], group: str) -> dict[str, int]:
    return {
        name.removeprefix(group): int(count)
        for name, count in counts.items()
        if name.startswith(group)
    }


def _of_chat(chat: Chat, heads: Sequence[Head], counts: Mapping[str, float]) -> list[ColumnState]:
    messages, begin = Messages(chat), of_messages(chat)
    ignored = [name for name in ignored_by(chat.corpus) if not name.startswith(begin)]
    states = states_of(heads, chats.columns_by_key(chat), ignored, _named(counts, _COUNTED))
    of_items = [n.removeprefix(begin) for n in ignored_by(chat.corpus) if n.startswith(begin)]
    unread = {*_named(counts, _OF_MESSAGES), *of_items}
    items: list[Row] = []
    for row in (row for head in heads for row in head.rows):
        with suppress(Unfit, GristmillError):
            unread.update(messages.read(row).ignored)
            items += _items(row, messages.columns)
    read = {name: "messages" for pair in GUESSED for name in pair}
    read |= {name: f"keys.{key}" for key, name in chat.keys.items()}
    known = [{n: v for n, v in item.items() if n in unread or n in read} for item in items]
    found = states_of([Head("", known)], read, of_items, _named(counts, _OF_MESSAGES))
    return [*states, *(replace(each, name=begin + each.name) for each in found)]


def _items(row: Row, columns: Collection[str]) -> Iterator[Row]:
    """The objects in the lists of a row that the recipe reads: its messages, and turns of them."""
    for name in columns:
        with suppress(GristmillError, TypeError):
            value = message_list(row.get(name))
            yield from (each for each in value or () if isinstance(each, dict))


def _heads(
    drop: Path, corpus: Corpus, read: Collection[str], links: LinkRule, account: Account
) -> list[Head]:
    """The first rows of files of each split; none of a file that cannot be read."""
    chosen = [
        (split, drop / name)
        for split, names in account.taken.items()
        for name in spaced(names)
        if kind(name.rpartition("/")[2]) is not None
    ]
    tables = [path for _, path in chosen if path.name.lower().endswith(".parquet")]
    count = max(_ROWS // max(len(chosen), 1), _LEAST_ROWS)
    known = rows_of_parquet(dict.fromkeys(tables), links, count)
    found = []
    for split, path in chosen:
        own = known.get(path)
        if own is None:
            own = [*_first(rows(path, corpus, links, columns=read), count)]
        found.append(Head(split, own))
    return found


def _first(found: Iterator[tuple[int, Row | Unfit]], count: int) -> Iterator[Row]:
    """Yield the first rows, up to 2 MiB; those before the damage of a file that is damaged."""
    left = parquet.HEAD_ROWS_BYTES
    with suppress(GristmillError, OSError):
        for _, row in islice(found, count):
            if isinstance(row, dict):
                yield row
                left -= sum(len(v) for v in row.values() if isinstance(v, str | list | dict))
                if left < 0:
                    return


def spaced(found: Sequence[T], most: int = _FILES) -> Sequence[T]:
    """Some of what was found, evenly spaced; all of a few."""
    if len(found) <= most:
        return found
    return [found[place * (len(found) - 1) // (most - 1)] for place in range(most)]


def rows_of_parquet(
    paths: Collection[Path], links: LinkRule, count: int = _LEAST_ROWS
) -> dict[Path, list[Row]]:
    """The first rows of Parquet files, of all columns that JSON has; none of damaged files."""
    found = of_parquet(parquet.heads, paths, links, count)
    return {
        path: [parquet.row_of(each) for each in own if isinstance(each, bytes)]
        for path, own in found.items()
        if isinstance(own, list)
    }


def of_parquet(
    work: Callable[..., list[Any]], paths: Collection[Path], links: LinkRule, *more: Any
) -> dict[Path, Any]:
    """What one child process finds in each of some Parquet files; else the error.

    work: what it runs, of `parquet.py`. more: what that takes besides the files.
    """
    good: dict[Path, Any] = {}
    found: dict[Path, Any] = {}
    with ExitStack() as files:
        for path in paths:
            try:
                file = files.enter_context(open_file(path, root=path.parent, links=links))
                parquet.check_begin(os.pread(file.fileno(), HEAD_BYTES, 0), path)
                good[path] = file.fileno()
            except (GristmillError, OSError) as error:
                found[path] = error
        try:
            made = good and child.run(
                work,
                [*good],
                *more,
                file=next(iter(good)),
                descriptors=[*good.values()],
                seconds=_SECONDS + len(good),
            )
            return {**found, **dict(zip(good, made, strict=True))}
        except (GristmillError, OSError) as error:
            if len(good) < 2:
                return {**found, **dict.fromkeys(good, error)}
    for path in good:  # one of them ended the child of all
        found |= of_parquet(work, [path], links, *more)
    return found


_HEADER_CELL: Final = 64
_LINES: Final = 100
"""Lines that the first row of a table may have."""
_NAMES: Final = {"question", "answer", "prompt", "response", "instruction"}
"""Cells of a first line that is no row, whatever the others are."""
_LATEX: Final = re.compile(r"\\(?!n)[A-Za-z]{2}|\\n(?:eq|e|u|abla|ot|i|mid)\b")
_VALUE: Final = re.compile(r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?|.* .*[.?!]", re.DOTALL)


def headless(path: Path, ending: str, links: LinkRule) -> dict[str, Any] | None:
    r"""What a recipe says of a table whose first line is a row, as its cells show; else None.

    A cell of a row is long, ends as a sentence does, or is a number; names may be 0, 1, 2 .. .
    Where the last cell is the letter of one before it, those are choices of a question.
    In a TSV `\n` is a newline, unless its first lines have commands of LaTeX, as `\neq`.
    """
    try:
        with unpacked(path, links) as texts:
            rest = (line.decode("utf-8", "replace") for line in islice(lines(texts, path), _LINES))
            first = next(rest, "").removeprefix("\ufeff")
            delimiter, is_marked = delimiter_of(first.encode(), path)
            if delimiter == "\t":
                cells = first.rstrip("\r\n").split("\t")
            else:  # a cell may have several lines
                cells = next(csv.reader(chain([first], rest), delimiter=delimiter))
            is_row = not _NAMES & {each.lower() for each in cells} and any(
                len(cell) > _HEADER_CELL or _VALUE.fullmatch(cell.strip()) for cell in cells
            )
            is_literal = ending != "tsv" or (
                is_row and any(map(_LATEX.search, chain([first], rest)))
            )
    except (csv.Error, StopIteration):
        return None  # as a table with a header it says what is wrong
    is_numbered = cells == [str(place) for place in range(len(cells))]
    if len(cells) < 2 or is_marked or is_numbered or not is_row:
        return None
    letters = [chr(ord("A") + place) for place in range(len(cells) - 2)]
    more = [f"column_{number}" for number in range(4, len(cells) + 1)]
    names = [*["question", "answer", "rationale"][: len(cells)], *more]
    if len(letters) > 1 and cells[-1].strip() in letters:
        names = ["question", *letters, "answer"]
    return {"columns": names, **({} if is_literal else {"newline": "\\n"})}
