"""Notes on months without a valid game, or without a game in a split."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gristmill.chess import ValidateConfig, build_game_dataset, validate
from gristmill.chess.config import GameConfig
from gristmill.chess.laws.notes import no_game, of_month, validated_notes
from gristmill.contract import Summary, counts_of

MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"

_SIXTH = [*enumerate(("d3", "c3", "h3", "a3"))]


def _game(result: str, moves: str = MOVES) -> str:
    return f'[Event "E"]\n[Result "{result}"]\n\n{moves} {result}\n\n'


def _record(config: ValidateConfig | GameConfig, summary: Summary) -> Any:
    return SimpleNamespace(artifact="x", config=asdict(config), counts=counts_of(summary))


def _notes(root: Path, text: str, **settings: Any) -> list[str]:
    """What is noted of the validated folder and of the dataset of a PGN."""
    (root / "x.pgn").write_text(text)
    asked = ValidateConfig(**settings)
    valid = _record(asked, validate([root / "x.pgn"], root / "valid", asked))
    game = _record(GameConfig(), build_game_dataset(root / "valid", root / "game"))
    notes = (
        *validated_notes(root / "valid"),
        *of_month(valid, root / "valid"),
        *no_game(game, root),
    )
    return [str(note) for note in notes]


def test_a_month_with_games_has_no_notes(built: Path, tmp_path: Path) -> None:
    # The sample month repeats games.
    assert [note.law for note in validated_notes(built / "valid")] == ["equal_games"]
    assert _notes(tmp_path, _game("1-0") + _game("1/2-1/2", f"{MOVES} 6. d3")) == []


def test_a_month_of_rejected_games_is_noted_with_reasons_and_settings(tmp_path: Path) -> None:
    text = "hello world\n\n" + _game("1-0", "1. e4 e5") * 2 + _game("1-0")
    valid, dataset = _notes(tmp_path, text, elo_floor=2000)
    assert valid == (
        "x/summary.json: no_valid_game: none of 4 games is valid: 1 empty_game, 2 too_short "
        "(min_plies = 8), 1 below_elo (elo_floor = 2000); change the setting under "
        "[chess.month] in gristmill.toml"
    )
    assert "there is no valid game" in dataset


def test_tags_that_were_not_utf8_are_noted_wherever_they_stand(tmp_path: Path) -> None:
    games = [f'[White "W{k}"]\n' + _game("1-0", f"{MOVES} 6. {move}") for k, move in _SIXTH]
    pgn = "".join(games).replace('"W2"', '"M\N{LATIN SMALL LETTER U WITH DIAERESIS}ller"')
    (tmp_path / "x.pgn").write_text(pgn, encoding="latin-1")
    validate([tmp_path / "x.pgn"], tmp_path / "valid", ValidateConfig())
    (note,) = validated_notes(tmp_path / "valid")
    assert note.law == "not_utf8"
    file = tmp_path / "valid/valid_games.jsonl"
    rows = file.read_bytes().splitlines(keepends=True)
    place = len(rows[0] + rows[1])
    assert f"1 games have U+FFFD in a tag, such as the row at byte {place}, where" in str(note)
    assert 'encoding = "latin-1"' in str(note)
    file.write_bytes(b"".join([rows[2], rows[0], rows[2][:-1]]))
    (note,) = validated_notes(tmp_path / "valid")
    assert "2 games have U+FFFD in a tag, such as the row at byte 0, where" in str(note)
    file.unlink()
    assert list(validated_notes(tmp_path / "valid")) == []
    (tmp_path / "x.pgn").write_text(pgn, encoding="utf-8")
    validate([tmp_path / "x.pgn"], tmp_path / "right", ValidateConfig())
    assert list(validated_notes(tmp_path / "right")) == []


def test_a_dataset_without_games_says_why(tmp_path: Path) -> None:
    text = (
        _game("1/2-1/2") + _game("1/2-1/2", f"{MOVES} 6. d3") + _game("1-0", "1. e4 e5 2. Nf3 Nc6")
    )
    (note,) = _notes(tmp_path, text, min_plies=2)
    assert (
        'none of 3 valid games is in a split: 2 have no winner (games = "decisive"), 1 too few '
        "moves (min_context = 8, min_target = 1); change the setting under [chess.month]"
    ) in note


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"equal_games": 1})])
def test_a_damaged_report_is_noted(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_text(text)
    assert list(validated_notes(tmp_path))


@pytest.mark.parametrize("games", [10_000, 9_999])
def test_a_month_far_from_the_month_before_is_noted(tmp_path: Path, games: int) -> None:
    month, before = tmp_path / "elite_2024-01", tmp_path / "elite_2023-12"
    for folder, won, lost in ((month, 60, 40), (before, 54, 46)):
        folder.mkdir()
        profile = {
            "games": games,
            "winners": {"W": won, "B": lost},
            "phases": {"opening": 50 + won - 56, "endgame": 50},
            "reasons": {"too_short": games // 4} if won == 60 else {},
            "openings": {"A00": [7, 0, 0, 0, ""], f"B{won}": [3, 0, 0, 0, ""]},
        }
        (folder / "profile.json").write_text(json.dumps(profile))
        (folder / "summary.json").write_text('{"equal_games": null}')
    record: Any = SimpleNamespace(counts={})
    found = [(each.law, each.found) for each in of_month(record, month)]
    rule = "6 % of the results, 20 % of the verdicts, 30 % of the openings would have to be others"
    assert found == [("drift", f"{rule} to be as those of 2023-12")] * (games == 10_000)
    assert list(of_month(record, before)) == []
    month.rename(tmp_path / "collection")
    assert list(of_month(record, tmp_path / "collection")) == []
