"""Rows of the chess formats in Python: tags, results, phases, buckets, game ids, JSON.

The compiled functions write the same bytes. Source: docs/formats/chess.md#valid-rows
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")
# Tags with a fixed slot in the compiled reader: the roster, and the tags that a rule reads.
KNOWN = (
    *(*ROSTER, "UTCDate", "UTCTime", "LichessURL", "WhiteElo", "BlackElo", "TimeControl"),
    *("Termination", "ECO", "Opening", "FEN", "PlyCount", "CurrentPosition"),
)
# By result code of the compiled reader; 0 means that there is none.
RESULTS = ("", "1-0", "0-1", "1/2-1/2", "*")

# Constants that the formats carry.
GAME_SCHEMA = "game_dataset_runtime_splice_v1"
GAME_FORMAT = "game_jsonl_runtime_splice_v1"
CACHE_KIND = "runtime_splice_cache"
VOCAB_KIND = "runtime_splice_vocab_rows_meta_v1"
PHASE_RULE = "material_castling_v1"

# By phase id.
PHASES = ("unknown", "opening", "middlegame", "endgame")
# By phase code: the phase id in the low two bits; bit 2 marks the second endgame rule.
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
# Buckets of a legacy row, in ascending order.
REMAINING = ("<=10", "11-20", ">20")
PROGRESS = ("early", "mid", "late")
WINNERS = {"1-0": "W", "0-1": "B", "1/2-1/2": "D"}
# The ids that training uses.
WINNER_IDS = {"W": 0, "B": 1, "D": 2}

# Variant tags in lower case that mean standard chess, as a missing tag does.
STANDARD_VARIANTS = ("", "standard", "chess")
_STANDARD_RULES = (*STANDARD_VARIANTS, "from position")
# Bits of the field `flags` in a game record (docs/formats/chess.md#flags).
CLAIMABLE_DRAW, RESULT_CONFLICT, ODD_RESULT, NONSTANDARD, NO_PLAYERS = 1, 2, 4, 8, 16
FLAGS = {
    CLAIMABLE_DRAW: "claimable_draw",
    RESULT_CONFLICT: "result_conflict",
    ODD_RESULT: "odd_result",
    NONSTANDARD: "nonstandard_start_or_moves",
    NO_PLAYERS: "no_players",
}
# Of games that may have lost moves: each is also the name of the setting that drops them.
NUMBER_GAP, NO_RESULT, PLY_COUNT, PASSED_OVER = 32, 64, 128, 256
LOSSES = {
    NUMBER_GAP: "number_gap",
    NO_RESULT: "no_result",
    PLY_COUNT: "ply_count",
    PASSED_OVER: "passed_over",
}
FLAGS |= LOSSES


# Values of `White` and `Black` that name no player, besides a missing tag.
NO_NAMES = ("", "?")
_DAY = re.compile(r"\d{4}\.\d\d\.\d\d", re.ASCII)


def day_of(utc_date: str, date: str) -> tuple[str, str] | None:
    """The tag that dates a game, and its value: `UTCDate`, else `Date`; None without a date."""
    dated = (("UTCDate", utc_date), ("Date", date))
    return next(((tag, value) for tag, value in dated if _DAY.fullmatch(value)), None)


def is_miscounted(ply_count: str, plies: int) -> bool:
    """Whether the tag PlyCount is the number of other plies; a text that is none says nothing."""
    digits = ply_count.lstrip("0") if ply_count.isascii() and ply_count.isdigit() else str(plies)
    return digits != str(plies)


def winner_side(result: str) -> str:
    """The winner of a result: `W`, `B` or `D`; `?` for any other text."""
    return WINNERS.get(result, "?")


def remaining_bucket(plies: int) -> str:
    """Bucket of the plies from the label of a splice on (docs/formats/chess.md#buckets)."""
    if plies < 0:
        return "unknown"
    return REMAINING[0] if plies <= 10 else REMAINING[1] if plies <= 20 else REMAINING[2]


def progress_bucket(ply: int, total: int) -> str:
    """Bucket of how far into the game a splice is (docs/formats/chess.md#buckets)."""
    if total <= 0:
        return "unknown"
    progress = ply / total
    return PROGRESS[0] if progress < 0.33 else PROGRESS[1] if progress < 0.66 else PROGRESS[2]


def ordered_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Tags in the order of a row (docs/formats/chess.md#headers): the roster, then the others."""
    roster = {name: headers[name] for name in ROSTER if name in headers}
    return {**roster, **{name: v for name, v in headers.items() if name not in roster}}


def reference_id(source: str, headers: Mapping[str, str], moves: Sequence[str]) -> str:
    """The id that the original code gave (docs/formats/chess.md#reference-ids)."""
    fields = [source, *(headers.get(name, "") for name in ROSTER[:6]), " ".join(moves[:16])]
    return hashlib.sha1("|".join(fields).encode(), usedforsecurity=False).hexdigest()


def occasion(headers: Mapping[str, str]) -> str:
    """What tells games of the same players apart: address, UTC date and time, or date and round."""
    if url := headers.get("LichessURL", ""):
        return url
    if date := headers.get("UTCDate", ""):
        return f"{date} {headers.get('UTCTime', '')}"
    return f"{headers.get('Date', '')} {headers.get('Round', '')}"


def is_other_variant(headers: Mapping[str, str]) -> bool:
    """Whether a game has other rules than standard chess, by its tag `Variant`."""
    return headers.get("Variant", "").lower() not in _STANDARD_RULES


def content_id(headers: Mapping[str, str], moves: Sequence[str]) -> str:
    """The id of a game by its content, whatever file it is in (docs/formats/chess.md#game-ids)."""
    variant = headers.get("Variant", "")
    fields = (
        "" if variant.lower() in STANDARD_VARIANTS else variant,
        headers.get("FEN", ""),
        headers.get("White", ""),
        headers.get("Black", ""),
        occasion(headers),
        " ".join(moves),
    )
    return hashlib.sha256("\n".join(fields).encode("utf-8", "replace")).hexdigest()[:40]


def move_key(moves: Sequence[str]) -> int:
    """The move key of a game (docs/formats/chess.md#move-keys)."""
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
    """The moves of a row (docs/formats/chess.md#accepted-rows)."""
    for name in ("moves", "moves_uci"):
        value = row.get(name)
        if isinstance(value, list):
            return [str(move) for move in value]
    return []
