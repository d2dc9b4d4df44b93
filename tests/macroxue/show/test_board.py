"""Pictures of packs: what they show is in them, they stay small, and nothing escapes its place."""

import base64
import re
import sqlite3
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.build.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.format.metadata_db import Run, write_metadata
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
from gristmill.macroxue.format.shards import open_steps
from gristmill.macroxue.format.valuation_types import write_valuation_types
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.samples import write_drop
from gristmill.macroxue.show.board import bar_lengths, board_svg, step_svg, step_text
from gristmill.macroxue.show.preview import SCALE, pack_preview, score_bins

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    write_drop(root / "drop", 1273930896, 4, 90, 7, legacy=True)
    pack(root / "drop", root / "pack", PackConfig(shard_rows=50, workers=1))
    return root / "pack"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def images(markdown: str) -> list[str]:
    found = re.findall(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([^)]+)\)", markdown)
    return [base64.b64decode(image, validate=True).decode() for image in found]


def test_a_board_shows_its_tiles_its_move_and_its_evs() -> None:
    svg = board_svg([1, 2, 11, 12, *[0] * 11, 17], 3, [1.5, 0.0, -2.25, 1234.5], 0b1101, title="t")
    shown = texts(svg)
    assert [text for text in shown if text.isdigit()] == ["2", "4", "2048", "4096", "131072"]
    assert shown.count("illegal") == 1
    assert {"1.500", "-2.250", "1,234.500", "→ right"} <= set(shown)
    # 4096 is darker than every tile of the original game; the right arrow is turned by 90.
    assert 'fill="#3c3a32"' in svg
    assert "rotate(90)" in svg
    turns = [re.search(r"rotate\((\d+)\)", board_svg([0] * 16, k, [0.0] * 4, 15)) for k in range(4)]
    assert [match and match[1] for match in turns] == ["0", "180", "270", "90"]


def test_text_cannot_leave_its_place() -> None:
    wicked = '</text><script>alert(1)</script>&"'
    svg = board_svg([0] * 16, 0, [0.0] * 4, 15, title=wicked, notes=[wicked])
    assert texts(svg).count(wicked) == 2
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))


@pytest.mark.parametrize(
    ("evs", "legal", "absolute", "lengths"),
    [
        ([1.0, 2.0, 3.0, 9.0], 0b0111, False, [0.1, 0.55, 1.0, 0.0]),
        ([5.0, 5.0, 0.0, 0.0], 0b0011, False, [1.0, 1.0, 0.0, 0.0]),
        ([0.25, 1.0, 1.5, 0.5], 0b0111, True, [0.25, 1.0, 1.0, 0.0]),
        ([float("inf"), 1.0, float("nan"), float("-inf")], 15, False, [1.0, 1.0, 0.0, 0.1]),
        ([1.0, 2.0, 3.0, 4.0], 0, False, [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_bar_lengths(evs: list[float], legal: int, absolute: bool, lengths: list[float]) -> None:
    assert bar_lengths(evs, legal, absolute) == pytest.approx(lengths)
    assert "illegal" in board_svg([0] * 16, 0, evs, legal, absolute=absolute) or legal == 15


@pytest.mark.parametrize("ranks", [[0] * 15, [0] * 17])
def test_a_board_has_sixteen_cells(ranks: list[int]) -> None:
    with pytest.raises(ValueError, match="16 ranks"):
        board_svg(ranks, 0, [0.0] * 4, 15)


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
    assert list(documents) == ["table of runs", "distributions", "boards"]
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
        assert svg == step_svg(step, SCALE)
        numbers = [str(1 << rank) for rank in step.ranks if rank]
        assert [text for text in texts(svg) if text.isdigit()] == numbers


def made_pack(path: Path, runs: int, names: list[str]) -> Path:
    """A pack of `runs` runs with three steps each, every cell full and every number long."""
    path.mkdir()
    rows = np.zeros(3 * runs, STEP_ROW_DTYPE)
    rows["run_id"] = np.repeat(np.arange(runs), 3)
    rows["step_index"] = 2**32 - 3 + np.tile(np.arange(3), runs)
    rows["board"] = 2**64 - 1
    rows["tile_65536_mask"] = 2**16 - 1
    rows["board_eval"] = -(2**31)
    rows["valuation_type"] = len(names) - 1
    rows["ev_legal"] = 15
    rows["branch_evs"] = np.finfo(np.float32).min
    np.save(path / "steps.npy", rows)
    high = 2**63 - 1
    write_metadata(
        path / "metadata.db",
        (Run(k, -high, 3, high - runs + k, 2**32 - 1) for k in range(runs)),
        {},
    )
    write_valuation_types(path / "valuation_types.json", names)
    return path


def test_a_preview_of_the_worst_pack_stays_under_100_kb(tmp_path: Path) -> None:
    wicked = "](x) | <script>\x00\n`" + "&" * 5000
    path = made_pack(tmp_path / "pack", 5000, ["search", "tuple11", "tuple10", wicked])
    documents = pack_preview(path)
    assert sum(len(document.encode()) for document in documents.values()) < 100_000
    assert "4,970 more" in documents["table of runs"]
    assert f"| 4999 | {1 - 2**63} | 3 | **{2**63 - 2:,}** |" in documents["table of runs"]
    assert "-3.403e+38" in images(documents["boards"])[0]
    assert "<script" not in documents["boards"]
    table = [line for line in documents["boards"].splitlines() if "**run" in line]
    assert len(table) == 3
    assert all(line.count("|") == 5 for line in table)
    for svg in images(documents["boards"] + documents["distributions"]):
        ET.fromstring(svg)


def test_steps_are_found_over_shards_and_odd_indices(folder: Path, tmp_path: Path) -> None:
    opened = Pack(folder)
    assert len(list(folder.glob("steps-*.npy"))) > 2
    rows = np.concatenate([open_steps(file) for file in sorted(folder.glob("steps-*.npy"))])
    for at in range(0, len(rows), 7):
        step = opened.step(at)
        assert (step.run.id, step.step_index) == (rows["run_id"][at], rows["step_index"][at])
        assert step.move == rows["move_dir"][at]
        assert step.legal & 1 << step.move
        assert opened.find(step.run.id, step.step_index) == step
    odd = Pack(made_pack(tmp_path / "odd", 3, ["search"]))
    assert odd.find(2, 2**32 - 2).row == 7
    for ask in (lambda: odd.find(2, 0), lambda: odd.find(3, 0), lambda: odd.step(9)):
        with pytest.raises(GristmillError, match=re.escape(str(odd.path))):
            ask()
    with pytest.raises(GristmillError, match="rows 0 to 8, not -1"):
        odd.step(-1)


def test_a_pack_whose_parts_disagree_is_refused(tmp_path: Path) -> None:
    path = made_pack(tmp_path / "pack", 3, ["search"])
    with sqlite3.connect(path / "metadata.db") as db:
        db.execute("UPDATE runs SET steps = 4 WHERE id = 1")
    db.close()
    with pytest.raises(BadInput, match=r"10 steps, but the files have 9 rows"):
        Pack(path)


def test_tuple_rows_do_not_call_illegal_moves_legal(folder: Path, tmp_path: Path) -> None:
    opened = Pack(made_pack(tmp_path / "pack", 1, ["search"]))
    full = opened.step(0)
    assert full.ev_legal == 15
    assert full.legal == 15
    assert full.ranks == (16,) * 16
    rows = np.load(tmp_path / "pack" / "steps.npy")
    rows["board"], rows["tile_65536_mask"] = 0x1234_2345_3456_4567, 0
    np.save(tmp_path / "pack" / "steps.npy", rows)
    stuck = Pack(tmp_path / "pack").step(0)
    assert (stuck.ev_legal, stuck.legal) == (15, 0)


def test_the_terminal_shows_the_same(folder: Path) -> None:
    step = Pack(folder).step(40)
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(step_text(step))
    shown = console.export_text()
    assert f"run {step.run.id} · step {step.step_index}" in shown
    board = "".join(line[:32] for line in shown.splitlines())
    assert [int(number) for number in board.split()] == [1 << rank for rank in step.ranks if rank]
    assert shown.count("illegal") == 4 - bin(step.legal).count("1")
    assert f"row {step.row}" in shown
