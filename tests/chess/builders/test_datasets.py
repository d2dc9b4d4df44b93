"""Game datasets, their splice caches, legacy rows, and what all builders report."""

import json
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.chess.builders import datasets
from gristmill.chess.config import SPLITS
from gristmill.chess.format.folders import LAYOUT, SAMPLE_GAMES
from gristmill.contract import BadInput
from gristmill.run.progress import Progress, Report
from tests.chess import reference_rules
from tests.chess.builders.chain import digests, live_row, rows


@pytest.mark.parametrize("field", ["moves", "moves_uci"])
def test_rows_with_either_field_of_moves(valid, tmp_path, field):
    lines = []
    for row in rows(valid / "valid_games.jsonl"):
        del row["moves_uci" if field == "moves" else "moves"]
        lines.append(json.dumps(row, separators=(",", ":"), ensure_ascii=False))
    (tmp_path / "in").mkdir()
    bare = tmp_path / "in" / "valid_games.jsonl"
    bare.write_text("\n\n".join(lines) + "\n")
    build_game_dataset(bare, tmp_path / "bare", GameConfig(keep_headers=True, share_bytes=9_999))
    build_game_dataset(valid, tmp_path / "full", GameConfig(keep_headers=True))
    build_splice_cache(tmp_path / "bare", tmp_path / "bare_cache")
    build_splice_cache(tmp_path / "full", tmp_path / "full_cache")
    for split in SPLITS:
        name = f"{split}.jsonl"
        assert (tmp_path / "bare" / name).read_bytes() == (tmp_path / "full" / name).read_bytes()
        assert rows(tmp_path / "full" / name)[0]["headers"]["White"]
    found = digests(tmp_path / "full_cache")
    for split in SPLITS:
        del found[f"{split}/{SAMPLE_GAMES}"]
    assert digests(tmp_path / "bare_cache") == found


def test_games_without_packed_moves_give_the_other_files_alone(valid, tmp_path):
    """Months that were validated before keep their bytes."""
    shutil.copytree(valid, tmp_path / "before")
    (tmp_path / "before/sidecar/games.moves.u16.bin").unlink()
    made = {}
    for name, source in (("with", valid), ("without", tmp_path / "before")):
        build_game_dataset(source, tmp_path / name, GameConfig(share_bytes=40_000))
        build_splice_cache(tmp_path / name, tmp_path / name / "runtime_splice_cache")
        made[name] = digests(tmp_path / name)
    more = {f"sidecar/{split}.{kind}.bin" for split in SPLITS for kind in ("moves.u16", "spans")}
    more |= {f"runtime_splice_cache/{split}/{SAMPLE_GAMES}" for split in SPLITS}
    assert set(made["with"]) - set(made["without"]) == more
    assert made["without"].items() <= made["with"].items()


@pytest.mark.parametrize(
    ("kind", "taken"), [("decisive", "WB"), ("finished", "WDB"), ("all", "WDB?")]
)
def test_each_kind_of_games_takes_its_ends(tmp_path, kind, taken):
    path = tmp_path / "valid_games.jsonl"
    of_sides = [{**live_row(winner_side=side), "game_id": side} for side in "?WDB"]
    path.write_text("".join(json.dumps(row) + "\n" for row in of_sides))
    summary = build_game_dataset(path, tmp_path / "x_game", GameConfig(games=kind))
    written = rows(tmp_path / "x_game" / "train.jsonl")
    assert sorted(row["winner_side"] for row in written) == sorted(taken)
    assert (summary.eligible_games, summary.spliceable_games) == (len(taken), len(taken))
    spliced = build_splice_dataset(path, tmp_path / "x_cap", SpliceConfig(games=kind))
    assert spliced.spliceable_games == len(taken)
    stats = json.loads((tmp_path / "x_game" / "stats.json").read_text())
    params = json.loads((tmp_path / "x_cap" / "stats.json").read_text())["params"]
    named = None if kind == "decisive" else kind
    for found in (stats, params):
        assert (found["decisive_only"], found.get("games")) == (kind == "decisive", named)


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("result", "", ""),
        ("result", "1-0 forfeit", "1-0 forfeit"),
        ("result", None, "*"),
        ("plies", 12, 12),
        ("plies", None, 10),
        ("plies", True, 10),
        ("plies", -3, 10),
        ("plies", 10**12, 10),
    ],
)
def test_unusual_fields_are_read_alike_in_every_row(tmp_path, separators, field, value, expected):
    path = tmp_path / "valid_games.jsonl"
    moves = live_row()["moves_uci"]
    row = {"game_id": "x", "source_file": "s.pgn", "headers": {}, "result": "1-0"}
    row |= {"winner_side": "W", "plies": 10, "moves": moves, "moves_uci": moves, field: value}
    path.write_text(json.dumps(row, separators=separators) + "\n")
    build_game_dataset(path, tmp_path / "out")
    made = [row for split in SPLITS for row in rows(tmp_path / "out" / f"{split}.jsonl")]
    assert [row[field] for row in made] == [expected]


@pytest.mark.parametrize("line", ["{nonsense", "[1]", '{"moves": ["é"]}', '{"moves": ["a b"]}'])
def test_rows_that_cannot_be_read_are_named(tmp_path, line):
    path = tmp_path / "valid_games.jsonl"
    path.write_text((json.dumps(live_row()) + "\n\n") * 30 + line + "\n")
    for share_bytes in (1, 1000, 1 << 20):
        config = GameConfig(share_bytes=share_bytes)
        with pytest.raises(BadInput, match=r"row|JSON") as caught:
            build_game_dataset(path, tmp_path / f"out_{share_bytes}", config)
        assert caught.value.row == 31
        assert "valid_games.jsonl:31: " in str(caught.value)


def test_empty_input_and_empty_splits_give_empty_files(tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "valid_games.jsonl"
    for name, text in (("none", ""), ("one", json.dumps(live_row()) + "\n")):
        path.write_text(text)
        build_game_dataset(path, tmp_path / name)
        summary = build_splice_cache(tmp_path / name, tmp_path / name / "runtime_splice_cache")
        assert sum(summary.samples.values()) == (2 if text else 0)
        assert sum(summary.phases.values()) == (2 if text else 0)
        for split in SPLITS:
            for array in LAYOUT:
                size = (tmp_path / name / "runtime_splice_cache" / split / array).stat().st_size
                assert size == summary.samples[split] * np.dtype(LAYOUT[array]).itemsize
        build_splice_dataset(path, tmp_path / f"{name}_splice")


def test_files_name_the_published_folder_and_a_changed_dataset_is_refused(valid, tmp_path):
    home = tmp_path / "lake" / "elite_2024-01_game"
    build_game_dataset(valid, tmp_path / "staged", published=home)
    assert json.loads((tmp_path / "staged" / "stats.json").read_text())["output_dir"] == str(home)
    place = home / "runtime_splice_cache"
    build_splice_cache(tmp_path / "staged", tmp_path / "cache", published=place)
    for split in SPLITS:
        paths = json.loads((tmp_path / "cache" / split / "paths.json").read_text())
        assert paths == [str(home / f"{split}.jsonl")]
    manifest = json.loads((tmp_path / "cache" / "manifest.json").read_text())
    assert manifest["dataset_dir"] == str(home)
    build_game_dataset(valid, tmp_path / "d")
    path = tmp_path / "d" / "train.jsonl"
    path.write_bytes(path.read_bytes().replace(b"1-0", b"0-1", 1))
    with pytest.raises(BadInput, match="has changed since its sidecar"):
        build_splice_cache(tmp_path / "d", tmp_path / "c")


@pytest.mark.parametrize(("cap", "k", "min_context", "min_target"), [(0, 4, 8, 1), (5, 3, 3, 2)])
def test_legacy_rows_are_those_of_simple_loops(valid, tmp_path, cap, k, min_context, min_target):
    config = SpliceConfig(
        k=k,
        min_context=min_context,
        min_target=min_target,
        max_samples_per_game=cap,
        share_bytes=60_000,
        games="all",
    )
    build_splice_dataset(valid, tmp_path / "out", config)
    game = GameConfig(min_context=min_context, min_target=min_target, games="all")
    build_game_dataset(valid, tmp_path / "game", game)
    for split in SPLITS:
        expected = "".join(
            reference_rules.splices(row, k, min_context, min_target, cap, 7)
            for row in rows(tmp_path / "game" / f"{split}.jsonl")
        )
        assert (tmp_path / "out" / f"{split}.jsonl").read_text() == expected
        assert expected


def test_samples_are_counted_by_the_moves_that_are_left_up_to_10_up_to_20_and_more():
    left = np.array([0, 10, 11, 20, 21, 60])
    samples: Any = SimpleNamespace(
        game=np.zeros(6, np.int64), indices=99 - left, plies=np.array([100]), starts=np.array([0])
    )
    codes = np.zeros(100, np.uint8)
    counts = datasets._counts_of_splices(samples, np.array([True]), codes)
    assert (counts["rows"], counts["samples"]) == (1, 6)
    assert counts["left"] == {"<=10": 2, "11-20": 2, ">20": 2}


def test_every_builder_reports_its_bytes_or_games_up_to_the_total(month, tmp_path):
    stages: dict[str, list[Report]] = {}
    progress = Progress(lambda report: stages.setdefault(report.stage, []).append(report), 0.0)
    valid, game = tmp_path / "valid", tmp_path / "game"
    validate([month, month], valid, ValidateConfig(share_bytes=30_000), progress=progress)
    config = GameConfig(share_bytes=40_000, split="shuffle")
    games = sum(build_game_dataset(valid, game, config, progress=progress).games.values())
    splices = SpliceConfig(share_bytes=40_000)
    build_splice_dataset(valid, tmp_path / "splice", splices, progress=progress)
    build_splice_cache(game, tmp_path / "cache", CacheConfig(share_games=20), progress=progress)
    pgns, rows_size = 2 * month.stat().st_size, (valid / "valid_games.jsonl").stat().st_size
    for stage, total, unit in (
        *(("validate", pgns, "bytes"), ("samples", games, "games")),
        *((name, rows_size, "bytes") for name in ("split", "games", "splices")),
    ):
        done = [report.done for report in stages[stage]]
        assert done == sorted(done) and len(done) > 3
        last = stages[stage][-1]
        assert (last.done, last.total, last.unit) == (total, total, unit)
    assert stages["hash input"][-1].done == pgns
    # Without a sidecar nobody knows before how many games there are.
    shutil.rmtree(game / "sidecar")
    stages.clear()
    build_splice_cache(game, tmp_path / "again", progress=progress)
    assert {report.total for report in stages["samples"][:-1]} == {None}
    assert (stages["samples"][-1].done, stages["samples"][-1].total) == (games, games)
    manifest = json.loads((tmp_path / "again/manifest.json").read_bytes())
    assert manifest["game_rows_total"] == games
