"""Splits of games, and games that equal an earlier one."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gristmill.chess import (
    GameConfig,
    MonthConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_dataset,
    validate,
)
from gristmill.chess.builders.splits import SplitLeakage
from gristmill.chess.config import SPLITS
from gristmill.chess.format.folders import split_of
from gristmill.chess.laws.datasets import dataset_laws
from gristmill.chess.laws.games import validated_laws, validated_notes
from gristmill.chess.read.row_batches import RowBatch
from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.provenance.record import config_fields
from tests.chess.both_readers import both_ways
from tests.chess.builders.chain import digests, live_row, rows


@pytest.mark.real
def test_no_leakage_between_real_files_that_share_games(real: Path, tmp_path: Path) -> None:
    pgns = [real / "pgn" / f"pgnmentor_{name}.pgn" for name in ("Ding", "Caruana")]
    summary = validate(pgns, tmp_path / "v")
    assert summary.duplicate_games > 20
    counted = build_game_dataset(tmp_path / "v", tmp_path / "g")
    assert counted.shared_sequences == 0
    assert counted.duplicate_games > 0
    sequences = [
        {tuple(row["moves"]) for row in rows(tmp_path / "g" / f"{s}.jsonl")} for s in SPLITS
    ]
    assert not (sequences[0] & sequences[1] or sequences[0] & sequences[2])
    assert not sequences[1] & sequences[2]
    total = sum(counted.games.values())
    assert abs(counted.games["train"] / total - 0.8) < 0.03
    # The shuffle of ids leaks: the same game under both players.
    shuffled = build_game_dataset(tmp_path / "v", tmp_path / "s", GameConfig(split="shuffle"))
    again = tmp_path / "reference"
    validate(pgns, again, ValidateConfig(compat="reference"))
    leaky = build_game_dataset(again, tmp_path / "leaky", GameConfig(split="shuffle"))
    assert leaky.shared_sequences > 0
    assert shuffled.games.keys() == counted.games.keys()


def _with_twins(path: Path, games: int) -> list[list[str]]:
    """Rows of games of 30 moves by lot, and of copies that end eight moves earlier."""
    dice = random.Random(5)
    squares = [file + rank for file in "abcdefgh" for rank in "12345678"]
    whole = [["".join(dice.sample(squares, 2)) for _ in range(30)] for _ in range(games)]
    every = [*whole, *(moves[:22] for moves in whole)]
    of_games = [{**live_row(moves_uci=moves), "game_id": str(i)} for i, moves in enumerate(every)]
    path.write_text("".join(json.dumps(row) + "\n" for row in of_games))
    return every


def _openings(out: Path, plies: int) -> list[set[tuple[str, ...]]]:
    """By split, the first moves that its games have."""
    return [{tuple(r["moves"][:plies]) for r in rows(out / f"{s}.jsonl")} for s in SPLITS]


@pytest.mark.parametrize("plies", [1, 16, 22])
def test_no_opening_is_in_two_splits_where_it_decides(tmp_path: Path, plies: int) -> None:
    path = tmp_path / "valid_games.jsonl"
    every = _with_twins(path, 60)
    build_game_dataset(path, tmp_path / "moves_game")
    by_split = _openings(tmp_path / "moves_game", 22)
    assert by_split[0] & by_split[1] and by_split[0] & by_split[2]
    config = GameConfig(split="opening", opening_plies=plies, share_bytes=4_000)
    build_game_dataset(path, tmp_path / "x_game", config)
    train, val, test = _openings(tmp_path / "x_game", plies)
    assert train and val and test and not (train & val or train & test or val & test)
    # The rule, in other words than those of the code.
    keys = [hashlib.sha256(" ".join(moves[:plies]).encode()).digest()[:8] for moves in every]
    places = split_of(
        np.array([int.from_bytes(key, "big") for key in keys], np.uint64), 7, 0.8, 0.1
    )
    for number, split in enumerate(SPLITS):
        ids = [row["game_id"] for row in rows(tmp_path / "x_game" / f"{split}.jsonl")]
        assert ids == [str(i) for i in np.flatnonzero(places == number)]
    build_splice_dataset(
        path, tmp_path / "x_cap", SpliceConfig(split="opening", opening_plies=plies)
    )
    for split in SPLITS:
        of_games = {row["game_id"] for row in rows(tmp_path / "x_game" / f"{split}.jsonl")}
        assert {row["game_id"] for row in rows(tmp_path / "x_cap" / f"{split}.jsonl")} == of_games
    said = {"split_rule": "opening_key", "opening_plies": plies}
    stats = json.loads((tmp_path / "x_game" / "stats.json").read_text())
    params = json.loads((tmp_path / "x_cap" / "stats.json").read_text())["params"]
    assert said.items() <= stats.items() and said.items() <= params.items()
    assert params["seed"] == 7


def test_a_game_shorter_than_the_opening_is_placed_by_all_its_moves(tmp_path: Path) -> None:
    path = tmp_path / "valid_games.jsonl"
    _with_twins(path, 60)
    build_game_dataset(path, tmp_path / "moves_game")
    long = GameConfig(split="opening", opening_plies=30)
    build_game_dataset(path, tmp_path / "x_game", long)
    for split in SPLITS:
        placed = (tmp_path / "x_game" / f"{split}.jsonl").read_bytes()
        assert placed == (tmp_path / "moves_game" / f"{split}.jsonl").read_bytes()


def test_the_length_of_the_opening_has_limits_and_moves_no_fingerprint() -> None:
    for kind in (GameConfig, SpliceConfig, MonthConfig):
        for plies in (0, 201):
            with pytest.raises(ValueError, match=r"opening_plies = .*from 1 to 200"):
                kind(opening_plies=plies)
        assert "opening_plies" not in config_fields(kind(), affecting_output=True)
    month = MonthConfig(split="opening", opening_plies=9)
    assert (month.game().opening_plies, month.splice().opening_plies) == (9, 9)


def test_another_seed_gives_another_split(valid: Path, tmp_path: Path) -> None:
    build_game_dataset(valid, tmp_path / "a", GameConfig(seed=7))
    build_game_dataset(valid, tmp_path / "b", GameConfig(seed=8))
    assert (tmp_path / "a" / "val.jsonl").read_bytes() != (
        tmp_path / "b" / "val.jsonl"
    ).read_bytes()


@pytest.mark.parametrize(
    "row",
    [
        live_row(source_file="lichess_live_bot"),
        live_row(headers={"LichessGameId": "abc"}),
        live_row(headers={"Event": "Lichess Bot Live"}),
    ],
)
def test_live_bot_games_are_refused(tmp_path: Path, row: dict[str, Any]) -> None:
    path = tmp_path / "valid_games.jsonl"
    path.write_text(json.dumps(live_row(headers={"LichessGameId": ""})) + "\n" + json.dumps(row))
    for build, allow in (
        (build_game_dataset, GameConfig(allow_live_bot_games=True)),
        (build_splice_dataset, SpliceConfig(allow_live_bot_games=True)),
    ):
        with pytest.raises(BadInput, match="live bot game") as caught:
            build(path, tmp_path / "no")  # type: ignore[operator]
        assert caught.value.row == 2
        assert not (tmp_path / "no").exists()
        build(path, tmp_path / build.__name__, allow)  # type: ignore[operator]
        made = "".join((tmp_path / build.__name__ / f"{s}.jsonl").read_text() for s in SPLITS)
        assert made.count("e2e4") >= 2


def test_an_archive_of_live_games_is_refused_by_its_path(tmp_path: Path) -> None:
    home = tmp_path / "Lichess_Bot_Archive"
    home.mkdir()
    path = home / "valid_games.jsonl"
    path.write_text(json.dumps(live_row()) + "\n")
    with pytest.raises(BadInput, match="archive of live bot games"):
        build_game_dataset(path, tmp_path / "out")


def test_a_split_that_leaks_is_not_built(
    valid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_place(batch: RowBatch, *_: object) -> NDArray[np.uint8]:
        return (np.arange(len(batch.columns)) % 2).astype(np.uint8)

    monkeypatch.setattr("gristmill.chess.builders.splits.splits_of", by_place)
    for build, config in (
        (build_game_dataset, GameConfig(games="all", min_context=1)),
        (build_splice_dataset, SpliceConfig(split="opening", games="all", min_context=1)),
    ):
        with pytest.raises(SplitLeakage, match="move sequences are in more than one split"):
            build(valid, tmp_path / build.__name__, config)  # type: ignore[operator]


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
