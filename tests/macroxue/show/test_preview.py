"""The preview of a pack: it shows runs, distributions and boards, and stays small."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import MergeConfig, merge
from gristmill.macroxue.builders.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.format.metadata_db import Run, write_metadata
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.samples import write_drop
from gristmill.macroxue.show.board import step_svg
from gristmill.macroxue.show.preview import origin_table, pack_preview, score_bins
from gristmill.svg import shortened
from tests.drawings import SVG, images, texts
from tests.macroxue.games import play, write_pack, write_wide_pack

GAMES = [play(seed, 50) for seed in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    write_drop(root / "drop", 1273930896, 4, 90, 7, legacy=True)
    pack(root / "drop", root / "pack", PackConfig(shard_rows=50, workers=1))
    return root / "pack"


def test_score_bins_count_every_run_and_have_round_widths() -> None:
    generator = np.random.default_rng(3)
    for top in (1, 9, 10, 11, 999, 20_000, 3_000_000):
        scores = generator.integers(0, top, 200).tolist()
        bins = score_bins(scores)
        assert sum(count for _, count in bins) == 200
        assert 1 <= len(bins) <= 11
    assert score_bins([7]) == [("7", 1)]
    assert score_bins([0, 20_000, 39_999, 101_000]) == [
        ("0", 1), ("20k", 2), ("40k", 0), ("60k", 0), ("80k", 0), ("100k", 1)
    ]  # fmt: skip


def test_the_preview_shows_runs_distributions_and_boards(folder: Path) -> None:
    documents = pack_preview(folder)
    assert list(documents) == ["picture", "table of runs", "distributions", "boards"]
    opened = Pack(folder)
    for run in opened.runs:
        assert f"| {run.id} | {run.seed} | {run.steps:,} | " in documents["table of runs"]
    scores, tiles = (texts(svg) for svg in images(documents["distributions"]))
    assert scores[0] == "Score"
    assert str(max(run.highest_tile for run in opened.runs)) in tiles
    boards = images(documents["boards"])
    assert len(boards) == 9
    for svg in boards:
        title = next(text for text in texts(svg) if text.startswith("run "))
        match = re.fullmatch(r"run (\d+) · step ([\d,]+)", title)
        assert match
        step = opened.find(int(match[1]), int(match[2].replace(",", "")))
        assert svg == shortened(step_svg(step))
        numbers = [str(1 << rank) for rank in step.ranks if rank]
        assert [text for text in texts(svg) if text.isdigit()] == numbers


def test_a_preview_of_the_worst_pack_stays_under_100_kb(tmp_path: Path) -> None:
    wicked = "](x) | <script>\x00\n`" + "&" * 5000
    path = write_wide_pack(tmp_path / "pack", 5000, ["search", "tuple11", "tuple10", wicked])
    documents = pack_preview(path)
    assert sum(len(document.encode()) for document in documents.values()) < 100_000
    assert "4,970 more" in documents["table of runs"]
    assert f"| 4999 | {1 - 2**63} | 3 | **{2**63 - 2:,}** |" in documents["table of runs"]
    assert "-3.403e+38" in images(documents["boards"])[0]
    assert "<script" not in documents["boards"]
    headings = [line for line in documents["boards"].splitlines() if "**run" in line]
    assert len(headings) == 3
    for svg in images(documents["boards"] + documents["distributions"]):
        ET.fromstring(svg)


def test_distributions_have_mean_median_and_the_20_highest_tiles(tmp_path: Path) -> None:
    path = write_wide_pack(tmp_path / "pack", 25, ["search"])
    runs = [Run(k, 1, 3, 10 * k * k, 1 << k) for k in range(25)]
    (path / "metadata.db").unlink()
    write_metadata(path / "metadata.db", runs, {})
    document = pack_preview(path)["distributions"]
    assert "| score | 0 | 1,440 | 1,960 | 5,760 |" in document
    drawing = images(document)[1]
    assert len(list(ET.fromstring(drawing).iter(f"{SVG}rect"))) == 1 + 20
    assert str(1 << 24) in texts(drawing)
    assert str(1 << 4) not in texts(drawing)


def test_boards_are_of_the_best_the_median_and_the_worst_run(tmp_path: Path) -> None:
    games = [play(seed, 21 * (seed + 1)) for seed in range(5)]
    runs = [Run(k, 1, len(one.boards), 100 - k, 64) for k, one in enumerate(games)]
    path = write_pack(tmp_path / "pack", games, runs=runs)
    titles = [
        next(text for text in texts(svg) if text.startswith("run "))
        for svg in images(pack_preview(path)["boards"])
    ]
    assert titles == [
        f"run {run} · step {step}"
        for run in (0, 2, 4)
        for step in (0, runs[run].steps // 2, (runs[run].steps - 1) * 19 // 20)
    ]


def test_each_member_has_a_line_and_all_have_the_total(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "a", GAMES[:3])
    b = write_pack(tmp_path / "b", GAMES[3:])
    lines = [json.dumps({"run_id": run, "drop": f"d{run % 2}"}) + "\n" for run in range(3)]
    (a / "trace.jsonl").write_text("".join(lines))
    merge([a, b], tmp_path / "pool", MergeConfig())
    best = [max(one.score for one in games) for games in (GAMES[:3], GAMES[3:])]
    table = origin_table(tmp_path / "pool").splitlines()
    assert table[2:] == [
        f"| `a` | 3 | 150 | 75.0% | 0–2 | 0 | {best[0]:,} | `d0`, `d1` |",
        f"| `b` | 1 | 50 | 25.0% | 3–3 | 150 | {best[1]:,} | not traced |",
        "| all | 4 | 200 | 100.0% |  |  |  |  |",
    ]


def test_more_than_eight_drops_are_counted(tmp_path: Path) -> None:
    games = [play(seed, 5) for seed in range(10)]
    a = write_pack(tmp_path / "a", games)
    lines = [json.dumps({"run_id": run, "drop": f"d{run}"}) + "\n" for run in range(10)]
    (a / "trace.jsonl").write_text("".join(lines))
    merge([a, write_pack(tmp_path / "b", GAMES[:1])], tmp_path / "pool", MergeConfig())
    assert "`d7` and 2 more |" in origin_table(tmp_path / "pool")


def test_a_pack_is_no_pool(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is not a pool"):
        origin_table(write_pack(tmp_path / "a", GAMES))
