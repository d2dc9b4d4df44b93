"""Law of the PGN behind validated games: no game of it is passed over in silence.

It looks at the bytes of the PGN alone, and shares no code with the readers.
Source: docs/formats/chess.md#event-line-law
"""

from __future__ import annotations

import csv
import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format import folders
from gristmill.chess.format.folders import INVALID
from gristmill.chess.laws.files import law, open_csv, read_json
from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.laws import Few

_EVENT, _MARK = b"[Event ", b"\xef\xbb\xbf"
_WINDOW = 4 << 20
_RECORDS = 1 << 16
_LINE_END = re.compile(rb"\r\n|\n|\r")
# Outside a comment: what begins one, and lines and rests of lines that are no movetext.
_MARKUP = re.compile(rb"\{|;[^\r\n]*|(?<=[\r\n])%[^\r\n]*")


@law
def event_line_laws(subject: Subject) -> Iterator[Violation]:
    """Check that every line of the PGN that begins with `[Event ` belongs to a game.

    The line starts a game that was read or rejected, is one of its tags, lies in a closed
    comment of it, or follows no blank line in its movetext. Memory does not grow with the PGN.

    subject: validated in the mode `current`; its input is the folder of the PGNs, which are not
        compared where they have other sizes than `sources.json` records.

    Yields the violation `event_line_accounted` for the first 20 lines of a PGN without a game.
    """
    path, (pgn_folder,) = subject.folder, subject.inputs
    recorded, faults = read_json(folders.sources_file(path))
    yield from faults
    pgns = sorted(pgn_folder.glob("*.pgn"))
    sources = recorded.get("sources", ())
    if [source["bytes"] for source in sources] != [pgn.stat().st_size for pgn in pgns]:
        return
    for number, (pgn, source) in enumerate(zip(pgns, sources, strict=True)):
        few = Few(pgn.name, "{more} more lines belong to no game")
        games = _Recorded(path, number, source["name"])
        with pgn.open("rb", buffering=0) as file:
            for offset, found in _lines_without_game(file.fileno(), source["bytes"], games):
                yield from few.at("event_line_accounted", f"{pgn.name}: byte {offset}", found)
        yield from few.rest()


@dataclass(frozen=True)
class _Recorded:
    """The games of one PGN in a validated folder. number: of the PGN. source: its `source_file`."""

    path: Path
    number: int
    source: str

    def valid(self) -> tuple[Path, int, int]:
        """The file of the records, and which of them are of the PGN: the first, the one behind."""
        file = folders.games_file(self.path, "games")
        count = file.stat().st_size // folders.GAME.itemsize

        def of(record: int) -> int:
            (found,) = np.fromfile(file, folders.GAME, 1, offset=record * folders.GAME.itemsize)
            return int(found["file"])

        first, behind = (bisect_left(range(count), self.number + more, key=of) for more in (0, 1))
        return file, first, behind

    def rejected(self) -> Iterator[int]:
        """Byte offsets of the rejected games."""
        with open_csv(self.path / INVALID) as table:
            for row in csv.DictReader(table):
                if row["source_file"] == self.source:
                    yield int(row["pgn_offset"])


@dataclass(frozen=True)
class _Games:
    """Games that begin in a stretch of the PGN; a rejected one ends where the next starts."""

    start: int
    stop: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def _stretches(recorded: _Recorded, size: int) -> Iterator[_Games]:
    """The games of a PGN, valid and rejected, some records at a time."""
    file, first, behind = recorded.valid()
    rejected = np.sort(np.fromiter(recorded.rejected(), np.int64))
    start = 0
    while start < size:
        # One record more than wanted: where it begins, the next stretch does.
        place, most = first * folders.GAME.itemsize, min(_RECORDS + 1, behind - first)
        records = np.fromfile(file, folders.GAME, most, offset=place)
        stop = int(records["pgn"][-1]) if len(records) > _RECORDS else size
        records = records[:_RECORDS]
        valid = records["pgn"].astype(np.int64)
        others = rejected[slice(*np.searchsorted(rejected, [start, stop]))]
        starts = np.concatenate([valid, others])
        ends = np.concatenate([valid + records["size"], np.full(len(others), stop)])
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        yield _Games(start, stop, starts, np.minimum(ends, np.append(starts[1:], stop)))
        start, first = stop, first + _RECORDS


def _lines_without_game(file: int, size: int, recorded: _Recorded) -> Iterator[tuple[int, str]]:
    """Byte offset of each line that belongs to no game, and why."""
    for games in _stretches(recorded, size):
        for game, pairs in groupby(_inner_lines(file, games), itemgetter(0)):
            lines = [line for _, line in pairs]
            if game < 0:
                yield from ((line, "no game begins here or before it") for line in lines)
            else:
                start, end = int(games.starts[game]), int(games.ends[game])
                yield from _outside(os.pread(file, end - start, start), start, lines)


def _inner_lines(file: int, games: _Games) -> Iterator[tuple[int, int]]:
    """(number of the last game before it, -1 for none; byte offset) of lines that start no game."""
    starts = np.append(games.starts, -1)
    for lines in _event_lines(file, games.start, games.stop):
        before = np.searchsorted(games.starts, lines, "right") - 1
        inner = starts[before] != lines
        yield from zip(before[inner].tolist(), lines[inner].tolist(), strict=True)


def _event_lines(file: int, start: int, stop: int) -> Iterator[NDArray[np.int64]]:
    """Byte offsets of the lines in [start, stop) that begin with `[Event `, window by window."""
    margin = len(_MARK) + 1
    for at in range(start, stop, _WINDOW):
        base = max(at - margin, 0)
        limit = min(at + _WINDOW, stop)
        data = os.pread(file, limit + len(_MARK + _EVENT) - base, base)
        lines = []
        found = data.find(_EVENT)
        while found >= 0:
            marked = data[max(found - len(_MARK), 0) : found] == _MARK
            line = found - len(_MARK) * marked
            begins = base + line == 0 or (line > 0 and data[line - 1] in b"\r\n")
            if begins and at <= base + line < limit:
                lines.append(base + line)
            found = data.find(_EVENT, found + 1)
        yield np.array(lines, np.int64)


def _outside(text: bytes, start: int, lines: list[int]) -> Iterator[tuple[int, str]]:
    """Those of the lines that do not belong to the game `text`, which begins at `start`."""
    movetext = _end_of_tags(text)
    comments = _comments(text, movetext)
    opened, closed = next(comments, (len(text), len(text)))
    for line in lines:
        at = line - start
        while closed is not None and closed <= at < len(text):
            opened, closed = next(comments, (len(text), len(text)))
        if at >= len(text):
            yield line, f"it lies behind the game at byte {start}, and starts none"
        elif _follows_blank(text, at) and (at >= movetext or _has_event(text[:at])):
            yield line, f"it follows a blank line of the game at byte {start}, and starts none"
        elif closed is None and opened < at:
            yield line, f"it lies in an unclosed comment of the game at byte {start}"


def _has_event(tags: bytes) -> bool:
    """Whether a line of the tags begins with `[Event `: behind a blank line none may follow it."""
    return re.search(rb"(?:\A|[\r\n])(?:\xef\xbb\xbf)?\[Event ", tags) is not None


def _follows_blank(text: bytes, at: int) -> bool:
    """Whether the line before the one at `at` holds at most spaces and tabs."""
    at -= 2 if text[max(at - 2, 0) : at] == b"\r\n" else 1
    while at > 0 and text[at - 1] in b" \t":
        at -= 1
    return at > 0 and text[at - 1] in b"\r\n"


def _end_of_tags(text: bytes) -> int:
    """The position of the first line of movetext: blank lines and comments may lie before it."""
    at = 0
    while at < len(text):
        found = _LINE_END.search(text, at)
        end = found.end() if found else len(text)
        line = text[at:end].decode("utf-8", "replace").removeprefix("\ufeff")
        if not (line.isspace() or line.startswith(("[", "%", ";"))):
            return at
        at = end
    return at


def _comments(text: bytes, at: int) -> Iterator[tuple[int, int | None]]:
    """(start, end) of the comments in braces from `at` on; None for an end that is missing."""
    while found := _MARKUP.search(text, at):
        at = found.end()
        if found[0] == b"{":
            closed = text.find(b"}", at)
            if closed < 0:
                yield found.start(), None
                return
            yield found.start(), closed + 1
            at = closed + 1
