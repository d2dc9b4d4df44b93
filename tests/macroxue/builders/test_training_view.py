"""Training views: values beside steps, games on one side alone, runs with missing steps marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.macroxue import StepDataset, ViewConfig, training_view, value_sidecar
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.metadata_db import Gap, read_gaps
from gristmill.macroxue.format.rows import copied
from gristmill.macroxue.laws.training_view import law
from gristmill.macroxue.rules.ev_bins import Branches, Differences
from tests.macroxue.games import play, run_table, step_rows, write_pack

GAMES = [play(seed, 60) for seed in range(12)]


def _pack(folder: Path, gap: bool = False) -> tuple[Path, Path]:
    steps, runs = step_rows(GAMES), run_table(GAMES)
    if gap:
        steps = copied(steps, np.arange(len(steps)) != 70)
        runs[1] = type(runs[1])(1, runs[1].seed, 59, runs[1].max_score, runs[1].highest_tile)
    pack = write_pack(folder / "p", GAMES, steps=steps, runs=runs)
    value_sidecar(pack, folder / "v", ValueConfig())
    return pack, folder / "v"


def test_a_view_without_a_split_is_links_that_nobody_may_write_to(tmp_path: Path) -> None:
    pack, values = _pack(tmp_path)
    summary = training_view(pack, [values], tmp_path / "view", ViewConfig(num_bins=0))
    assert summary.linked == 2
    for file in (pack / "steps.npy", values / "values.npy"):
        link = tmp_path / "view" / file.name
        assert link.samefile(file)
        assert link.stat().st_mode & 0o777 == 0o444
    assert list(law(Subject(tmp_path / "view"))) == []


def test_sides_have_the_games_of_the_split_by_hash(tmp_path: Path) -> None:
    pack, values = _pack(tmp_path)
    config = ViewConfig(num_bins=0, validation_share=0.3)
    training_view(pack, [values], tmp_path / "view", config)
    for side, rows in zip(("train", "validation"), StepDataset(pack).split(0.3), strict=True):
        own = StepDataset(tmp_path / "view" / side)
        assert [run.id for run in own.run_table] == rows.run_ids.tolist()
    assert list(law(Subject(tmp_path / "view"))) == []


def test_a_run_with_a_missing_step_is_marked_or_refused(tmp_path: Path) -> None:
    pack, values = _pack(tmp_path, gap=True)
    view = tmp_path / "view"
    training_view(pack, [values], view, ViewConfig(num_bins=0))
    assert read_gaps(view / "metadata.db") == [Gap(1, 11, "board")]
    valued = np.load(view / "values.npy")
    assert (np.isnan(valued["return_raw"]) == (valued["run_id"] == 1)).all()
    assert list(law(Subject(view))) == []
    with pytest.raises(BadInput, match="run 1 has missing steps"):
        training_view(pack, [values], tmp_path / "w", ViewConfig(num_bins=0, gaps="refuse"))


def test_edges_are_the_quantiles_of_all_differences() -> None:
    numbers = -np.random.default_rng(1).random(5000).round(3) - 0.001
    found = Differences()
    for part in np.split(numbers, 5):
        found.add(Branches(1, 1, 0, 0, 0, part))
    wanted = np.quantile(numbers, np.linspace(0, 1, 33))
    assert found.edges(32)[:-1] == wanted[:-1].tolist()
