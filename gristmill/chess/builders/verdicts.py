"""The verdict on a game, and the output of a byte range of a PGN, game by game.

Source: docs/formats/chess.md#verdict-order
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows
from gristmill.chess.format.folders import GAME
from gristmill.chess.raw.pgn import ByteRange
from gristmill.chess.raw.python_chess import ParsedGame
from gristmill.run.parts import Made

PLIES_BIN = 10
_NULL_MOVE = "0000"


@dataclass(frozen=True)
class RangeTask:
    """A byte range of a PGN; month: of its name, as dates begin (`2024.01`); empty for none."""

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

    openings: games, White wins, draws, Black wins and the opening's name, by ECO code.
    outside: tag, value and byte offset of the first game whose date is not in the month.
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
        """Add a line to invalid_games.csv."""
        row: list[Any] = [game_id, self.task.source, reason, ply, result]
        self.invalid.writerow(row if self.reference else [*row, error, offset])
        self.counts[f"reason.{reason}"] += 1

    def flag(
        self, game_id: str, flags: int, result: str, detail: str, offset: int, passed: str = ""
    ) -> None:
        """Add a line to flagged_games.csv for each flag of a valid game."""
        for bit, name in rows.FLAGS.items():
            if flags & bit:
                self.counts[f"flag.{name}"] += 1
                said = passed if bit == rows.PASSED_OVER else detail
                self.flagged.writerow([game_id, self.task.source, name, result, said, offset])

    def date(self, utc_date: str, date: str, offset: int) -> None:
        """Count a valid game if it has a date that is not in the month of its file."""
        day = rows.day_of(utc_date, date)
        if self.task.month and day and not day[1].startswith(f"{self.task.month}."):
            self.counts["outside_month"] += 1
            self.outside = self.outside or [*day, offset]

    def keep(self, valid: list[bytes], records: NDArray[np.void]) -> None:
        """Add valid rows; sets the field `row` of their records."""
        lengths = np.array([len(row) for row in valid], dtype=np.uint64)
        records["row"] = np.cumsum(lengths) - lengths + np.uint64(self.row_bytes)
        self.rows += valid
        self.row_bytes += int(lengths.sum())
        self.records.append(records.tobytes())

    def opening(self, code: str, name: str, winners: Sequence[int]) -> None:
        """Count games of one opening; winners: White, Black and so on, as `openings` has them."""
        entry = self.openings.setdefault(code, [0, 0, 0, 0, ""])
        entry[0] += sum(winners)
        for i in range(3):
            entry[1 + i] += winners[i]
        entry[4] = entry[4] or name[:80]
        for winner, n in zip("WDB?", winners, strict=True):
            self.counts[f"winner.{winner}"] += n

    def finish(self, end: int) -> Made:
        """The streams of the range, which ends at byte `end`, and its summary for the parent."""
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
            "games": b"".join(self.rows),
            "invalid": self._invalid.getvalue().encode(),
            "flagged": self._flagged.getvalue().encode(),
            "games.games": records.tobytes(),
            "games.phases": phases,
        }
        if not self.reference:
            streams["games.moves"] = b"".join(self.moves)
        facts = {"counts": dict(self.counts), "openings": self.openings, "outside": self.outside}
        return streams, {"end": end, **facts}


_START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -"
_CLOCK = re.compile(r"(\d{1,6})(?:\+(\d{1,5}))?", re.ASCII)
_MOVES_IN = re.compile(r"(\d{1,4})/(\d{1,8})", re.ASCII)
_DAY = 86_400
# Of Lichess, in lower case.
_ENDS = {
    **dict.fromkeys(("", "?", "-", "normal"), "normal"),
    "time forfeit": "time_forfeit",
    "abandoned": "abandoned",
    "rules infraction": "rules_infraction",
    "unterminated": "unterminated",
}
# Of chess.com, in lower case, where a name may be any text.
_SENTENCES = {
    "normal": re.compile(
        r".* won by (?:checkmate|resignation)|game drawn by (?:agreement|repetition|stalemate"
        r"|insufficient material|50-move rule)"
    ),
    "time_forfeit": re.compile(r".* won on time|game drawn by timeout vs insufficient material"),
    "abandoned": re.compile(r".* won - game abandoned|game abandoned"),
}


def time_class(control: str) -> str:
    """The class of a time control; `unknown` for a text that cannot be read."""
    period = _MOVES_IN.fullmatch(control)
    if control == "-" or (period and int(period[2]) >= _DAY * int(period[1]) > 0):
        return "correspondence"
    match = _CLOCK.fullmatch(control)
    if not match:
        return "unknown"
    seconds = int(match[1]) + 40 * int(match[2] or 0)
    for limit, name in ((29, "ultrabullet"), (179, "bullet"), (479, "blitz"), (1499, "rapid")):
        if seconds <= limit:
            return name
    return "classical"


def end_class(termination: str) -> str:
    """The class of how a game ended; `unknown` for a text of neither Lichess nor chess.com."""
    text = termination.lower()
    sentences = (name for name, form in _SENTENCES.items() if form.fullmatch(text))
    return _ENDS.get(text) or next(sentences, "unknown")


def _rating(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def filtered(headers: Mapping[str, str], config: ValidateConfig) -> str:
    """The reason by which a filter rejects a game; empty where none does."""
    if config.elo_floor:
        lower = min(_rating(headers.get(tag, "")) for tag in ("WhiteElo", "BlackElo"))
        if lower < config.elo_floor:
            return "below_elo"
    if config.time_controls and (
        time_class(headers.get("TimeControl", "")) not in config.time_controls
    ):
        return "other_time_control"
    normal = ("normal", "time_forfeit")
    if config.drop_abandoned and end_class(headers.get("Termination", "")) not in normal:
        return "abandoned"
    titles = [headers.get(tag, "").upper() for tag in ("WhiteTitle", "BlackTitle")]
    if config.drop_bots and "BOT" in titles:
        return "bot_player"
    if config.titles and not {*titles} <= {title.upper() for title in config.titles}:
        return "other_title"
    event = headers.get("Event", "").lower()
    if config.events and not any(text.lower() in event for text in config.events):
        return "other_event"
    return ""


def dropped(flags: int, config: ValidateConfig) -> str:
    """The flag of `rows.LOSSES` whose setting drops a game; empty where none does."""
    names = (name for bit, name in rows.LOSSES.items() if flags & bit)
    return next((name for name in names if getattr(config, name) == "drop"), "")


def has_filters(config: ValidateConfig) -> bool:
    """Whether any filter is on."""
    on = (config.elo_floor, config.time_controls, config.drop_abandoned, config.drop_bots)
    return any((*on, config.titles, config.events))


def judge(game: ParsedGame, config: ValidateConfig) -> tuple[str, int, int, str]:
    """Decide on a game: (reason, "" if valid; offending ply; flags; text of the column `error`)."""
    plies, result = len(game.moves), game.result
    reference = config.compat == "reference"
    # The reason by which a tag alone rejects a game.
    by_tag, tag, fen = "", "", game.headers.get("FEN", _START_FEN)
    if rows.is_other_variant(game.headers):
        by_tag, tag = "variant", f"Variant {game.headers['Variant']}"
    elif not fen.startswith(_START_FEN):
        by_tag, tag = "fen_start", f"FEN {fen}"
    if by_tag and not reference:
        return by_tag, 0, 0, tag
    if game.unclosed:
        return "unclosed_comment", plies, 0, f"a {game.unclosed} is not closed"
    if game.errors:
        return "pgn_errors", plies, 0, "; ".join(game.errors)
    if not game.moves:
        return "empty_game", 0, 0, ""
    has_null_move = _NULL_MOVE in game.moves
    if has_null_move and not reference:
        return "null_move", game.moves.index(_NULL_MOVE), 0, ""
    verdict = game.claimed if reference else game.verdict
    if verdict not in ("*", result) and result != "*":
        return "result_mismatch", plies, 0, f"the board says {verdict}, the header {result}"
    flags = _flags(game, reference)
    if has_null_move or by_tag:
        flags |= rows.NONSTANDARD
    if plies < config.min_plies:
        return "too_short", plies, flags, ""
    reason = filtered(game.headers, config) or dropped(flags, config)
    return reason, plies, flags, game.said.passed if reason == "passed_over" else ""


def _flags(game: ParsedGame, reference: bool) -> int:
    """The bits of docs/formats/chess.md#flags, without the one of nonstandard games."""
    flags, result = 0, game.result
    if game.claimed == "1/2-1/2" and game.verdict == "*" and result in ("1-0", "0-1"):
        flags |= rows.CLAIMABLE_DRAW
    others = [text for text in game.terminators if text != result]
    if reference:
        others = [text for text in others if text != "*"]
    if game.header_result != "*" and others:
        flags |= rows.RESULT_CONFLICT
    if result not in rows.RESULTS[1:]:
        flags |= rows.ODD_RESULT
    if any(game.headers.get(tag, "") in rows.NO_NAMES for tag in ("White", "Black")):
        flags |= rows.NO_PLAYERS
    if not reference:
        shown = " ".join(game.board.fen().split(" ")[:2])
        miscounted = rows.is_miscounted(game.headers.get("PlyCount", ""), len(game.moves))
        miscounted |= not (game.headers.get("CurrentPosition") or shown).startswith(shown)
        flags |= rows.NUMBER_GAP * game.said.gap + rows.NO_RESULT * (not game.terminators)
        flags |= rows.PLY_COUNT * miscounted + rows.PASSED_OVER * bool(game.said.passed)
    return flags
