"""Terminal text: the game, the position or the sample that was asked for."""

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from gristmill.chess import SpliceConfig, build_splice_cache, build_splice_dataset
from gristmill.chess.read.trace import traces
from gristmill.chess.show.terminal import show
from gristmill.contract import BadInput
from gristmill.families import Misuse, Request


def text_of(path: Path, number: int, split: str = "train", ply: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(*show(Request(path, str(number), {"split": split, "ply": ply})))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def row(path: Path, number: int) -> dict:  # type: ignore[type-arg]
    return json.loads(path.read_text().splitlines()[number])


@pytest.fixture
def samples(dataset: Path, valid: Path, tmp_path: Path) -> Path:
    shutil.copytree(dataset, tmp_path / "elite_game")
    build_splice_cache(dataset, tmp_path / "elite_game" / "runtime_splice_cache")
    build_splice_dataset(valid, tmp_path / "elite_cap2", SpliceConfig(max_samples_per_game=2))
    return tmp_path


def test_a_game_is_shown_at_its_end_by_default(valid: Path) -> None:
    game = row(valid / "valid_games.jsonl", 3)
    text = text_of(valid, 3)
    assert f"game 3 · {game['result']} · {game['plies']} plies · {game['game_id']}" in text
    assert f"ply {game['plies']} · " in text
    assert "then" not in text
    assert f"White: {game['headers']['White']}" in text


def test_the_position_after_some_plies_names_both_sides_of_the_game(valid: Path) -> None:
    moves = row(valid / "valid_games.jsonl", 3)["moves"]
    text = text_of(valid, 3, ply=7)
    assert "ply 7 · black to move · opening" in text
    assert f"{' '.join(moves[:7])} " in text
    assert f"then {moves[7]}" in text
    assert "ply 0 · white to move · start" in text_of(valid, 3, ply=0)


def test_a_position_outside_the_game_is_refused(valid: Path) -> None:
    plies = row(valid / "valid_games.jsonl", 3)["plies"]
    text_of(valid, 3, ply=plies)
    for ply in (-1, plies + 1):
        with pytest.raises(BadInput, match=f"there is no position after {ply}"):
            text_of(valid, 3, ply=ply)


def test_a_game_of_a_split_is_shown(dataset: Path) -> None:
    game = row(dataset / "val.jsonl", 2)
    assert game["game_id"] in text_of(dataset, 2, "val")


def test_samples_of_a_cache_and_of_legacy_rows_are_shown(samples: Path) -> None:
    first = row(samples / "elite_game" / "val.jsonl", 0)
    text = text_of(samples / "elite_game" / "runtime_splice_cache", 1, "val")
    assert f"val sample 1 · next move {first['moves'][9]} · game {first['game_id']}" in text
    assert "ply 9 · " in text
    assert "cached phase opening" in text
    sample = row(samples / "elite_cap2" / "val.jsonl", 1)
    text = text_of(samples / "elite_cap2", 1, "val")
    assert f"val sample 1 · next move {sample['next_move']} · game {sample['game_id']}" in text
    assert f"splice_index: {sample['splice_index']}" in text


def test_a_sample_that_does_not_exist_is_refused(samples: Path) -> None:
    cache = samples / "elite_game" / "runtime_splice_cache"
    count = json.loads((cache / "manifest.json").read_text())["splits"]["val"]["sample_rows_total"]
    text_of(cache, count - 1, "val")
    with pytest.raises(BadInput, match=f"there is no sample {count}"):
        text_of(cache, count, "val")
    with pytest.raises(BadInput, match="there is no sample 1000000"):
        text_of(samples / "elite_cap2", 10**6, "val")
    for path in (cache, samples / "elite_cap2"):
        with pytest.raises(BadInput, match="split must be one of"):
            text_of(path, 0, "dev")
        with pytest.raises(Misuse, match="'-1' is not a sample number"):
            text_of(path, -1, "val")


def test_a_game_is_traced_by_number_and_by_id(dataset: Path, valid: Path) -> None:
    game_id = row(dataset / "val.jsonl", 2)["game_id"]
    assert [trace.row["game_id"] for trace in traces(dataset, "2", "val")] == [game_id]
    assert game_id in [trace.row["game_id"] for trace in traces(dataset, game_id, None)]
    assert traces(dataset, "2", None)[0].row == row(dataset / "train.jsonl", 2)
    assert traces(valid, "2", None)[0].row == row(valid / "valid_games.jsonl", 2)
    with pytest.raises(BadInput, match="there is no game"):
        traces(dataset, game_id, "test")
