"""Moves in other letters and signs than those of PGN are read, or rejected by name.

Rules: docs/formats/chess.md#spellings
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import ValidateConfig, validate

MOVES = "1.e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O b5 6. Bb3 Bb7 7. a3 d6 8. a4 Qd7 9.a5 O-O-O"
UCI = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 b7b5 a4b3 c8b7 a2a3 d7d6 a3a4 d8d7 a4a5 e8c8"
WHITE = str.maketrans("KQRBN", "\u2654\u2655\u2656\u2657\u2658")
BLACK = str.maketrans("KQRBN", "\u265a\u265b\u265c\u265d\u265e")
PROMOTION = "1. e4 d5 2. exd5 c6 3. dxc6 Nf6 4. cxb7 Nbd7 5. bxa8=Q"


def read(
    folder: Path, movetext: str, result: str = "*", compat: Any = "current"
) -> tuple[list[Any], list[tuple[str, str]]]:
    """(Valid rows, reason and error of each rejected game) of one game."""
    pgn = folder / "x.pgn"
    tags = f'[Event "E"]\n[White "A"]\n[Black "B"]\n[Result "{result}"]\n\n'
    pgn.write_text(f"{tags}{movetext}\n\n", encoding="utf-8")
    out = folder / f"out{len(list(folder.iterdir()))}"
    validate([pgn], out, ValidateConfig(compat=compat, min_plies=1))
    with (out / "invalid_games.csv").open(newline="") as file:
        bad = [(row["reason"], row.get("error", "")) for row in csv.DictReader(file)]
    return [json.loads(line) for line in (out / "valid_games.jsonl").open()], bad


@pytest.mark.parametrize(
    "moves",
    [
        MOVES.translate(WHITE),
        MOVES.translate(BLACK),
        MOVES.translate({ord("N"): "\u2658\ufe0e", ord("Q"): "\u265b\ufe0f"}),
        MOVES.replace("e4", "\u2659e4").replace("e5", "\u265fe5"),
        MOVES.replace("O", "o"),
        MOVES.replace("O", "\u041e"),
        MOVES.replace("O", "\u043e").replace("-", "\u2013"),
        *(MOVES.replace("-", dash) for dash in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"),
        MOVES.replace("Nf3 Nc6", "\u2658g1\u2013f3 \u265eb8\u2014c6"),
        MOVES.replace("a6", "a6 {Sf3 o-o} (3... Sf6 4. o-o) \u00bd"),
    ],
)
def test_figurines_dashes_and_castling_in_other_letters_are_moves(
    moves: str, tmp_path: Path
) -> None:
    (row,), bad = read(tmp_path, moves)
    assert row["moves"] == UCI.split() and not bad


@pytest.mark.parametrize("sign", ["\u2655", "\u265b"])
def test_a_promotion_may_have_a_figurine(sign: str, tmp_path: Path) -> None:
    (row,), _ = read(tmp_path, PROMOTION.replace("Q", sign))
    assert row["moves"][-1] == "b7a8q"


@pytest.mark.parametrize(
    ("end", "result"),
    [
        ("\u00bd-\u00bd", "1/2-1/2"),
        ("\u00bd\u2013\u00bd", "1/2-1/2"),
        ("1/2\u20131/2", "1/2-1/2"),
        ("1\u20130", "1-0"),
        ("0\u22121", "0-1"),
    ],
)
def test_results_with_other_dashes_and_halves_are_results(
    end: str, result: str, tmp_path: Path
) -> None:
    (row,), _ = read(tmp_path, f"{MOVES} {end}")
    assert row["result"] == result


@pytest.mark.parametrize(
    ("moves", "named"),
    [
        # Every token but one is also the legal move of a pawn.
        ("1. Sf3 d5 2. c4 c6 3. d4 e6", "Sf3"),
        ("1. e4 e5 2.Sf3 d6", "Sf3"),
        ("1. e4 e5 2. nf3 nc6", "nf3"),
        ("1. e4 e5 2. \u041af3 d6", "\u041af3"),
        ("1. e4 e5 2. d4 d6 3. \u041a\u0440e2", "\u041a\u0440e2"),
        ("1. e4 e5 2. Sg1-f3 d6", "Sg1-f3"),
        ("1. e4 e5 2. Sf3 {Lb5} d6 3. Lb5", "Sf3"),
        ("1. e4 e5 2. Sf3 d6 3. Lf3 Df3", "Sf3"),
    ],
)
def test_a_piece_by_a_letter_of_another_language_rejects_the_game(
    moves: str, named: str, tmp_path: Path
) -> None:
    rows, bad = read(tmp_path, f"{moves} 1-0", "1-0")
    assert not rows
    assert bad == [("pgn_errors", f"{named!r} names no piece by K, Q, R, B or N")]


@pytest.mark.parametrize(
    "moves", ["1. Pe4 pe5 2. Nf3 Nc6", "1. e4 e5 2. N1f3 TN Nc6 Z", "1.e4e.p."]
)
def test_what_was_read_before_is_read_as_before(moves: str, tmp_path: Path) -> None:
    (row,), bad = read(tmp_path, moves)
    assert row["moves"] == UCI.split()[: row["plies"]] and not bad


def test_other_moves_that_are_none_keep_their_errors(tmp_path: Path) -> None:
    assert read(tmp_path, "1. e4 e5 2. 0-0")[1][0][1].startswith("illegal san: '0-0'")
    assert read(tmp_path, "1. e4 e5 2. @f6")[1] == [("pgn_errors", "invalid san: '@f6'")]


def test_the_reference_reads_the_square_alone(tmp_path: Path) -> None:
    (row,), _ = read(tmp_path, "1. Sf3 d5 2. \u2659c4", compat="reference")
    assert row["moves"] == ["f2f3", "d7d5", "c2c4"]
