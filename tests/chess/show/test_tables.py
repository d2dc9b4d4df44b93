"""Tables of a month: what chooses them, what names their rows, and the positions drawn of these."""

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from gristmill.browse.opening import Files
from gristmill.browse.source import Record, Stored
from gristmill.chess import SpliceConfig, build_splice_cache, build_splice_dataset
from gristmill.chess.format.rows import moves_of
from gristmill.chess.show.board import board_svg
from gristmill.chess.show.tables import tables
from gristmill.families import Misuse


def opened(asset: str, folder: Path) -> dict[str, Stored]:
    return {each.name: each for each in tables(asset, folder, Files(folder))}


def row(table: Stored, number: int) -> Record:
    [record] = table.open().read(number, 1, 9)
    return record


def text_of(table: Stored, number: int, ply: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(*table.drawn(row(table, number), {"ply": ply}))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_game_is_drawn_at_its_end_or_after_some_plies(valid: Path) -> None:
    table = opened("chess/valid_games", valid)["games"]
    plies = row(table, 3).values["plies"]
    assert f"ply {plies} · " in text_of(table, 3)
    assert text_of(table, 3, plies) == text_of(table, 3)
    assert "ply 7 · opening · black" in text_of(table, 3, 7)
    assert "ply 0 · white to move" in text_of(table, 3, 0)
    for ply in (-1, plies + 1):
        with pytest.raises(Misuse, match=f"--ply {ply}: the row has {plies} plies"):
            text_of(table, 3, ply)


def test_a_game_has_pictures_of_its_middle_and_its_end(valid: Path) -> None:
    table = opened("chess/valid_games", valid)["games"]
    record = row(table, 3)
    plies, players = record.values["plies"], record.values["headers.White"]
    pictures = table.pictures(record)
    assert [each.title for each in pictures] == [f"ply {plies // 2}", f"ply {plies}"]
    assert all(players[:12] in each.svg for each in pictures)


def test_samples_are_drawn_at_their_splice(valid: Path, dataset: Path, tmp_path: Path) -> None:
    game = shutil.copytree(dataset, tmp_path / "elite_game")
    build_splice_cache(game, game / "runtime_splice_cache")
    build_splice_dataset(valid, tmp_path / "cap2", SpliceConfig(max_samples_per_game=2))
    cached = opened("chess/splice_cache", game / "runtime_splice_cache")["val"]
    first = row(opened("chess/game_dataset", game)["val"], 0).values
    title = f"game {first['game_id'][:10]} · {first['result']}"
    [picture] = cached.pictures(row(cached, 1))
    assert picture.svg == board_svg(moves_of(first)[:9], title, "opening")
    assert "ply 9 · opening · black" in text_of(cached, 1)
    legacy = opened("chess/splice_dataset", tmp_path / "cap2")["val"]
    sample = row(legacy, 1)
    [picture] = legacy.pictures(sample)
    assert picture.title == f"ply {sample.values['ply']}"
    assert f"next move {sample.values['next_move']}" in picture.svg
    assert f"· {sample.values['phase']} · " in text_of(legacy, 1)


@pytest.mark.parametrize("asset", ["chess/game_dataset", "chess/splice_cache", "chess/subset"])
def test_a_split_is_chosen_by_its_option(asset: str, tmp_path: Path) -> None:
    chosen = {name: table.chosen for name, table in opened(asset, tmp_path).items()}
    splits = {split: {"split": split} for split in ("train", "val", "test")}
    assert chosen == splits | ({"vocabulary": {}} if asset == "chess/subset" else {})


def test_tables_of_games_are_asked_for_ids(valid: Path, tmp_path: Path) -> None:
    for name, table in opened("chess/valid_games", valid).items():
        assert table.ids == ("game_id",), name
        assert set(table.ids) <= set(table.open().types), name
    (tmp_path / "x.pgn").touch()
    assert opened("chess/elite_pgn", tmp_path)["x.pgn"].ids == ()
