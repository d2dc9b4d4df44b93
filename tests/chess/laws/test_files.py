"""All laws hold for what is built, and none raises for a damaged file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.chess.format.sidecar import GAME
from gristmill.chess.laws import files
from gristmill.chess.laws.game_dataset import dataset_laws
from gristmill.chess.laws.splice_cache import cache_laws
from gristmill.chess.laws.validate import validated_laws
from gristmill.families import Subject, check
from tests.chess.laws.damage import flip

FOLDERS = {
    "chess/valid_games": "valid",
    "chess/game_dataset": "game",
    "chess/splice_cache": "game/runtime_splice_cache",
    "chess/splice_dataset": "splice",
}


@pytest.mark.parametrize(("asset", "folder"), FOLDERS.items())
def test_a_good_artifact_breaks_no_law(built: Path, asset: str, folder: str) -> None:
    assert list(check(asset, Subject(built / folder))) == []


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[1]", b"\xff\x00{"])
def test_no_damage_to_a_file_makes_a_law_raise(copy: Path, data: bytes | None) -> None:
    silent = set()
    for asset, name in FOLDERS.items():
        folder = copy / name
        for path in sorted(folder.rglob("*")):
            if path.is_dir() or (asset == "chess/game_dataset" and "cache" in str(path)):
                continue
            contents = path.read_bytes()
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            if not list(check(asset, Subject(folder))) and contents != (data or b""):
                silent.add(path.name)
            path.write_bytes(contents)
    # No count and no row depends on these; their hashes are in the record.
    assert silent <= {
        *("flagged_games.csv", "games.moves.u16.bin", "sources.json", "rows.json"),
        "vocab_rows_meta.json",
    }


def test_a_sample_of_a_good_artifact_breaks_no_law(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_REPLAYED", 4)
    assert list(validated_laws(Subject(built / "valid", sampled=True))) == []
    assert list(dataset_laws(Subject(built / "game", sampled=True))) == []
    assert list(cache_laws(Subject(built / "game" / "runtime_splice_cache", sampled=True))) == []


def test_the_same_games_are_replayed_each_time(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_REPLAYED", 4)
    codes = copy / "valid" / "sidecar" / "games.phases.bin"
    sampled = []
    for at in range(0, codes.stat().st_size, 997):
        flip(codes, at, 2)
        assert "phases_rederived" in {v.law for v in validated_laws(Subject(copy / "valid"))}
        first, second = (
            list(validated_laws(Subject(copy / "valid", sampled=True))) for _ in range(2)
        )
        assert first == second
        sampled.append("phases_rederived" in {violation.law for violation in first})
        flip(codes, at, 2)
    assert not all(sampled), "all games were replayed"


def test_a_sample_finds_phases_that_are_all_wrong(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_REPLAYED", 4)
    codes = copy / "valid" / "sidecar" / "games.phases.bin"
    codes.write_bytes(bytes(code ^ 2 for code in codes.read_bytes()))
    laws = {violation.law for violation in validated_laws(Subject(copy / "valid", sampled=True))}
    assert "phases_rederived" in laws


def test_a_wrong_phase_is_named_by_its_ply(copy: Path) -> None:
    flip(copy / "valid" / "sidecar" / "games.phases.bin", 40, 2)
    [violation] = [
        v for v in validated_laws(Subject(copy / "valid")) if v.law == "phases_rederived"
    ]
    assert violation.where == "valid_games.jsonl: ply 40 of the rows from byte 0 on"
    assert violation.found == "1 codes differ from the replay"


def test_a_game_record_without_a_row_breaks_a_law(copy: Path) -> None:
    file = copy / "valid" / "sidecar" / "games.games.bin"
    record = np.frombuffer(file.read_bytes(), GAME)[-1:].copy()
    record["plies"] = 0
    file.write_bytes(file.read_bytes() + record.tobytes())
    [violation] = validated_laws(Subject(copy / "valid"))
    records = file.stat().st_size // GAME.itemsize
    assert violation.law == "rows_counted"
    assert violation.found == f"found {records - 1}, recorded {records}"
