"""What is decided of one parsed game: valid or why not, and its flags.

The order of docs/formats/chess.md#verdict-order: FEN, variant and
null-move games are set aside, a draw that was merely claimable is a flag, and
the optional filters come last. "reference" leaves all of that away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows
from gristmill.chess.raw.python_chess import ParsedGame

_START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -"
_CLOCK = re.compile(r"(\d{1,6})\+(\d{1,5})")
_NORMAL_ENDS = ("", "?", "-", "normal", "time forfeit")


def time_class(control: str) -> str:
    """Lichess's class of a TimeControl tag: base plus 40 increments, in seconds.

    `-` is correspondence; a control that cannot be read is `unknown`.
    """
    if control == "-":
        return "correspondence"
    match = _CLOCK.fullmatch(control)
    if not match:
        return "unknown"
    seconds = int(match[1]) + 40 * int(match[2])
    for limit, name in ((29, "ultrabullet"), (179, "bullet"), (479, "blitz"), (1499, "rapid")):
        if seconds <= limit:
            return name
    return "classical"


def _rating(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def filtered(headers: Mapping[str, str], config: ValidateConfig) -> str:
    """The optional filter that a valid game falls to, or an empty string."""
    if config.elo_floor:
        lower = min(_rating(headers.get(tag, "")) for tag in ("WhiteElo", "BlackElo"))
        if lower < config.elo_floor:
            return "below_elo"
    if config.time_controls and (
        time_class(headers.get("TimeControl", "")) not in config.time_controls
    ):
        return "other_time_control"
    if config.drop_abandoned and headers.get("Termination", "").lower() not in _NORMAL_ENDS:
        return "abandoned"
    return ""


def has_filters(config: ValidateConfig) -> bool:
    """Whether `filtered` can reject anything."""
    return bool(config.elo_floor or config.time_controls or config.drop_abandoned)


def judge(game: ParsedGame, config: ValidateConfig) -> tuple[str, int, int, str]:
    """(reason or "", offending ply, flags, text) of a game that the oracle read."""
    plies, result = len(game.moves), game.result
    reference = config.compat == "reference"
    if game.errors:
        return "pgn_errors", plies, 0, "; ".join(game.errors)
    if not game.moves:
        return "empty_game", 0, 0, ""
    variant = game.headers.get("Variant", "").lower()
    odd_variant = variant not in (*rows.STANDARD_VARIANTS, "from position")
    odd_start = not game.headers.get("FEN", _START_FEN).startswith(_START_FEN)
    odd_move = "0000" in game.moves or any("@" in move for move in game.moves)
    if not reference:
        if odd_variant:
            return "variant", 0, 0, f"Variant {game.headers['Variant']}"
        if odd_start:
            return "fen_start", 0, 0, f"FEN {game.headers['FEN']}"
        if odd_move:
            return "null_move", game.moves.index("0000") if "0000" in game.moves else 0, 0, ""
    verdict = game.claimed if reference else game.verdict
    if verdict not in ("*", result) and result != "*":
        return "result_mismatch", plies, 0, f"the board says {verdict}, the header {result}"
    flags = 0
    if game.claimed == "1/2-1/2" and game.verdict == "*" and result in ("1-0", "0-1"):
        flags |= rows.CLAIMABLE_DRAW
    told = [t for t in game.terminators if t != result and not (reference and t == "*")]
    if game.header_result != "*" and told:
        flags |= rows.RESULT_CONFLICT
    if result not in rows.RESULTS[1:]:
        flags |= rows.ODD_RESULT
    if odd_variant or odd_start or odd_move:
        flags |= rows.NONSTANDARD
    if plies < config.min_plies:
        return "too_short", plies, flags, ""
    return filtered(game.headers, config), plies, flags, ""
