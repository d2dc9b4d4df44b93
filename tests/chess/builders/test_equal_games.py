"""Games without players, of another month, and equal ones: counted, named, dropped if asked."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import (
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_dataset,
    validate,
)
from gristmill.chess.config import SPLITS, MonthConfig
from gristmill.chess.laws.game_dataset import dataset_laws
from gristmill.chess.laws.notes import validated_notes
from gristmill.chess.laws.validate import validated_laws
from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.provenance.record import config_fields
from tests.chess.both_readers import both_ways
from tests.chess.builders.chain import digests, rows

MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"
# The second form goes to python-chess.
FORMS = (MOVES, MOVES.replace("e4 e5", "e2e4 e5"))


def game(moves: str = MOVES, /, **more: str | None) -> str:
    result = more.pop("result", "1-0")
    tags = {"Event": "E", "White": "A", "Black": "B", "UTCDate": "2024.02.03", **more}
    lines = [f'[{name} "{value}"]\n' for name, value in tags.items() if value is not None]
    return "".join(lines) + f'[Result "{result}"]\n\n{moves} {result}\n\n'


def month(tmp_path: Path, text: str) -> tuple[Path, dict[str, Any]]:
    pgn = tmp_path / "lichess_elite_2024-02.pgn"
    pgn.write_text(text)
    validate([pgn], tmp_path / "valid", ValidateConfig(share_bytes=400))
    assert list(validated_laws(Subject(tmp_path / "valid"))) == []
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(compat="reference"))
    return tmp_path / "valid", json.loads((tmp_path / "valid/summary.json").read_text())


@pytest.mark.parametrize("moves", FORMS)
def test_valid_games_without_a_player_are_flagged_and_counted(tmp_path: Path, moves: str) -> None:
    missing: list[dict[str, str | None]] = [
        {"White": None, "Black": None}, {"White": "?", "Black": "?"}, {"White": ""},
        {"Black": None}, {"White": "?", "Event": "J\u00fcrgen"},
    ]  # fmt: skip
    named: list[dict[str, str | None]] = [{}, {"White": "??"}, {"Black": "!"}, {"White": "1"}]
    text = "".join(game(moves, **tags) for tags in [*missing, *named])
    valid, summary = month(tmp_path, text)
    assert summary["flag_counts"] == {"no_players": 5}
    with (valid / "flagged_games.csv").open(newline="") as table:
        flagged = [int(row["pgn_offset"]) for row in csv.DictReader(table)]
    starts = [len("".join(game(moves, **tags) for tags in missing[:n]).encode()) for n in range(5)]
    assert flagged == starts


@pytest.mark.parametrize("moves", FORMS)
def test_dates_outside_the_month_are_counted_and_noted(tmp_path: Path, moves: str) -> None:
    inside: list[dict[str, str | None]] = [
        {}, {"UTCDate": "2024.02.??"}, {"UTCDate": "????.??.??", "Date": "2024.02.29"},
        {"UTCDate": None}, {"UTCDate": None, "Date": "2023.??.??"}, {"Date": "2020.01.01"},
    ]  # fmt: skip
    outside: list[dict[str, str | None]] = [
        {"UTCDate": None, "Date": "2024.01.31"}, {"UTCDate": "2023.02.03", "Date": "2024.02.03"},
        {"UTCDate": "????.??.??", "Date": "2024.03.01"},
    ]  # fmt: skip
    first = "".join(game(moves, **tags) for tags in inside)
    valid, summary = month(tmp_path, first + "".join(game(moves, **tags) for tags in outside))
    assert summary["games_outside_month"] == {
        "games": 3,
        "first": {"tag": "Date", "value": "2024.01.31", "pgn_offset": len(first)},
    }
    (note,) = [note for note in validated_notes(valid) if note.law == "other_month"]
    assert note.found == (
        f"3 games have a date outside of the month, such as Date 2024.01.31 at byte {len(first)}"
    )
    (tmp_path / "x.pgn").write_text(first)
    named = validate([tmp_path / "x.pgn"], tmp_path / "any")
    assert named.games_outside_month == 0


def test_a_month_without_such_games_has_no_word_of_them(tmp_path: Path) -> None:
    valid, summary = month(tmp_path, game() + game(White="C"))
    assert list(summary)[-3:] == ["compat", "flag_counts", "duplicate_games"]
    assert summary["duplicate_games"] == 1
    assert list(validated_notes(valid)) == []


def test_equal_games_are_counted_noted_and_dropped_if_asked(tmp_path: Path) -> None:
    """The first of the equal games that can be spliced is taken; a draw is none of them."""
    games = [game(result="1/2-1/2"), game(), game(White="C"), game(), game(White="C"), game()]
    valid, summary = month(tmp_path, "".join(games))
    of_rows = rows(valid / "valid_games.jsonl")
    first = {"game_id": of_rows[1]["game_id"], "pgn_offset": len(games[0])}
    assert summary["equal_games"] == {"games": 4, "first": first}
    (note,) = validated_notes(valid)
    assert note.law == "equal_games"
    assert note.found.startswith(f"4 games are in the PGN once more, such as {first['game_id']}")

    every = build_game_dataset(valid, tmp_path / "every_game")
    assert (every.spliceable_games, every.dropped_duplicates) == (5, 0)
    assert not (tmp_path / "every_game/dropped_games.csv").exists()
    for share_bytes in (1, 1 << 20):
        out = tmp_path / f"{share_bytes}_game"
        config = GameConfig(drop_duplicates=True, share_bytes=share_bytes)
        once = build_game_dataset(valid, out, config)
        assert (once.spliceable_games, once.dropped_duplicates) == (2, 3)
        taken = [row["game_id"] for split in SPLITS for row in rows(out / f"{split}.jsonl")]
        ids = [row["game_id"] for row in of_rows]
        assert taken == [ids[1], ids[2]]
        assert (out / "dropped_games.csv").read_bytes().decode().split("\r\n") == [
            "game_id,row,first_row", f"{ids[3]},3,1", f"{ids[4]},4,2", f"{ids[5]},5,1", "",
        ]  # fmt: skip
        assert json.loads((out / "stats.json").read_text())["dropped_duplicates"] == 3
        assert list(dataset_laws(Subject(out))) == []
    assert digests(tmp_path / "1_game") == digests(tmp_path / f"{1 << 20}_game")
    shuffled = GameConfig(drop_duplicates=True, split="shuffle")
    assert build_game_dataset(valid, tmp_path / "s_game", shuffled).spliceable_games == 2
    spliced = build_splice_dataset(valid, tmp_path / "cap", SpliceConfig(drop_duplicates=True))
    assert spliced.spliceable_games == 2
    listed = (tmp_path / "cap/dropped_games.csv").read_bytes()
    assert listed == (tmp_path / "1_game/dropped_games.csv").read_bytes()


def test_rows_without_an_id_are_all_taken(tmp_path: Path) -> None:
    moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7"]
    line = json.dumps({"game_id": "", "winner_side": "W", "moves": moves}) + "\n"
    (tmp_path / "valid_games.jsonl").write_text(line * 3)
    config = GameConfig(drop_duplicates=True)
    summary = build_game_dataset(tmp_path / "valid_games.jsonl", tmp_path / "x_game", config)
    assert (summary.spliceable_games, summary.dropped_duplicates) == (3, 0)


def test_the_setting_counts_for_the_fingerprint_only_where_it_is_set() -> None:
    for config in (GameConfig, SpliceConfig):
        assert "drop_duplicates" not in config_fields(config(), affecting_output=True)
        assert config_fields(config())["drop_duplicates"] is False
        chosen = config_fields(config(drop_duplicates=True), affecting_output=True)
        assert chosen["drop_duplicates"] is True
    assert MonthConfig(drop_duplicates=True).game().drop_duplicates
    assert MonthConfig(drop_duplicates=True).splice().drop_duplicates


@pytest.mark.parametrize("text", ["", "\n\n", ";c\n", "Some words\n\nof a person\n", "{c}\n\n*\n"])
def test_a_file_without_a_game_is_refused(tmp_path: Path, text: str) -> None:
    pgn = tmp_path / "x.pgn"
    pgn.write_text(text)
    with pytest.raises(BadInput, match=r"x\.pgn: holds no game: no tag and no move.*bring a PGN"):
        validate([pgn], tmp_path / "out")
    pgn.write_text(text + "\n" + game("1. e4 e5"))
    summary = validate([pgn], tmp_path / "result")
    assert summary.valid_games == 0
    assert summary.reasons["too_short"] == 1
