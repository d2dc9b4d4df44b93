"""Byte ranges of a PGN file: the games do not depend on the cuts."""

from pathlib import Path

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.raw.pgn import plan
from gristmill.contract import BadInput
from tests.chess.both_readers import same_as_reference
from tests.chess.generated_pgn import write_games


def test_a_game_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.chess.raw.pgn.GAME_BYTES", 100_000)
    monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", 10_000)
    pgn = tmp_path / "open.pgn"
    pgn.write_text('[Event "a"]\n\n1. e4 *\n\n[Event "b"]\n\n1. e4 { ' + "x\n" * 200_000)
    with pytest.raises(BadInput, match=r"game at byte 22 has no end.*comment left open"):
        validate([pgn], tmp_path / "out", ValidateConfig(share_bytes=1000))


def test_games_are_read_by_windows_where_nothing_shows_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pgn = write_games(tmp_path / "made.pgn", 5, 60, 0.1)
    pgn.write_bytes(pgn.read_bytes().replace(b"[Event", b"[Evemt"))
    assert len(plan(pgn, 1000)) == 1
    for window in (1 << 20, 7_001):
        monkeypatch.setattr("gristmill.chess.raw.pgn._WINDOW", window)
        same_as_reference(pgn, tmp_path, share_bytes=window)


def test_a_comment_that_looks_like_the_start_of_a_game(tmp_path: Path) -> None:
    game = '[Event "E"]\n[White "A"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 '
    inside = "{ " + "x" * 300 + '\n\n[Event "inside"]\n\n1. d4 d5 1-0\n\n} 5. O-O Be7 1-0\n\n'
    pgn = tmp_path / "deceit.pgn"
    pgn.write_text((game + inside) * 40)
    for share_bytes in (64, 150, 333, 1 << 20):
        same_as_reference(pgn, tmp_path, share_bytes)
