"""PGN files as a stream of games: the compiled scanner, with the oracle for what it leaves.

A file is cut into shares, each of which owns the games that start in its range
of bytes. Where one share ends the next must begin, so the outcome is that of
reading the file from the front, whatever the cuts. Memory is bounded by a share.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.raw import python_chess
from gristmill.contract import BadInput

_BOUNDARY = re.compile(rb"\n[ \t]*\r?\n(?=\[Event )")
_SLACK = 1 << 16
# A share without a line that looks like a game's start may be a whole file; it
# is read by windows all the same.
_WINDOW = 4 << 20
# A single game beyond this is not a game but a broken or hostile file.
MAX_GAME_BYTES = 16 << 20


@dataclass(frozen=True)
class ByteRange:
    """Bytes [start, stop) of PGN file `path`: the games that start there."""

    path: Path
    start: int
    stop: int


@dataclass
class Batch:
    """Games that the scanner took, in file order (columns: `kernels.scan`).

    base: file offset of buf[0]. text and uci hold the JSON and the moves
    joined by spaces; phases one code a ply, games laid end to end.
    """

    base: int
    buf: bytes
    games: NDArray[np.int64]
    known: NDArray[np.int64]
    tags: NDArray[np.int64]
    phases: NDArray[np.uint8]
    text: bytes
    uci: bytes


@dataclass
class PlacedGame:
    """One game that the oracle read: file offset, length in bytes, and what it is."""

    offset: int
    size: int
    game: python_chess.ParsedGame


def plan(path: Path, share_bytes: int) -> list[ByteRange]:
    """Cut a PGN file into shares of about `share_bytes` at lines that look like a game's start.

    The looks may deceive (a comment can hold anything): see `follow`.
    """
    size = path.stat().st_size
    cuts = [0]
    with path.open("rb", buffering=0) as file:
        for goal in range(share_bytes, size, share_bytes):
            if goal <= cuts[-1]:
                continue
            at = goal
            while at < size:
                window = os.pread(file.fileno(), _SLACK, at)
                if match := _BOUNDARY.search(window):
                    cuts.append(at + match.end())
                    break
                # The next window overlaps, so that no boundary falls between two.
                at += max(1, len(window) - 64)
                if len(window) < _SLACK:
                    break
    stops = [*cuts[1:], size]
    return [ByteRange(path, a, b) for a, b in zip(cuts, stops, strict=True) if a < b or size == 0]


class _Arrays:
    """The scanner's output arrays for texts of up to `size` bytes."""

    def __init__(self, size: int) -> None:
        from gristmill.chess.kernels import scan

        self.size = size
        self.buf = np.zeros(size + scan.PADDING, np.uint8)
        self.games = np.zeros((size // 64 + 16, scan.COLUMNS), np.int64)
        self.known = np.zeros((size // 64 + 16, 16, 2), np.int64)
        self.tags = np.zeros((size // 12 + 64, 4), np.int64)
        self.moves = np.zeros(size // 3 + 64, np.uint16)
        self.phases = np.zeros(size // 3 + 64, np.uint8)
        self.text = (np.zeros(4 * size + 4096, np.uint8), np.zeros(3 * size + 4096, np.uint8))
        self.board = scan.new_board()

    def fill(self, data: bytes) -> None:
        self.buf[: len(data)] = np.frombuffer(data, np.uint8)
        self.buf[len(data) : len(data) + 16] = 0


def _batch(arrays: _Arrays, data: bytes, base: int, n: int) -> Batch:
    from gristmill.chess.kernels import scan

    games = arrays.games[:n].copy()
    last: Any = games[-1]
    plies = int(last[scan.MOVE0] + last[scan.PLIES])
    return Batch(
        base,
        data,
        games,
        arrays.known[:n].copy(),
        arrays.tags[: int(last[scan.TAG1])].copy(),
        arrays.phases[:plies].copy(),
        arrays.text[0][: int(last[scan.LIST1])].tobytes(),
        arrays.text[1][: int(last[scan.UCI1])].tobytes(),
    )


def _ask_python_chess(
    path: Path, data: bytes, pos: int, offset: int
) -> tuple[python_chess.ParsedGame | None, bool]:
    """What `oracle.read_game` says, with its failure to read as a BadInput that names the game."""
    try:
        return python_chess.read_game(data, pos)
    except ValueError as error:
        # As for a NAG of more digits than Python makes a number of.
        rule = f"the game at byte {offset} cannot be read ({error}); take it out"
        raise BadInput(path, rule) from error


def read_range(share: ByteRange) -> Iterator[Batch | PlacedGame | int]:
    """Yield the share's games in order, and last the offset where the next share must begin.

    Raises BadInput for a game of more than MAX_GAME_BYTES, or that python-chess fails on.
    """
    from gristmill.chess.kernels import scan

    total = share.path.stat().st_size
    start, slack = share.start, _SLACK
    arrays: _Arrays | None = None
    with share.path.open("rb", buffering=0) as file:
        while True:
            want = min(total, min(share.stop, start + _WINDOW) + slack) - start
            data = os.pread(file.fileno(), max(want, 0), start)
            at_eof = start + len(data) >= total
            if arrays is None or arrays.size < len(data):
                arrays = _Arrays(len(data))
            arrays.fill(data)
            pos, cut = 0, False
            while not cut:
                n, pos, why = scan.scan_games(
                    arrays.buf,
                    len(data),
                    at_eof,
                    pos,
                    share.stop - start,
                    arrays.games,
                    arrays.known,
                    arrays.tags,
                    arrays.moves,
                    arrays.phases,
                    arrays.text,
                    arrays.board,
                )
                if n:
                    yield _batch(arrays, data, start, n)
                if why == scan.DONE:
                    yield start + pos
                    return
                if why == scan.CUT:
                    cut = True
                elif why == scan.UNUSUAL_GAME:
                    game, touched = _ask_python_chess(share.path, data, pos, start + pos)
                    if touched and not at_eof:
                        cut = True
                    elif game is None:
                        pos = len(data)
                    else:
                        yield PlacedGame(start + pos, game.end - pos, game)
                        pos = game.end
            if pos == 0 and len(data) > MAX_GAME_BYTES:
                raise BadInput(
                    share.path,
                    f"the game at byte {start + pos} has no end within {MAX_GAME_BYTES} bytes; "
                    "is a comment left open?",
                )
            start += pos
            slack = _SLACK if pos else slack * 2


def follow(expected: int, share: ByteRange) -> ByteRange | None:
    """The share as it must be read when the one before ended at `expected`.

    None if it is right as it is; an empty share if the one before has taken all of it.
    """
    if expected == share.start:
        return None
    return ByteRange(share.path, expected, max(share.stop, expected))
