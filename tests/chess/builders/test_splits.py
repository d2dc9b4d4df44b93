"""Splits of games: leakage, seeds, live bot games."""

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
from gristmill.chess.format.move_keys import split_of
from gristmill.chess.read.row_batches import RowBatch
from gristmill.contract import BadInput
from gristmill.provenance.record import config_fields
from tests.chess.builders.chain import live_row, rows


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
