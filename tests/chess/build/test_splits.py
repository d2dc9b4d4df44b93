"""Splits of games: leakage, seeds, live bot games."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gristmill.chess import (
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_dataset,
    validate,
)
from gristmill.chess.build.splits import SplitLeakage
from gristmill.chess.config import SPLITS
from gristmill.chess.read.row_batches import RowBatch
from gristmill.contract import BadInput
from tests.chess.build.chain import live_row, rows


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

    monkeypatch.setattr("gristmill.chess.build.splits.splits_of", by_place)
    for build, config in (
        (build_game_dataset, GameConfig(games="all", min_context=1)),
        (build_splice_dataset, SpliceConfig(games="all", min_context=1)),
    ):
        with pytest.raises(SplitLeakage, match="move sequences are in more than one split"):
            build(valid, tmp_path / build.__name__, config)  # type: ignore[operator]
