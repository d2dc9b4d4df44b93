"""Markdown of a month: small documents, right numbers, and no text that escapes its place."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

from gristmill.chess import SpliceConfig, build_splice_cache, build_splice_dataset, validate
from gristmill.chess.samples import write_month
from gristmill.chess.show.preview import (
    archive_figures,
    cache_figures,
    dataset_figures,
    dataset_preview,
    drift,
    invalid_reasons,
    length_bars,
    openings,
    positions,
    read_profile,
    splice_figures,
    validated_figures,
    validated_preview,
)
from gristmill.provenance import RECORD
from gristmill.publish.build import Published
from tests.drawings import SVG, images


def test_the_documents_of_a_month(valid: Path, dataset: Path) -> None:
    profile = read_profile(valid)
    documents = validated_preview(valid, profile)
    assert next(iter(documents)) == "picture"
    assert list(documents)[1:] == ["distributions", "openings", "reasons", "positions", "drift"]
    assert sum(len(document.encode()) for document in documents.values()) < 100_000
    assert all(value == 0 for value in drift(profile, profile).values())
    assert f"| too_short | invalid | {profile['reasons']['too_short']} |" in documents["reasons"]
    boards = images(documents["positions"])
    assert len(boards) == 6
    for svg in boards + images(documents["distributions"]):
        ET.fromstring(svg)
    phases = [next(w for w in ("opening", "middlegame", "endgame") if w in svg) for svg in boards]
    assert phases[0] == "opening"
    assert "| E20 | Nimzo-Indian Defense |" in documents["openings"]
    splits = dataset_preview(dataset)
    assert splits["splits"].count("\n") == 4
    assert sum(len(document.encode()) for document in splits.values()) < 100_000


def test_another_month_drifts(valid: Path, tmp_path: Path) -> None:
    write_month(tmp_path / "b.pgn", "2024-02", 120, 12)
    validate([tmp_path / "b.pgn"], tmp_path / "b")
    differences = drift(read_profile(tmp_path / "b"), read_profile(valid))
    assert differences["openings"] > 1
    assert set(differences) >= {"white_wins", "draws", "mean_plies", "invalid_games"}


def test_length_bars_count_every_game() -> None:
    assert length_bars({"0": 1, "10": 2, "20": 3, "190": 4, "210": 5, "1990": 6}) == [
        ("0", 3), ("20", 3), *((str(low), 0) for low in range(40, 180, 20)),
        ("180", 4), ("200–", 11),
    ]  # fmt: skip


def test_text_of_a_pgn_cannot_leave_its_cell(tmp_path: Path) -> None:
    hostile = "](x) | <script>`&" + "x" * 200
    pgn = tmp_path / "w.pgn"
    moves = " ".join(("e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Ba4", "Nf6", "O-O", "Be7"))
    tags = f'[White "{hostile}"]\n[Black "\\u202e"]\n[Result "1-0"]\n'
    tags += f'[ECO "C60"]\n[Opening "{hostile}"]'
    pgn.write_text(f"{tags}\n\n{moves} 1-0\n\n")
    validate([pgn], tmp_path / "v")
    documents = validated_preview(tmp_path / "v")
    assert "<script" not in "".join(documents.values())
    row = documents["openings"].splitlines()[2]
    assert row.count("|") - row.count("\\|") == 7
    assert len(row) < 140
    assert ET.fromstring(images(positions(tmp_path / "v"))[0]).tag == f"{SVG}svg"
    assert (tmp_path / "v" / "valid_games.jsonl").read_text().count("\n") == 1


def test_drift_is_the_difference_to_the_month_before() -> None:
    before = {
        "games": 10,
        "plies": 500,
        "winners": {"W": 5, "B": 4, "D": 1},
        "phases": {"opening": 100, "middlegame": 300, "endgame": 100},
        "reasons": {},
        "openings": {"A00": [10, 5, 1, 4, ""]},
    }
    month = {
        "games": 8,
        "plies": 480,
        "winners": {"W": 2, "B": 4, "D": 2},
        "phases": {"opening": 48, "middlegame": 240, "endgame": 192},
        "reasons": {"too_short": 2},
        "openings": {"A00": [4, 1, 1, 2, ""], "B00": [4, 1, 1, 2, ""]},
    }
    assert drift(month, before) == {
        "white_wins": -25.0,
        "draws": 15.0,
        "mean_plies": 10.0,
        "opening_positions": -10.0,
        "endgame_positions": 20.0,
        "invalid_games": 20.0,
        "openings": 50.0,
    }


def test_openings_are_ranked_and_the_rest_is_counted() -> None:
    codes = {f"A{number:02d}": [100 - number, 50, 0, 0, f"name {number}"] for number in range(17)}
    lines = openings({"openings": codes}).splitlines()
    assert lines[2] == "| A00 | name 0 | 100 | 50.0 % | 0.0 % | 0.0 % |"
    assert len(lines) == 2 + 15 + 1
    assert lines[-1].startswith("| … | 2 more codes | 169 |")


def test_reasons_and_flags_are_ranked() -> None:
    profile = {"reasons": {"a": 1, "b": 2000}, "flags": {"c": 3}, "duplicate_games": 4}
    assert invalid_reasons(profile).splitlines()[2:] == [
        "| b | invalid | 2,000 |",
        "| a | invalid | 1 |",
        "| c | flagged | 3 |",
        "| same moves as an earlier game | noted | 4 |",
    ]


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
