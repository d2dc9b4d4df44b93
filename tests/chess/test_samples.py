"""Sample months: legal games, the same bytes each time, every branch of the validation."""

import hashlib
from pathlib import Path

import chess
import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.samples import make_games, write_month, write_sample


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month of as many games as its known bytes have."""
    path = tmp_path_factory.mktemp("month") / "lichess_elite_2024-01.pgn"
    write_month(path, "2024-01", 240, 11)
    return path


def test_a_month_has_the_same_bytes_each_time(tmp_path: Path, month: Path) -> None:
    write_month(tmp_path / "again.pgn", "2024-01", 240, 11)
    assert (tmp_path / "again.pgn").read_bytes() == month.read_bytes()
    write_month(tmp_path / "a.zip", "2024-01", 30, 1)
    write_month(tmp_path / "b.zip", "2024-01", 30, 1)
    write_sample("2024-01", 30, tmp_path / "c.zip")
    contents = {(tmp_path / f"{name}.zip").read_bytes() for name in "abc"}
    assert len(contents) == 1
    assert make_games("2024-02", 5, 1) != make_games("2024-01", 5, 1)


def test_the_bytes_of_a_month_are_known_and_every_move_is_legal_san(month: Path) -> None:
    digest = hashlib.sha256(month.read_bytes()).hexdigest()
    assert digest == "b2f8c00375954150f87ce7d42dae09b6c1153c1300e0abf3fc60c3faf670bbd5"
    for game in make_games("2024-01", 20, 3):
        board = chess.Board()
        for san in game.moves:
            assert board.san(board.push_san(san) and board.pop()) == san
            board.push_san(san)


def test_a_month_has_games_for_every_branch_of_the_validation(tmp_path: Path, month: Path) -> None:
    summary = validate([month], tmp_path / "all")
    assert (summary.total_games, summary.oracle_games) == (240, 0)
    assert set(summary.reasons) == {"too_short"}
    assert summary.flags["result_conflict"] > 0
    assert summary.duplicate_games > 0
    assert min(summary.phases[p] for p in ("opening", "middlegame", "endgame")) > 200
    filters = ValidateConfig(elo_floor=2300, time_controls=("rapid",), drop_abandoned=True)
    reasons = validate([month], tmp_path / "filtered", filters).reasons
    assert set(reasons) == {"too_short", "below_elo", "other_time_control", "abandoned"}
