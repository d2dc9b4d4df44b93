"""Notes on months without a valid game, or without a game in a split."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.chess import ValidateConfig, build_game_dataset, validate
from gristmill.chess.laws.notes import dataset_notes, validated_notes

MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"


def _game(result: str, moves: str = MOVES) -> str:
    return f'[Event "E"]\n[Result "{result}"]\n\n{moves} {result}\n\n'


def _notes(root: Path, text: str, min_plies: int = 8) -> list[str]:
    """What is noted of the validated folder and of the dataset of a PGN."""
    (root / "x.pgn").write_text(text)
    validate([root / "x.pgn"], root / "valid", ValidateConfig(min_plies=min_plies))
    build_game_dataset(root / "valid", root / "game")
    return [str(note) for note in (*validated_notes(root / "valid"), *dataset_notes(root / "game"))]


def test_a_month_with_games_has_no_notes(built: Path, tmp_path: Path) -> None:
    # The sample month repeats games.
    assert [note.law for note in validated_notes(built / "valid")] == ["equal_games"]
    assert list(dataset_notes(built / "game")) == []
    assert _notes(tmp_path, _game("1-0") + _game("1/2-1/2", f"{MOVES} 6. d3")) == []


def test_a_month_of_rejected_games_is_noted_with_its_reasons(tmp_path: Path) -> None:
    valid, dataset = _notes(tmp_path, "hello world\n\n" + _game("1-0", "1. e4 e5") * 2)
    assert "none of 3 games is valid" in valid
    assert "1 empty_game" in valid and "2 too_short" in valid
    assert "summary.json" in valid and str(tmp_path) not in valid
    assert "none of 0 valid games is in a split" in dataset


def test_a_dataset_without_games_says_why(tmp_path: Path) -> None:
    text = (
        _game("1/2-1/2") + _game("1/2-1/2", f"{MOVES} 6. d3") + _game("1-0", "1. e4 e5 2. Nf3 Nc6")
    )
    (note,) = _notes(tmp_path, text, min_plies=2)
    assert "none of 3 valid games is in a split: 2 have no winner (games), 1 too few" in note


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"total_games": "x"})])
def test_a_damaged_report_is_noted(tmp_path: Path, text: str) -> None:
    for name in ("summary.json", "stats.json"):
        (tmp_path / name).write_text(text)
    assert list(validated_notes(tmp_path)) and list(dataset_notes(tmp_path))
