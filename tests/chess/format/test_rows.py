"""Bounds of the buckets, and the documented id and move key."""

from gristmill.chess.format.rows import (
    content_id,
    move_key,
    moves_of,
    progress_bucket,
    remaining_bucket,
)

MOVES = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7"]


def test_buckets_ids_and_keys_are_those_documented_and_the_first_list_of_moves_counts() -> None:
    plies = (-1, 0, 10, 11, 20, 21)
    buckets = ["unknown", "<=10", "<=10", "11-20", "11-20", ">20"]
    assert [remaining_bucket(n) for n in plies] == buckets
    places = ((5, 0), (32, 100), (33, 100), (65, 100), (66, 100), (100, 100))
    progress = ["unknown", "early", "mid", "mid", "late", "late"]
    assert [progress_bucket(ply, total) for ply, total in places] == progress
    headers = {"White": "A", "Black": "B", "Date": "2024.01.01", "Round": "-"}
    assert content_id(headers, MOVES) == "07a3a344dbf57f470cb61caa57f91a3809ee83c5"
    assert content_id({**headers, "Variant": "Standard"}, MOVES) == content_id(headers, MOVES)
    assert content_id({**headers, "Variant": "Atomic"}, MOVES) != content_id(headers, MOVES)
    assert move_key(MOVES) == 0xE72B54C42FF5CE1E
    assert moves_of({"moves": ["a"], "moves_uci": ["b"]}) == ["a"]
    assert moves_of({"moves": "a", "moves_uci": ["b"]}) == ["b"]
    assert moves_of({}) == []
