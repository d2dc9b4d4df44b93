"""All laws hold for what is built, and none raises for a damaged file."""

from pathlib import Path

import pytest

from gristmill.families import Subject, check

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
