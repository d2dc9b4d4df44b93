"""The verdict on one game that python-chess read: valid or a reason, and its flags.

Source: `docs/formats/chess.md#verdict-order`, `docs/formats/chess.md#filters`,
`docs/formats/chess.md#reasons`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows
from gristmill.chess.raw.python_chess import ParsedGame

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


def has_filters(config: ValidateConfig) -> bool:
    """Whether any filter is on."""
    on = (config.elo_floor, config.time_controls, config.drop_abandoned, config.drop_bots)
    return any((*on, config.titles, config.events))


def judge(game: ParsedGame, config: ValidateConfig) -> tuple[str, int, int, str]:
    """Decide on a game.

    game: as python-chess read it.
    config: rules and filters.

    Returns (reason, empty for a valid game; offending ply; flags; text of the column `error`).
    """
    plies, result = len(game.moves), game.result
    reference = config.compat == "reference"
    if game.unclosed:
        return "unclosed_comment", plies, 0, f"a {game.unclosed} is not closed"
    if game.errors:
        return "pgn_errors", plies, 0, "; ".join(game.errors)
    if not game.moves:
        return "empty_game", 0, 0, ""
    nonstandard = _nonstandard(game)
    if nonstandard and not reference:
        reason, ply, error = nonstandard
        return reason, ply, 0, error
    verdict = game.claimed if reference else game.verdict
    if verdict not in ("*", result) and result != "*":
        return "result_mismatch", plies, 0, f"the board says {verdict}, the header {result}"
    flags = _flags(game, reference)
    if nonstandard:
        flags |= rows.NONSTANDARD
    if plies < config.min_plies:
        return "too_short", plies, flags, ""
    return filtered(game.headers, config), plies, flags, ""


def _nonstandard(game: ParsedGame) -> tuple[str, int, str] | None:
    """(reason, offending ply, error) for another variant, start or kind of move, or None."""
    variant = game.headers.get("Variant", "").lower()
    if variant not in (*rows.STANDARD_VARIANTS, "from position"):
        return "variant", 0, f"Variant {game.headers['Variant']}"
    if not game.headers.get("FEN", _START_FEN).startswith(_START_FEN):
        return "fen_start", 0, f"FEN {game.headers['FEN']}"
    if "0000" in game.moves:
        return "null_move", game.moves.index("0000"), ""
    if any("@" in move for move in game.moves):
        return "null_move", 0, ""
    return None


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
    return flags
