"""Tracing a row to its PGN: the first and the last row, and rows that do not exist."""

import json
from pathlib import Path

import chess
import pytest

from gristmill.chess import trace
from gristmill.chess.format.folders import Sidecar
from gristmill.chess.read.trace import find, traces
from gristmill.contract import BadInput


def test_the_first_and_the_last_row_are_traced_and_no_row_beyond(valid: Path, month: Path) -> None:
    recorded = Sidecar.open(valid, "games")
    assert recorded
    for row in (0, recorded.games - 1):
        origin = trace(valid, row)
        assert origin.pgn(month).startswith(b'[Event "')
        assert (None, row) in find(valid, origin.row["game_id"])
    for row in (-1, recorded.games):
        with pytest.raises(BadInput, match=f"no row {row}"):
            trace(valid, row)


def test_another_pgn_and_an_unknown_split_are_refused(
    valid: Path, dataset: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.pgn").write_bytes(b"?")
    with pytest.raises(BadInput, match="does not have the"):
        trace(valid, 0).pgn(tmp_path / "x.pgn")
    for path in (valid, dataset):
        with pytest.raises(BadInput, match="split must be one of"):
            trace(path, 0, "dev")
    with pytest.raises(BadInput, match="has no sidecar/"):
        trace(tmp_path, 0)


def test_a_row_leads_back_to_its_bytes(valid: Path, dataset: Path, month: Path) -> None:
    for path, split, row in ((valid, None, 17), (dataset, "train", 30), (dataset, "test", 2)):
        traced = trace(path, row, split)
        text = traced.pgn(month).decode()
        assert text.startswith('[Event "')
        words = text.split("\n\n")[1].split()
        sans = [word for word in words[:-1] if not word[0].isdigit()]
        board = chess.Board()
        assert [board.push_san(san).uci() for san in sans] == traced.row["moves"]
        assert (split, row) in find(path, traced.row["game_id"])
        assert traced.source["name"] == month.name


def test_a_game_is_traced_by_number_and_by_id(dataset: Path, valid: Path) -> None:
    def row(path: Path) -> object:
        return json.loads(path.read_text().splitlines()[2])

    [found] = traces(dataset, "2", "val")
    assert found.row == row(dataset / "val.jsonl")
    game_id = found.row["game_id"]
    assert game_id in [trace.row["game_id"] for trace in traces(dataset, game_id, None)]
    assert traces(dataset, "2", None)[0].row == row(dataset / "train.jsonl")
    assert traces(valid, "2", None)[0].row == row(valid / "valid_games.jsonl")
    with pytest.raises(BadInput, match="there is no game"):
        traces(dataset, game_id, "test")
