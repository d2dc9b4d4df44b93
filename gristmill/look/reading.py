"""Reads what a look needs of files: heads, tails, footers; or everything."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput, GristmillError, os_reason
from gristmill.corpora.account import Columns, counted, headless, of_parquet, spaced
from gristmill.corpora.corpus import corpus_of_table
from gristmill.corpora.raw import parquet
from gristmill.corpora.raw.chat.marks import message_keys
from gristmill.corpora.raw.drops import kind
from gristmill.corpora.raw.rows import held_under, rows
from gristmill.corpora.raw.texts import CURES, Unfit
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.walk import is_hidden, list_files

TOKENIZER: Final = {"model", "added_tokens"}
"""Keys of a `tokenizer.json`, which holds no rows."""
FILES: Final = 200
"""Data files that are opened, evenly spaced, where not everything is read."""
_ROWS: Final = 2000
_LEAST_ROWS: Final = 10
_WHOLE_BYTES: Final = 24 << 20
_SAMPLE_BYTES: Final = 2 << 20
_KEPT_BYTES: Final = 64 << 20
_TAIL: Final = 1 << 16
_MOST_ALIKE: Final = 4
"""Parquet files with the same columns, of which rows are read where not everything is."""
_MOST_NOTES: Final = 5
_MOST_KEYS: Final = 5_000_000
_CURES: Final = {**CURES, "utf8": "save the file as UTF-8"}


@dataclass
class FileLook:
    """What was found in a data file. name: POSIX path in the folder. size: bytes.

    rows: that were read, or that its footer says; estimated where `is_exact` is False.
    sample: some of these rows; numbers: which. damage: what is wrong with rows or the file.
    headerless: what a recipe says of a table without a header, but for its files; else empty.
    """

    name: str
    size: int
    rows: int = 0
    is_exact: bool = False
    is_read: bool = False
    sample: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    is_broken: bool = False
    headerless: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Reading:
    """What was found in a folder, or in one file. refused: files, and why nothing reads them.

    others: sizes of files that hold no rows. columns: of the rows that were read.
    """

    path: Path
    root: Path
    files: list[FileLook] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    columns: Columns = field(default_factory=Columns)


def listed(path: Path, links: LinkRule) -> Reading:
    """The files of a folder, or one file, but for hidden ones; none is opened.

    path: absolute. Raises GristmillError where the folder itself cannot be read.
    """
    found = Reading(path, path if path.is_dir() else path.parent)
    entries: list[tuple[str, int, str | None]] = []
    try:
        if path.is_dir():
            walked = list_files(path, root=path, links=links, enter=lambda n: not is_hidden(n))
            entries = sorted((each.name, each.stat.st_size, each.refusal) for each in walked)
        else:
            entries.append((path.name, path.stat().st_size, None))
    except OSError as error:
        raise BadInput(path, _rule(error)) from error
    for name, size, refusal in entries:
        if is_hidden(name):
            continue
        if refusal is not None:
            found.refused[name] = refusal
        elif kind(name.rpartition("/")[2]) is None:
            found.others[name] = size
        else:
            found.files.append(FileLook(name, size))
    return found


def read_rows(found: Reading, links: LinkRule, *, is_all: bool = False) -> None:
    """Look into the data files of a reading, and put what is found there into it.

    is_all: whether every row is read and counted; default False: of the smallest files, 24 MiB
        together, all rows are read, of the others head, tail and footer.
    Memory: 64 MiB of rows, and 100 bytes for each of the first 5,000,000.
    """
    left, whole = _WHOLE_BYTES, set[str]()  # the smallest ones, packed ones for eight times theirs
    for file in sorted(found.files, key=lambda each: (each.size, each.name)):
        _, packing = kind(file.name.rpartition("/")[2]) or ("", "")
        left -= file.size * (8 if packing or file.name.lower().endswith(".parquet") else 1)
        if is_all or left >= 0:
            whole.add(file.name)
    chosen = spaced(found.files, len(found.files) if is_all else FILES)
    paths = [found.root / each.name for each in chosen if each.name.lower().endswith(".parquet")]
    footers = of_parquet(parquet.footers, paths, links) if paths else {}
    count = max(_LEAST_ROWS, _ROWS // max(len(chosen), 1))
    seen = _Seen(count, is_all, footers, found.columns)
    for file in chosen:
        try:
            _read_file(found.root, file, links, file.name in whole, seen)
        except (GristmillError, OSError) as error:
            file.damage.append(_rule(error))
            file.is_broken = True
    if not is_all:
        found.columns = counted(row for file in found.files for row in file.sample)
    if seen.again:
        found.notes.append(f"{seen.again:,} of {seen.rows:,} rows read are equal to an earlier one")


@dataclass
class _Seen:
    """What was read of all files. again: rows that had been there before, by a hash of 64 bits."""

    count: int
    is_all: bool
    footers: Mapping[Path, Any]
    columns: Columns
    rows: int = 0
    again: int = 0
    kept_bytes: int = _KEPT_BYTES
    alike: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _keys: set[bytes] = field(default_factory=set)

    def add(self, octets: bytes) -> None:
        self.rows += 1
        key = hashlib.blake2b(octets, digest_size=8).digest()
        if key in self._keys:
            self.again += 1
        elif len(self._keys) < _MOST_KEYS:
            self._keys.add(key)

    def footer(self, path: Path) -> Any:
        """Names of columns, those of bytes, and the number of rows. Raises for a bad file."""
        found = self.footers[path]
        if isinstance(found, Exception | str):
            raise BadInput(path, found) if isinstance(found, str) else found
        return found


def _read_file(root: Path, file: FileLook, links: LinkRule, is_whole: bool, seen: _Seen) -> None:
    path, left, count, size = root / file.name, _SAMPLE_BYTES, seen.count, 0
    file.is_read = True
    ending, _ = kind(path.name) or ("", "")
    rows_said: int | None = None
    names: list[str] = []
    if ending == "parquet":
        every, binary, rows_said = seen.footer(path)
        if binary:
            file.damage.append(f"{', '.join(binary)}: bytes, not read: write texts as strings")
        if not is_whole and seen.alike[tuple(every)] >= _MOST_ALIKE:
            return _count(path, links, file, rows_said, 0)
        seen.alike[tuple(every)] += 1
        names = [name for name in every if name not in binary]
    bare = headless(path, ending, links) if ending in ("csv", "tsv") else None
    file.headerless = bare or {}
    # A corpus that reads columns, so that its reader gives them.
    form = {"name": "any", "when": ["question"] if bare else names, "question": {"constant": ""}}
    table: dict[str, Any] = {"headerless": {"files": "*", **bare}} if bare else {}
    table |= {"name": "any", "files": {"train": "*"}, "form": [form]}
    found = rows(path, corpus_of_table(table), links)
    for number, row in found if is_whole else islice(found, count):
        if isinstance(row, Unfit):
            if len(file.damage) < _MOST_NOTES:
                cure = _CURES.get(row.reason, "")
                file.damage.append(f"row {number}: {row.rule}{cure and f': {cure}'}")
            continue
        try:
            octets = orjson.dumps(row)
        except TypeError:  # numbers of more than 64 bits, lone surrogates
            octets = json.dumps(row).encode()
        size += len(octets)
        file.rows += 1
        if seen.is_all:
            seen.columns.add(row)
        if any(value is not None for value in row.values()):
            seen.add(octets)
        left -= min(len(octets), _SAMPLE_BYTES // _LEAST_ROWS)
        if len(file.sample) < count and left >= 0 and seen.kept_bytes > 0:
            file.sample.append(row)
            file.numbers.append(number)
            seen.kept_bytes -= len(octets)
        if left < 0 and not is_whole:
            break
    else:
        file.is_exact = is_whole or file.rows < count
    return _count(path, links, file, rows_said, size)


def _count(path: Path, links: LinkRule, file: FileLook, footer: int | None, size: int) -> None:
    """Say how many rows a file has, and what is wrong with it as a whole."""
    ending, packing = kind(path.name) or ("", "")
    row = file.sample[0] if file.rows == 1 and ending == "json" and file.sample else {}
    talks = [name for name, value in row.items() if message_keys(value) is not None]
    if not {*row} >= TOKENIZER and (rule := held_under(row, talks)):
        file.damage.append(rule)
        file.is_broken, file.sample = True, []
    if footer is not None:
        file.rows, file.is_exact = footer, True
    elif not file.is_exact:
        file.rows = round(file.rows * file.size / max(size, 1)) * (4 if packing else 1)
        if ending in ("jsonl", "ndjson") and not packing:
            with open_file(path, root=path.parent, links=links, buffering=0) as opened_file:
                opened_file.seek(max(file.size - _TAIL, 0))
                tail = opened_file.read(_TAIL).rstrip()
            last = tail.rpartition(b"\n")[2]
            try:  # a row that is longer than the tail says nothing
                json.loads(last if len(last) < len(tail) else "0")
            except ValueError:
                file.damage.append("its last line is no JSON: was it cut? get it again")
                file.is_broken = True
    if not file.rows and not file.damage:
        file.damage.append("holds no row")
    file.is_broken = file.is_broken or not file.rows


def shortened(notes: Sequence[str]) -> list[str]:
    """The first notes of one kind, and how many more there are."""
    more = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], *([f"{more:,} more notes like this one"] if more > 0 else [])]


def _rule(error: Exception) -> str:
    if isinstance(error, BadInput):
        return f"row {error.row}: {error.rule}" if error.row else error.rule
    return f"cannot be read: {os_reason(error)}" if isinstance(error, OSError) else str(error)
