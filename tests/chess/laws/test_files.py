"""All laws hold for what is built, and none raises for a damaged file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.chess.format.folders import GAME
from gristmill.chess.laws.files import Law
from gristmill.chess.laws.game_dataset import dataset_laws
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


@pytest.mark.parametrize(
    ("folder", "laws", "name", "ply", "by"),
    [("valid", validated_laws, "games", 40, 1), ("game", dataset_laws, "test", 9, 3)],
)
def test_a_folder_without_a_record_is_replayed(
    copy: Path, folder: str, laws: Law, name: str, ply: int, by: int
) -> None:
    assert list(laws(Subject(copy / folder, has_record=False))) == []
    flip(copy / folder / "sidecar" / f"{name}.phases.bin", ply, by)
    # A record has the hashes, and `gristmill verify --rebuild` makes the phases again.
    assert list(laws(Subject(copy / folder))) == []
    [violation] = laws(Subject(copy / folder, has_record=False))
    file = "valid_games.jsonl" if name == "games" else f"{name}.jsonl"
    assert violation.law == "phases_rederived"
    assert violation.where == f"{file}: ply {ply} of the rows from byte 0 on"
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
