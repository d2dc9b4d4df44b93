"""Games that the compiled reader took, and the arrays that it fills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.rows import KNOWN


@dataclass
class Batch:
    """Games that the compiled reader took, in file order (columns: `kernels.scan`).

    base: byte offset of `buf` in the file.
    buf: bytes of the games.
    games: numbers and places of each game, int64 [games, `scan.COLUMNS`].
    known: places of the tags of `rows.KNOWN`, int64 [games, len(KNOWN), 2]; -1 for none.
    tags: places of all tags, int64 [tags, 4].
    moves: packed moves, game after game; uint16 [plies].
    phases: phase codes, game after game; uint8 [plies].
    text: JSON of headers and moves, game after game.
    uci: fields of the game id and moves joined by spaces, game after game.
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

        n, position, why = scan.scan_games(
            self.buf,
            size,
            at_eof,
            current,
            pos,
            stop,
            self.games,
            self.known,
            self.tags,
            self.moves,
            self.phases,
            self.text,
            self.board,
        )
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
