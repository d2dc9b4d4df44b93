"""Validation: bytes do not depend on workers, parts or ranges; ids not on the file."""

from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import (
    ValidateConfig,
    build_game_dataset,
    validate,
)
from gristmill.chess.config import SPLITS
from gristmill.run.parts import PartStore
from tests.chess.builders.chain import chain, digests, rows


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers_parts_or_ranges(month: Path, tmp_path: Path) -> None:
    one = chain([month], tmp_path / "one", 1, parts=False)
    assert chain([month], tmp_path / "kept", 2, parts=True) == one
    assert chain([month], tmp_path / "two", 2, parts=False) == one
    whole = tmp_path / "whole"
    whole.mkdir()
    validate([month], whole / "valid")
    build_game_dataset(whole / "valid", whole / "game")
    assert {k: v for k, v in one.items() if k.startswith(("valid", "game"))} == digests(whole)
    assert not list((tmp_path / "two").rglob("*.part"))


def test_a_killed_build_goes_on_with_its_parts(
    month: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts").mkdir()
    store = PartStore(tmp_path / "parts")
    config = ValidateConfig(share_bytes=12_000)
    validate([month], tmp_path / "whole", config)
    done: list[str] = []

    class Killed(Exception):
        pass

    finished = PartStore.finished

    def dying(of: PartStore, name: str) -> Any:
        if len(done) == 3:
            raise Killed
        done.append(name)
        return finished(of, name)

    monkeypatch.setattr(PartStore, "finished", dying)
    with pytest.raises(Killed):
        validate([month], tmp_path / "first", config, parts=store)
    monkeypatch.undo()
    before = {path: path.stat().st_mtime_ns for path in store.folder.glob("*.part")}
    assert len(before) == 3
    validate([month], tmp_path / "second", config, parts=store)
    assert digests(tmp_path / "second") == digests(tmp_path / "whole")
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_ids_do_not_depend_on_the_file_and_games_keep_their_split(
    month: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "some where" / "other.pgn"
    elsewhere.parent.mkdir()
    # The same games in the reverse order, in another file, beside the first.
    games = month.read_text().split("[Event ")[1:]
    elsewhere.write_text("".join("[Event " + game for game in reversed(games)))
    for name, pgns in (("a", [month]), ("b", [elsewhere]), ("both", [month, elsewhere])):
        validate(pgns, tmp_path / name)
        build_game_dataset(tmp_path / name, tmp_path / f"{name}_game")
    ids = [
        sorted(row["game_id"] for row in rows(tmp_path / name / "valid_games.jsonl"))
        for name in ("a", "b")
    ]
    assert ids[0] == ids[1]
    for split in SPLITS:
        a, b, both = (
            [tuple(row["moves"]) for row in rows(tmp_path / f"{name}_game" / f"{split}.jsonl")]
            for name in ("a", "b", "both")
        )
        assert sorted(a) == sorted(b)
        assert both == a + b
        assert a


def test_a_game_of_exactly_the_least_number_of_plies_is_valid(tmp_path: Path) -> None:
    moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6"
    games = [moves, moves.removesuffix(" Nf6")]
    pgn = tmp_path / "two.pgn"
    pgn.write_text("".join(f'[Event "{n}"]\n\n{game} 1-0\n\n' for n, game in enumerate(games)))
    summary = validate([pgn], tmp_path / "valid", ValidateConfig(min_plies=8))
    assert (summary.valid_games, summary.invalid_games) == (1, 1)
    (row,) = rows(tmp_path / "valid/valid_games.jsonl")
    assert len(row["moves"]) == 8
    assert "too_short" in (tmp_path / "valid/invalid_games.csv").read_text()
