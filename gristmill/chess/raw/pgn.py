"""A PGN file as a stream of games: the compiled reader, and python-chess for the other games.

A file is cut into byte ranges; each owns the games that start in it. Where one range ends the
next must begin, so the games are the same wherever the cuts are. A range bounds the memory.
Source: docs/formats/chess.md#pgn-reading
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.rows import KNOWN
from gristmill.chess.raw import python_chess
from gristmill.chess.raw.pgn_text import GAME_BYTES, with_short_lines
from gristmill.contract import BadInput


@dataclass
class Batch:
    """Games that the compiled reader took, in file order (columns: `kernels.scan`).

    base: byte offset of `buf`, the bytes of the games, in the file.
    games: numbers and places of each game, int64 [games, `scan.COLUMNS`].
    known: places of the tags of `rows.KNOWN`, int64 [games, len(KNOWN), 2]; -1 for none.
    tags: places of all tags, int64 [tags, 4].
    moves, phases: packed moves and phase codes, game after game; [plies].
    text: JSON of headers and moves. uci: fields of the game id and moves joined by spaces.
    """

    base: int
    buf: bytes
    games: NDArray[np.int64]
    known: NDArray[np.int64]
    tags: NDArray[np.int64]
    moves: NDArray[np.uint16]
    phases: NDArray[np.uint8]
    text: bytes
    uci: bytes


class ScanArrays:
    """The arrays of the compiled reader for texts of up to `size` bytes."""

    def __init__(self, size: int) -> None:
        from gristmill.chess.kernels import board, scan

        self.size = size
        self.buf = np.zeros(size + scan.PADDING, np.uint8)
        self.games = np.zeros((size // 64 + 16, scan.COLUMNS), np.int64)
        self.known = np.zeros((size // 64 + 16, len(KNOWN), 2), np.int64)
        self.tags = np.zeros((size // 12 + 64, 4), np.int64)
        self.moves = np.zeros(size // 3 + 64, np.uint16)
        self.phases = np.zeros(size // 3 + 64, np.uint8)
        self.text = (np.zeros(4 * size + 4096, np.uint8), np.zeros(3 * size + 4096, np.uint8))
        self.board = board.new_board()

    def fill(self, data: bytes) -> None:
        """Take a text, with zeros after it."""
        from gristmill.chess.kernels import scan

        self.buf[: len(data)] = np.frombuffer(data, np.uint8)
        self.buf[len(data) : len(data) + scan.PADDING] = 0

    def scan(
        self, size: int, at_eof: bool, current: bool, pos: int, stop: int
    ) -> tuple[int, int, int]:
        """Read games that start in [pos, stop): (games, next position, why it stopped)."""
        from gristmill.chess.kernels import scan

        filled = (self.games, self.known, self.tags, self.moves, self.phases, self.text, self.board)
        n, position, why = scan.scan_games(self.buf, size, at_eof, current, pos, stop, *filled)
        return n, position, why

    def batch(self, data: bytes, base: int, n: int) -> Batch:
        """Copies of what the first `n` games fill."""
        from gristmill.chess.kernels import scan

        games = self.games[:n].copy()
        last: Any = games[-1]
        plies = int(last[scan.MOVE0] + last[scan.PLIES])
        return Batch(
            base,
            data,
            games,
            self.known[:n].copy(),
            self.tags[: int(last[scan.TAG1])].copy(),
            self.moves[:plies].copy(),
            self.phases[:plies].copy(),
            self.text[0][: int(last[scan.LIST1])].tobytes(),
            self.text[1][: int(last[scan.UCI1])].tobytes(),
        )


_BOUNDARY = re.compile(rb"\n[ \t]*\r?\n(?=\[Event )")
_BOUNDARY_OVERLAP = 64
# Bytes read beyond the end of a range, for the game that crosses it.
_SLACK = 1 << 16
# Bytes read at a time: a range in which no game seems to start may be a whole file.
_WINDOW = 4 << 20


@dataclass(frozen=True)
class ByteRange:
    """The games of a PGN file that start in a byte range."""

    path: Path
    start: int
    stop: int


@dataclass
class PlacedGame:
    """One game that python-chess read, with the blank line that ends it."""

    offset: int
    size: int
    game: python_chess.ParsedGame


def plan(path: Path, range_bytes: int) -> list[ByteRange]:
    """Cut a PGN at lines that look like the start of a game; `follow` corrects what is none."""
    size = path.stat().st_size
    cuts = [0]
    with path.open("rb", buffering=0) as file:
        for goal in range(range_bytes, size, range_bytes):
            if goal <= cuts[-1]:
                continue
            cut = _next_boundary(file.fileno(), goal)
            if cut is None:
                break
            cuts.append(cut)
    stops = [*cuts[1:], size]
    return [
        ByteRange(path, start, stop)
        for start, stop in zip(cuts, stops, strict=True)
        if start < stop or size == 0
    ]


def _next_boundary(file: int, at: int) -> int | None:
    """The first offset from `at` on where a game seems to start, None where there is none."""
    while True:
        window = os.pread(file, _SLACK, at)
        if match := _BOUNDARY.search(window):
            return at + match.end()
        if len(window) < _SLACK:
            return None
        # Windows overlap, so that no boundary falls between two.
        at += len(window) - _BOUNDARY_OVERLAP


def _window_games(
    byte_range: ByteRange,
    arrays: ScanArrays,
    data: bytes,
    start: int,
    at_eof: bool,
    current: bool,
) -> Generator[Batch | PlacedGame, None, tuple[int, bool]]:
    """Yield the games of one window; return (position in it, whether the range is done)."""
    from gristmill.chess.kernels import scan

    pos, stop = 0, byte_range.stop - start
    while True:
        n, pos, why = arrays.scan(len(data), at_eof, current, pos, stop)
        if n:
            yield arrays.batch(data, start, n)
        if why in (scan.DONE, scan.CUT):
            return pos, why == scan.DONE
        if why == scan.UNUSUAL_GAME:
            try:
                game, touched_end = python_chess.read_game(data, pos, current=current)
            except ValueError as error:
                # For example a NAG with more digits than Python converts to a number.
                rule = f"the game at byte {start + pos} cannot be read ({error}); take it out"
                raise BadInput(byte_range.path, rule) from error
            if touched_end and not at_eof:
                return pos, False
            if game is None:
                pos = len(data)
            else:
                yield PlacedGame(start + pos, game.end - pos, game)
                pos = game.end


_FREE: Final[list[ScanArrays]] = []
"""Those of the range that was read last, for the next one: new memory costs page faults."""


def read_range(
    byte_range: ByteRange, *, current: bool = True
) -> Iterator[Batch | PlacedGame | int]:
    """Yield the games of a byte range in order, then the offset where the next range must begin.

    current: the rules of the mode `current`; True by default. False lets a comment swallow the
        games up to the next `}`, and two blank lines part tags from moves, as in the original code.
    """
    total = byte_range.path.stat().st_size
    start, slack = byte_range.start, _SLACK
    arrays: ScanArrays | None = None
    with suppress(IndexError):
        arrays = _FREE.pop()
    with byte_range.path.open("rb", buffering=0) as file:
        while True:
            want = min(total, min(byte_range.stop, start + _WINDOW) + slack) - start
            (data,) = with_short_lines(
                [os.pread(file.fileno(), max(want, 0), start)], byte_range.path, start
            )
            at_eof = start + len(data) >= total
            if arrays is None or arrays.size < len(data):
                arrays = None  # the memory of the smaller ones is free first
                arrays = ScanArrays(len(data))
            arrays.fill(data)
            pos, done = yield from _window_games(byte_range, arrays, data, start, at_eof, current)
            if done:
                _FREE[:] = [arrays] if arrays.size <= _WINDOW + 2 * _SLACK else []
                yield start + pos
                return
            if pos == 0 and len(data) > GAME_BYTES:
                rule = f"has no end within {GAME_BYTES} bytes; is a comment left open?"
                raise BadInput(byte_range.path, f"the game at byte {start} {rule}")
            start += pos
            slack = _SLACK if pos else max(2 * slack, len(data))


def follow(expected: int, byte_range: ByteRange) -> ByteRange | None:
    """The byte range as it must be read after the range before it, which ended at `expected`.

    None if the planned range is right; an empty one where the one before has taken all its games.
    """
    if expected == byte_range.start:
        return None
    return ByteRange(byte_range.path, expected, max(byte_range.stop, expected))
