"""The keys of chess rows and the arrays of a splice cache, for people who look for a field."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.chess.format.folders import OFFSETS, PATH_IDS, SAMPLE_PHASES, SPLICE_INDICES
from gristmill.families import Column

_GAME_ID = Column("game_id", "string", "40 hex digits")
_SOURCE = Column("source_file", "string", "the name of the PGN; left out where it is empty")
_RESULT = Column("result", "string", "the tag Result after filling; * where there is none")
_WINNER = Column("winner_side", "string", "W, B or D; ? for another result")
_PLIES = Column("plies", "integer", "number of moves")
_MOVES = Column("moves", "array of string", "moves in UCI, as e2e4")

_COLUMNS = {
    "chess/valid_games": (
        _GAME_ID,
        _SOURCE,
        Column("headers", "object", "tags of the game"),
        _RESULT,
        _WINNER,
        _PLIES,
        _MOVES,
        Column("moves_uci", "array of string", "the same moves again"),
    ),
    "chess/game_dataset": (
        Column("schema", "string", "game_dataset_runtime_splice_v1"),
        _GAME_ID,
        _WINNER,
        _RESULT,
        _PLIES,
        _MOVES,
        _SOURCE,
        Column("headers", "object", "tags of the game, with keep_headers alone"),
    ),
    "chess/subset": (
        Column("id", "integer", "vocabulary.csv: id of a move; 0 is <PAD>, 1 is <UNK>"),
        Column("move", "string", "vocabulary.csv: a move of the train rows, in UCI; sorted"),
        Column("count", "integer", "vocabulary.csv: how often the train rows have it"),
    ),
    "chess/splice_cache": (
        Column(PATH_IDS, "uint32", "index into the paths file, always 0"),
        Column(OFFSETS, "uint64", "byte offset of the game's row in the JSONL file"),
        Column(SPLICE_INDICES, "uint32", "index of the last move of the context"),
        Column(SAMPLE_PHASES, "uint8", "phase of the position after the context"),
    ),
    "chess/splice_dataset": (
        _GAME_ID,
        _WINNER,
        Column("splice_index", "integer", "index of the last move of the context"),
        Column("ply", "integer", "plies of the context"),
        Column("plies_remaining", "integer", "plies from the label to the end of the game"),
        Column("plies_remaining_bucket", "string", "<=10, 11-20 or >20"),
        Column("relative_progress_bucket", "string", "early, mid or late"),
        Column("phase", "string", "opening, middlegame, endgame or unknown"),
        Column("phase_reason", "string", "the rule that decided the phase"),
        Column("phase_rule_version", "string", "material_castling_v1"),
        Column("context", "array of string", "moves up to the splice, in UCI"),
        Column("target", "array of string", "the next moves, 4 by default"),
        Column("next_move", "string", "the first move after it: the label"),
        Column("plies_total", "integer", "number of moves of the game"),
    ),
}


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables.

    asset: its key, as `chess/valid_games`.
    """
    return _COLUMNS.get(asset, ())
