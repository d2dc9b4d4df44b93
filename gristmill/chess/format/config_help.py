"""Help texts and choices of the config fields, as metadata of the dataclass fields."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def choice(default: Any, text: str, choices: tuple[str, ...] = (), **bounds: float) -> Any:
    """A field that reaches the record, with its help text, choices and bounds.

    bounds: `least`, `most` and `above` of a number (see `gristmill.settings.fields`).
    """
    metadata: dict[str, Any] = {"help": text, **bounds}
    if choices:
        metadata["choices"] = choices
    return field(default=default, metadata=metadata)


def added_later(default: Any, text: str) -> Any:
    """A field that is no part of the fingerprint while it has its default, with its help text."""
    return field(default=default, metadata={"added_later": True, "help": text})


def machine(default: Any, text: str, **bounds: float) -> Any:
    """A field that cannot change the output, with its help text and bounds."""
    return field(default=default, metadata={"affects_output": False, "help": text, **bounds})


# Help texts of fields that several configs have.
MIN_CONTEXT = "Plies of a sample's context at least, from 1."
MIN_TARGET = "Plies after a sample's context at least, from 1."
SEED = "Seed of the split and of the caps, 0 to 2**63 - 1."
CACHE_CAP = "Samples of a game in the cache at most, 0 for all."
LEGACY_CAP = "Legacy rows of a game at most, 0 for all."
LEGACY_K = "Plies of a legacy row's target at most."
COMPAT = (
    "'reference' makes the files of the original code: ids with the path in them, claimable draws "
    "rejected, games with FEN, variant or null moves kept."
)
MIN_PLIES = "Games with fewer plies are rejected as too_short."
ELO_FLOOR = "Games with a rating below this, or without one, are rejected as below_elo; 0 for off."
TIME_CONTROLS = "Time classes to keep, by the TimeControl of Lichess or chess.com; empty keeps all."
DROP_ABANDONED = (
    "Reject games whose Termination, of Lichess or chess.com, is not a normal end, as abandoned."
)
DROP_BOTS = "Reject games in which a player has the title BOT, as bot_player."
TRAIN_RATIO = "Fraction of the games in train, 0 to 1."
VAL_RATIO = "Fraction of the games in val, 0 to 1; the rest is test."
SPLIT = (
    "'moves' places a game by a stable hash of its moves and the seed, 'opening' by one of its "
    "first opening_plies moves, 'shuffle' by the seeded shuffle of ids of the original code."
)
OPENING_PLIES = "Plies that are the opening of a game, for split = 'opening'."
GAMES = (
    "'decisive' takes games that somebody won, 'finished' draws too, 'all' also games without a "
    "result."
)
ALLOW_DRAWS = "The older name of games: true is games = 'finished', false games = 'decisive'."
KEEP_HEADERS = "Write the tags of a game into its row."
ALLOW_BOTS = "Accept games of a live bot."
VOCABULARY = "Write the vocabulary of the train games into the cache."
DROP_DUPLICATES = "Take rows with an equal game_id once, and list the others as dropped."
WORKERS = "Processes that work at the same time."
