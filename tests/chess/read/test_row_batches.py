"""Batches of rows: what proves that a sidecar is that of the rows."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from gristmill.chess.format.folders import GAME, Sidecar
from gristmill.chess.read.row_batches import RowBatch, read_batch, row_ranges
from gristmill.contract import BadInput
from tests.chess.laws.damage import edit, flip

KEY = GAME.fields["move_key"][1] if GAME.fields else 0


@pytest.fixture
def games(valid: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(valid, tmp_path / "valid"))


def batch_of(games: Path, *, by_keys: bool = False, alone: bool = False) -> RowBatch:
    beside = None if alone else Sidecar.open(games, "games")
    [whole] = row_ranges(games / "valid_games.jsonl", 1 << 30, beside)
    return read_batch(whole, by_keys=by_keys)


def test_without_a_sidecar_the_keys_and_phases_are_those_that_it_had(games: Path) -> None:
    noted, alone = batch_of(games), batch_of(games, alone=True)
    for name in ("row", "plies", "move_key"):
        assert np.array_equal(noted.records[name], alone.records[name])
    assert np.array_equal(noted.codes, alone.codes)


@pytest.mark.parametrize(
    ("file", "place", "by_keys"),
    [
        ("games.moves.u16.bin", 0, False),  # a packed move
        ("games.games.bin", 0, False),  # where the first row begins
        ("games.games.bin", KEY, True),
    ],
)
def test_a_sidecar_of_other_rows_is_refused(
    games: Path, file: str, place: int, by_keys: bool
) -> None:
    flip(games / "sidecar" / file, place)
    with pytest.raises(BadInput, match="are not those of the sidecar"):
        batch_of(games, by_keys=by_keys)


def test_the_proof_by_keys_reads_no_packed_moves_and_the_other_no_keys(games: Path) -> None:
    keys = batch_of(games).records["move_key"].copy()
    flip(games / "sidecar" / "games.moves.u16.bin", 0)
    assert np.array_equal(batch_of(games, by_keys=True).records["move_key"], keys)
    flip(games / "sidecar" / "games.moves.u16.bin", 0)
    flip(games / "sidecar" / "games.games.bin", KEY)
    assert (batch_of(games).records["move_key"] != keys).sum() == 1


def test_rows_with_a_text_that_is_no_move_are_proved_by_keys(games: Path) -> None:
    edit(games / "valid_games.jsonl", b'"e2e4"', b'"e9e4"')
    moves = batch_of(games, alone=True).moves
    moves.astype("<u2").tofile(games / "sidecar" / "games.moves.u16.bin")
    with pytest.raises(BadInput, match="are not those of the sidecar"):
        batch_of(games)
