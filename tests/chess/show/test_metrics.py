"""Numbers for the UI: those of the reports that an artifact holds."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

from gristmill.chess import SpliceConfig, build_splice_cache, build_splice_dataset
from gristmill.chess.show.metrics import (
    archive_figures,
    cache_figures,
    dataset_figures,
    splice_figures,
    validated_figures,
)
from gristmill.provenance import RECORD
from gristmill.publish.build import Published


def published(folder: Path) -> Published:
    record = SimpleNamespace(partition="2024-01")
    return Published(folder, record, rebuilt=True)  # type: ignore[arg-type]


def test_a_month_names_its_origin_and_its_files(tmp_path: Path) -> None:
    file = {"bytes": 1234, "sha256": "ab" * 32}
    http = {"url": "x", "bytes": 1234, "etag": "", "last_modified": "Mon", "requests": 2}
    source = {"origin": "https://x/y.zip", "archive": file, "pgn": file, "http": http}
    (tmp_path / "source.json").write_text(json.dumps(source))
    lines = str(archive_figures(published(tmp_path))["source"]).splitlines()[2:]
    assert [line.split("|")[1].strip().replace("\\", "") for line in lines] == [
        "origin", "archive", "pgn", "last_modified", "requests"
    ]  # fmt: skip
    assert "1,234 bytes" in lines[1]


def test_the_numbers_of_a_month_are_those_of_its_profile(valid: Path) -> None:
    profile = json.loads((valid / "profile.json").read_text())
    numbers = validated_figures(published(valid))
    games, invalid = profile["games"], sum(profile["reasons"].values())
    assert numbers["rows"] == games
    assert numbers["mean_plies"] == round(profile["plies"] / games, 5)
    assert numbers["valid_percent"] == round(100 * round(games / (games + invalid), 5), 3)
    assert numbers["openings_met"] == len(profile["openings"])
    lengths = {name: n for name, n in numbers.items() if name.startswith("plies_from/")}
    assert list(lengths) == [f"plies_from/{low:03d}" for low in range(0, 201, 40)]
    below = sum(n for low, n in profile["plies_bins"].items() if int(low) < 40)
    assert lengths["plies_from/000"] == below
    assert sum(map(int, lengths.values())) == games
    assert not any(name.startswith("drift") for name in numbers)


def test_a_month_with_a_published_month_before_has_drift(valid: Path, tmp_path: Path) -> None:
    month = shutil.copytree(valid, tmp_path / "elite_2024-01")
    before = shutil.copytree(valid, tmp_path / "elite_2023-12")
    assert "drift" not in validated_figures(published(month))
    (before / RECORD).touch()
    numbers = validated_figures(published(month))
    assert numbers["drift/white_wins"] == 0
    assert "drift" in numbers


def test_rows_are_games_of_a_dataset_and_samples_of_the_others(
    valid: Path, dataset: Path, tmp_path: Path
) -> None:
    games = sum(
        (dataset / f"{split}.jsonl").read_text().count("\n") for split in ("train", "val", "test")
    )
    assert dataset_figures(published(dataset))["rows"] == games
    cache = build_splice_cache(dataset, tmp_path / "cache")
    figures = cache_figures(published(tmp_path / "cache"))
    assert figures["rows"] == sum(cache.samples.values())
    train = str(figures["samples_by_split"]).splitlines()[2]
    assert train.startswith(f"| train | {cache.games['train']:,} | {cache.samples['train']:,} | ")
    config = SpliceConfig(max_samples_per_game=2)
    splices = build_splice_dataset(valid, tmp_path / "splices", config)
    figures = splice_figures(published(tmp_path / "splices"))
    assert figures["rows"] == sum(splices.samples.values())
    head, _, train, *_ = str(figures["samples_by_split"]).splitlines()
    assert "| split | games | samples | endgame | middlegame | opening |" in head
    assert train.startswith(f"| train | {splices.games['train']} | {splices.samples['train']} | ")
