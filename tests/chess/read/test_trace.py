"""From samples back to their games in the PGN and in the drop."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chess
import pytest

from gristmill.chess import GameSpliceDataset, trace
from gristmill.chess.format.folders import Sidecar
from gristmill.chess.read.trace import Trace as GameTrace
from gristmill.chess.read.trace import find, places, traced
from gristmill.contract import BadInput, Trace
from gristmill.families import Request
from gristmill.provenance.trace_inputs import NotTraced


def test_another_pgn_and_an_unknown_split_are_refused(valid, dataset, tmp_path):
    (tmp_path / "x.pgn").write_bytes(b"?")
    with pytest.raises(BadInput, match="does not have the"):
        trace(valid, 0).pgn(tmp_path / "x.pgn")
    for path in (valid, dataset):
        with pytest.raises(BadInput, match="split must be one of"):
            trace(path, 0, "dev")
    with pytest.raises(BadInput, match="has no sidecar/"):
        trace(tmp_path, 0)


def test_rows_lead_back_to_their_bytes_and_none_beyond_the_last_is_traced(valid, dataset, month):
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
    recorded = Sidecar.open(valid, "games")
    assert recorded
    for row in (0, recorded.games - 1):
        origin = trace(valid, row)
        assert origin.pgn(month).startswith(b'[Event "')
        assert (None, row) in find(valid, origin.row["game_id"])
    for row in (-1, recorded.games):
        with pytest.raises(BadInput, match=f"no row {row}"):
            trace(valid, row)


def test_a_game_is_traced_by_number_and_by_id(dataset, valid):
    def row(path: Path) -> object:
        return json.loads(path.read_text().splitlines()[2])

    [found] = places(dataset, "2", "val")
    assert trace(dataset, *found).row == row(dataset / "val.jsonl")
    game_id = trace(dataset, *found).row["game_id"]
    again = places(dataset, game_id, None)
    assert found in again and {trace(dataset, *each).row["game_id"] for each in again} == {game_id}
    assert places(dataset, "2", None) == [(2, "train")]
    assert places(valid, "2", None) == [(2, None)]
    assert trace(valid, 2).row == row(valid / "valid_games.jsonl")
    with pytest.raises(BadInput, match="there is no game"):
        places(dataset, game_id, "test")


MONTHS = ["2024-01", "2024-02"]
"""Of a zip, and of a PGN that is not packed."""


def _steps(asset: str, path: Path, which: object, split: str | None = None) -> list[Trace]:
    return list(traced(f"chess/{asset}", Request(path, str(which), {"split": split})))


def _game(root: Path, steps: Sequence[Trace]) -> tuple[dict[str, Any], bytes]:
    """The row that was traced, and its bytes in the drop."""
    row = next(step for step in steps if isinstance(step, GameTrace))
    pgn, drop = (step.facts() for step in steps[-2:])
    begin, end = row.pgn_offset, row.pgn_offset + row.pgn_bytes
    published = (root / str(pgn["pgn_file"])).read_bytes()[begin:end]
    raw = root / str(drop["raw_file"])
    if "raw_member" in drop:
        with zipfile.ZipFile(raw) as archive:
            unpacked = archive.read(str(drop["raw_member"]))
        place = drop["raw_unpacked_bytes"]
    else:
        unpacked, place = raw.read_bytes(), drop["raw_bytes"]
    assert place == f"{begin}-{end}"
    assert unpacked[begin:end] == published
    return row.row, published


def _is_game_of(row: dict[str, Any], data: bytes) -> None:
    chess_pgn = pytest.importorskip("chess.pgn")
    game = chess_pgn.read_game(io.StringIO(data.decode()))
    moves = [move.uci() for move in game.mainline_moves()]
    assert moves == row["moves"]
    assert data.count(b"[Event ") == 1


@pytest.mark.parametrize("month", MONTHS)
@pytest.mark.parametrize(("split", "sample"), [("train", 0), ("train", 999), ("test", 40)])
def test_a_sample_of_the_cache_is_a_move_of_the_traced_game(sample_root, month, split, sample):
    dataset = sample_root.data / f"chess/dataset/elite_{month}_game"
    steps = _steps("splice_cache", dataset / "runtime_splice_cache", sample, split)
    row, data = _game(sample_root.data, steps)
    _is_game_of(row, data)
    read = GameSpliceDataset(dataset, split)[sample]
    index = int(str(steps[0].facts()["splice_index"]))
    assert read.next_move == row["moves"][index + 1]
    assert read.context == row["moves"][: index + 1]


@pytest.mark.parametrize("month", MONTHS)
@pytest.mark.parametrize(("split", "sample"), [("train", 0), ("train", 1), ("val", 17)])
def test_a_legacy_splice_is_a_move_of_the_traced_game(sample_root, month, split, sample):
    folder = sample_root.data / f"chess/dataset/elite_{month}_cap8"
    steps = _steps("splice_dataset", folder, sample, split)
    row, data = _game(sample_root.data, steps)
    _is_game_of(row, data)
    line = json.loads((folder / f"{split}.jsonl").read_bytes().splitlines()[sample])
    assert steps[0].facts()["splice_index"] == line["splice_index"]
    assert row["game_id"] == line["game_id"]
    assert row["moves"][: len(line["context"])] == line["context"]
    assert row["moves"][line["splice_index"] + 1] == line["next_move"]


def test_samples_that_do_not_exist_are_refused(sample_root):
    cache = sample_root.data / "chess/dataset/elite_2024-01_game/runtime_splice_cache"
    splices = sample_root.data / "chess/dataset/elite_2024-01_cap8"
    lines = (splices / "train.jsonl").read_bytes().count(b"\n")
    assert _steps("splice_dataset", splices, lines - 1)
    for asset, folder, sample in (
        ("splice_cache", cache, 10**7),
        ("splice_dataset", splices, 10**7),
        ("splice_dataset", splices, lines),
    ):
        with pytest.raises(BadInput, match=f"no sample {sample}"):
            _steps(asset, folder, sample)


def test_all_games_of_a_splice_are_found_and_none_of_other_moves(sample_root, tmp_path):
    data = sample_root.copy(tmp_path).data
    games = data / "chess/validated/elite_2024-01"
    lines = (games / "valid_games.jsonl").read_bytes().splitlines(keepends=True)
    first = json.loads(lines[0])
    twin = lines[2].replace(json.loads(lines[2])["game_id"].encode(), first["game_id"].encode())
    (games / "valid_games.jsonl").write_bytes(b"".join([*lines[:2], twin, *lines[3:]]))
    assert find(games, first["game_id"]) == [(None, 0), (None, 2)]
    assert find(games, first["game_id"], first["moves"]) == [(None, 0)]
    games = data / "chess/validated/elite_2024-01/valid_games.jsonl"
    games.write_bytes(games.read_bytes().replace(b'"moves": ["', b'"moves": ["x'))
    with pytest.raises(NotTraced, match="with the moves of this sample"):
        _steps("splice_dataset", data / "chess/dataset/elite_2024-01_cap8", 3)
