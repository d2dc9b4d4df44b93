"""Words and rows of the chess formats: names, phases, buckets, ids, JSON of the rows.

docs/formats/chess.md (#valid-rows, #game-ids, #game-rows, #phases, #buckets) in plain Python;
the compiled paths write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")
# Tags that the scanner gives fixed slots: the roster and what the rules look at.
KNOWN = (
    *ROSTER,
    "UTCDate",
    "UTCTime",
    "LichessURL",
    "WhiteElo",
    "BlackElo",
    "TimeControl",
    "Termination",
    "ECO",
    "Opening",
)
RESULTS = ("", "1-0", "0-1", "1/2-1/2", "*")

GAME_SCHEMA = "game_dataset_runtime_splice_v1"
GAME_FORMAT = "game_jsonl_runtime_splice_v1"
CACHE_KIND = "runtime_splice_cache"
VOCAB_KIND = "runtime_splice_vocab_rows_meta_v1"
PHASE_RULE = "material_castling_v1"

PHASES = ("unknown", "opening", "middlegame", "endgame")
# By phase code: the id in the low two bits, bit 2 for the second endgame rule.
PHASE_REASONS = (
    "invalid_moves_uci",
    "early_with_castling_rights",
    "default_transition",
    "low_nonpawn_material",
    "",
    "",
    "",
    "queens_off_low_material",
)
REMAINING = ("<=10", "11-20", ">20")
PROGRESS = ("early", "mid", "late")
WINNERS = {"1-0": "W", "0-1": "B", "1/2-1/2": "D"}
WINNER_IDS = {"W": 0, "B": 1, "D": 2}

# Variant tags, in lower case, that say nothing: the game is what it is without them.
PLAIN_VARIANTS = ("", "standard", "chess")
# Flags of a validated game, in its sidecar record.
CLAIMABLE_DRAW, RESULT_CONFLICT, ODD_RESULT, NONSTANDARD = 1, 2, 4, 8
FLAGS = {
    CLAIMABLE_DRAW: "claimable_draw",
    RESULT_CONFLICT: "result_conflict",
    ODD_RESULT: "odd_result",
    NONSTANDARD: "nonstandard_start_or_moves",
}


def winner_side(result: str) -> str:
    """`W`, `B` or `D`, and `?` for any result that is none of the three."""
    return WINNERS.get(result, "?")


def remaining_bucket(plies: int) -> str:
    """Bucket of the plies that remain after a splice (docs/formats/chess.md#buckets)."""
    if plies < 0:
        return "unknown"
    return REMAINING[0] if plies <= 10 else REMAINING[1] if plies <= 20 else REMAINING[2]


def progress_bucket(ply: int, total: int) -> str:
    """Bucket of how far into the game a splice lies (docs/formats/chess.md#buckets)."""
    if total <= 0:
        return "unknown"
    share = ply / total
    return PROGRESS[0] if share < 0.33 else PROGRESS[1] if share < 0.66 else PROGRESS[2]


def ordered_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The seven roster tags first, in roster order, then the rest as they came."""
    roster = {name: headers[name] for name in ROSTER if name in headers}
    return {**roster, **{name: v for name, v in headers.items() if name not in roster}}


def reference_id(source: str, headers: Mapping[str, str], moves: Sequence[str]) -> str:
    """The original code's id: it contains the path (docs/formats/chess.md#reference-ids)."""
    words = [source, *(headers.get(name, "") for name in ROSTER[:6]), " ".join(moves[:16])]
    return hashlib.sha1("|".join(words).encode(), usedforsecurity=False).hexdigest()


def occasion(headers: Mapping[str, str]) -> str:
    """When and where a game was played, as far as its tags tell it from its twins.

    The game's address if it has one, else date and time in UTC, else date and round.
    """
    if url := headers.get("LichessURL", ""):
        return url
    if date := headers.get("UTCDate", ""):
        return f"{date} {headers.get('UTCTime', '')}"
    return f"{headers.get('Date', '')} {headers.get('Round', '')}"


def content_id(headers: Mapping[str, str], moves: Sequence[str]) -> str:
    """The id of a game by its content: start, players, occasion and all moves.

    The first 40 hex digits of SHA-256 over Variant, FEN, White, Black, the
    occasion (each with a line feed behind it, missing tags and the Variant of
    plain chess empty) and the UCI moves joined by spaces. The file that the game
    was found in plays no part.
    """
    variant = headers.get("Variant", "")
    words = (
        "" if variant.lower() in PLAIN_VARIANTS else variant,
        headers.get("FEN", ""),
        headers.get("White", ""),
        headers.get("Black", ""),
        occasion(headers),
        " ".join(moves),
    )
    return hashlib.sha256("\n".join(words).encode("utf-8", "replace")).hexdigest()[:40]


def move_key(moves: Sequence[str]) -> int:
    """First 8 bytes, big end first, of SHA-256 over the UCI moves joined by spaces."""
    return int.from_bytes(hashlib.sha256(" ".join(moves).encode()).digest()[:8], "big")


def valid_row(
    game_id: str, source: str, headers: Mapping[str, str], result: str, moves: Sequence[str]
) -> bytes:
    """A line of `valid_games.jsonl` (docs/formats/chess.md#valid-rows)."""
    row = {
        "game_id": game_id,
        "source_file": source,
        "headers": dict(headers),
        "result": result,
        "winner_side": winner_side(result),
        "plies": len(moves),
        "moves": list(moves),
        "moves_uci": list(moves),
    }
    return json.dumps(row).encode() + b"\n"


def moves_of(row: Mapping[str, Any]) -> list[str]:
    """The moves of a row: `moves` if it is a list, else `moves_uci`, else none."""
    for name in ("moves", "moves_uci"):
        value = row.get(name)
        if isinstance(value, list):
            return [str(move) for move in value]
    return []
