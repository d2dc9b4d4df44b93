"""The output of one byte range of a PGN file, collected game by game.

Source: `docs/formats/chess.md#rejected-games`, `docs/formats/chess.md#flagged-games`,
`docs/formats/chess.md#games-outside-the-month`.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows
from gristmill.chess.format.sidecar import GAME
from gristmill.chess.raw.pgn import ByteRange
from gristmill.run.part_streams import Made

PLIES_BIN = 10


@dataclass(frozen=True)
class RangeTask:
    """A byte range of a PGN file to validate.

    range: the byte range.
    file: number of the file among the inputs, from 0.
    source: text for `source_file`.
    config: of the validation.
    month: that the file's name has, as dates begin (`2024.01`); empty for none.
    """

    range: ByteRange
    file: int
    source: str
    config: ValidateConfig
    month: str = ""

    @property
    def size(self) -> int:
        """Bytes of the range."""
        return self.range.stop - self.range.start


@dataclass
class RangeOutput:
    """The output of a byte range so far.

    task: the byte range.
    rows: lines of valid_games.jsonl.
    records: game records as bytes, some games at a time.
    phases: phase codes as bytes, some games at a time.
    moves: packed moves as bytes, some games at a time.
    counts: number by name, such as `total` or `reason.too_short`.
    openings: games, White wins, draws, Black wins and the opening's name, by ECO code.
    outside: tag, value and byte offset of the first game whose date is not in the month.
    row_bytes: bytes of `rows`.
    """

    task: RangeTask
    rows: list[bytes] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    phases: list[bytes] = field(default_factory=list)
    moves: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    openings: dict[str, list[Any]] = field(default_factory=dict)
    outside: list[Any] = field(default_factory=list)
    row_bytes: int = 0

    def __post_init__(self) -> None:
        self._invalid = io.StringIO()
        self.invalid = csv.writer(self._invalid)
        self._flagged = io.StringIO()
        self.flagged = csv.writer(self._flagged)
        self.reference = self.task.config.compat == "reference"

    def reject(
        self, game_id: str, reason: str, ply: int, result: str, error: str, offset: int
    ) -> None:
        """Add a line to invalid_games.csv.

        game_id: id of the game; empty where it has none.
        reason: one of docs/formats/chess.md#reasons.
        ply: the offending ply, from 0.
        result: the tag `Result`.
        error: text that says more than the reason; may be empty.
        offset: byte offset of the game in its PGN.
        """
        row: list[Any] = [game_id, self.task.source, reason, ply, result]
        self.invalid.writerow(row if self.reference else [*row, error, offset])
        self.counts[f"reason.{reason}"] += 1

    def flag(self, game_id: str, flags: int, result: str, detail: str, offset: int) -> None:
        """Add a line to flagged_games.csv for each flag of a valid game.

        game_id: id of the game.
        flags: bits of docs/formats/chess.md#flags.
        result: the tag `Result`.
        detail: text of the column `detail`.
        offset: byte offset of the game in its PGN.
        """
        for bit, name in rows.FLAGS.items():
            if flags & bit:
                self.counts[f"flag.{name}"] += 1
                self.flagged.writerow([game_id, self.task.source, name, result, detail, offset])

    def date(self, utc_date: str, date: str, offset: int) -> None:
        """Count a valid game if it has a date that is not in the month of its file.

        utc_date: the tag `UTCDate`; empty where it is missing.
        date: the tag `Date`; empty where it is missing.
        offset: byte offset of the game in its PGN.
        """
        day = rows.day_of(utc_date, date)
        if self.task.month and day and not day[1].startswith(f"{self.task.month}."):
            self.counts["outside_month"] += 1
            self.outside = self.outside or [*day, offset]

    def keep(self, valid: list[bytes], records: NDArray[np.void]) -> None:
        """Add valid rows.

        valid: lines of valid_games.jsonl.
        records: game records of the rows; their field `row` is set here.
        """
        lengths = np.array([len(row) for row in valid], dtype=np.uint64)
        records["row"] = np.cumsum(lengths) - lengths + np.uint64(self.row_bytes)
        self.rows += valid
        self.row_bytes += int(lengths.sum())
        self.records.append(records.tobytes())

    def opening(self, code: str, name: str, winners: Sequence[int]) -> None:
        """Count games of one opening.

        code: ECO code, or `?`.
        name: name of the opening; may be empty.
        winners: White wins, draws, Black wins, games without a known result.
        """
        entry = self.openings.setdefault(code, [0, 0, 0, 0, ""])
        entry[0] += sum(winners)
        for i in range(3):
            entry[1 + i] += winners[i]
        entry[4] = entry[4] or name[:80]
        for winner, n in zip("WDB?", winners, strict=True):
            self.counts[f"winner.{winner}"] += n

    def finish(self, end: int) -> Made:
        """The streams of the range, and its summary.

        end: byte after the last game.

        Returns the streams `valid`, `invalid`, `flagged`, `games`, `phases` and `moves`, and
        `end`, `counts`, `openings` and `outside`.
        """
        records = np.frombuffer(b"".join(self.records), GAME)
        phases = b"".join(self.phases)
        for code, n in enumerate(np.bincount(np.frombuffer(phases, np.uint8) & 3, minlength=4)):
            self.counts[f"phase.{rows.PHASES[code]}"] += int(n)
        bins, sizes = np.unique(records["plies"] // PLIES_BIN, return_counts=True)
        for number, games in zip(bins.tolist(), sizes.tolist(), strict=True):
            self.counts[f"plies.{number * PLIES_BIN}"] += games
        self.counts["plies"] += len(phases)
        self.counts["valid"] += len(self.rows)
        streams = {
            "valid": b"".join(self.rows),
            "invalid": self._invalid.getvalue().encode(),
            "flagged": self._flagged.getvalue().encode(),
            "games": records.tobytes(),
            "phases": phases,
        }
        if not self.reference:
            streams["moves"] = b"".join(self.moves)
        facts = {"counts": dict(self.counts), "openings": self.openings, "outside": self.outside}
        return streams, {"end": end, **facts}
