"""Names of the files of chess artifacts."""

from __future__ import annotations

from pathlib import Path

STATS = "stats.json"


def valid_file(valid_games: Path) -> Path:
    """The JSONL file of a validated folder, or the file itself."""
    return valid_games / VALID if valid_games.is_dir() else valid_games


CACHE_FOLDER, CACHE_MANIFEST, CACHE_PATHS = "runtime_splice_cache", "manifest.json", "paths.json"

VALID, INVALID, FLAGGED = "valid_games.jsonl", "invalid_games.csv", "flagged_games.csv"

SUMMARY, PROFILE = "summary.json", "profile.json"

SOURCE = "source.json"


def pgn_name(month: str) -> str:
    """The name of a month's PGN file."""
    return f"lichess_elite_{month}.pgn"
