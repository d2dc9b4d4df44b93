"""Names of the files in chess artifacts (docs/formats/chess.md#folders)."""

from __future__ import annotations

from pathlib import Path

# A raw month: where its PGN came from.
SOURCE = "source.json"

# A validated folder: the rows of valid games.
VALID = "valid_games.jsonl"
# One line for each rejected game, with the reason.
INVALID = "invalid_games.csv"
# One line for each flag of a valid game.
FLAGGED = "flagged_games.csv"
# Counts of the validation.
SUMMARY = "summary.json"
# Distributions that the UI draws.
PROFILE = "profile.json"

# A game dataset or a splice dataset: its counts and its config.
STATS = "stats.json"
# The rows that `drop_duplicates` left out, one line each.
DROPPED = "dropped_games.csv"

# The splice cache inside a game dataset.
CACHE_FOLDER = "runtime_splice_cache"
# What the cache was built from, with sizes and hashes.
CACHE_MANIFEST = "manifest.json"
# For each split of the cache: the paths that the path ids stand for.
CACHE_PATHS = "paths.json"
# The numbered moves of the train games, in the cache.
VOCABULARY = "vocab_rows_meta.json"


# A subset: its config, and rows by split and stratum.
SUBSET = "subset.json"
# The moves of its train rows: id, move, count.
SUBSET_VOCABULARY = "vocabulary.csv"


def subset_rows(split: str) -> str:
    """The file with the number of each row of a subset in its dataset: int64 [rows]."""
    return f"{split}_rows.npy"


def pgn_name(month: str) -> str:
    """The name of a month's PGN file."""
    return f"lichess_elite_{month}.pgn"


def split_file(dataset: Path, split: str) -> Path:
    """The JSONL file of a dataset's split."""
    return dataset / f"{split}.jsonl"


def valid_file(valid_games: Path) -> Path:
    """The JSONL file of valid games."""
    return valid_games / VALID if valid_games.is_dir() else valid_games


# For each sample: index into the paths file, always 0.
PATH_IDS = "path_ids.u32.bin"
# Byte offset of the game's row in the JSONL file.
OFFSETS = "offsets.u64.bin"
# Index of the last move of the context.
SPLICE_INDICES = "splice_indices.u32.bin"
# Phase id of the position after the context.
SAMPLE_PHASES = "sample_phase_ids.u8.bin"

# Number of the game among the rows of the split; no manifest names it, and readers do without it.
SAMPLE_GAMES = "sample_games.u32.bin"

# File name to dtype, in the order of the manifest.
LAYOUT = {
    PATH_IDS: "<u4",
    OFFSETS: "<u8",
    SPLICE_INDICES: "<u4",
    SAMPLE_PHASES: "|u1",
}
