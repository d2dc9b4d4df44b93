"""Training views: values beside steps, games on one side alone, runs with missing steps marked."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.families import Subject
from gristmill.macroxue import (
    MergeConfig,
    StepDataset,
    ViewConfig,
    merge,
    training_view,
    value_sidecar,
)
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.files import Gap, Run, read_gaps
from gristmill.macroxue.format.rows import (
    MANIFEST,
    ROWS,
    STUDENT,
    VALUE_BINS,
    Rows,
    copied,
    decode_boards,
    to_aligned,
)
from gristmill.macroxue.laws import view_law
from gristmill.macroxue.rules.game import BRANCHES, Branches, Differences, board_scores, true_ranks
from tests.macroxue.annotated import annotated, write_annotations
from tests.macroxue.games import Game, all_rows, play, run_table, step_rows, write_pack

GAMES = [play(seed, 60) for seed in range(12)]
KEPT = ("step_index", "valuation_type", "max_rank", "seed")
# The places of up, down, left, right as a cross in a square of 3 by 3, which turns as the board.
_PLACES = ((0, 1), (2, 1), (1, 0), (1, 2))
_CROSS = np.full((3, 3), -1)
for _number, _place in enumerate(_PLACES):
    _CROSS[_place] = _number


def assert_turned(source: Rows, found: Rows, symmetry: int, ranks: np.ndarray) -> None:
    """Assert that rows [N] are those of the source under a symmetry; ranks: true ones [N, 16]."""
    source, found = to_aligned(source), to_aligned(found)
    order = [int(_square(_CROSS.reshape(1, 9), 3, symmetry)[0][3 * x + y]) for x, y in _PLACES]
    boards = [decode_boards(rows["board"], rows["tile_65536_mask"]) for rows in (source, found)]
    assert np.array_equal(_square(boards[0], 4, symmetry), boards[1])
    assert np.array_equal(np.array(order)[found["move_dir"]], source["move_dir"])
    assert np.array_equal(found["branch_evs"], source["branch_evs"][:, order])
    bits, turned_bits = (
        (rows["ev_legal"][:, None] >> np.arange(4)) & 1 for rows in (source, found)
    )
    assert np.array_equal(turned_bits, bits[:, order])
    assert all(np.array_equal(source[name], found[name]) for name in KEPT)
    assert np.array_equal(board_scores(_square(ranks, 4, symmetry)), found["board_eval"])


def _square(cells: np.ndarray, side: int, symmetry: int) -> np.ndarray:
    """Squares [N, side * side] under a symmetry."""
    square = cells.reshape(-1, side, side)
    square = square[:, :, ::-1] if symmetry >= 4 else square
    turned = np.rot90(square, -(symmetry % 4), axes=(1, 2))
    return np.ascontiguousarray(turned).reshape(cells.shape)


def _pack(folder: Path, games: Sequence[Game] = GAMES, **form: Any) -> tuple[Path, Path]:
    """A pack and its values."""
    pack, values = write_pack(folder / "p", games, **form), folder / "v"
    value_sidecar(pack, values, ValueConfig())
    return pack, values


def test_a_view_without_a_split_is_links_that_nobody_may_write_to(tmp_path):
    pack, values = _pack(tmp_path)
    summary = training_view(pack, [values], tmp_path / "view", ViewConfig(num_bins=0))
    assert summary.linked == 2
    for file in (pack / "steps.npy", values / "values.npy"):
        link = tmp_path / "view" / file.name
        assert link.samefile(file)
        assert link.stat().st_mode & 0o777 == 0o444
    assert list(view_law(Subject(tmp_path / "view"))) == []


def test_sides_have_the_games_of_the_split_by_hash(tmp_path):
    pack, values = _pack(tmp_path)
    config = ViewConfig(num_bins=0, validation_share=0.3)
    training_view(pack, [values], tmp_path / "view", config)
    for side, rows in zip(("train", "validation"), StepDataset(pack).split(0.3), strict=True):
        own = StepDataset(tmp_path / "view" / side)
        assert [run.id for run in own.run_table] == rows.run_ids.tolist()
    assert list(view_law(Subject(tmp_path / "view"))) == []


@pytest.mark.parametrize("layout", ["aligned48", "packed46"])
def test_a_run_is_that_of_its_source_under_its_symmetry(tmp_path, layout):
    games = [*GAMES[:9], play(5, 30, start=[19, 18, 0, 0, *[0] * 10, 1, 1])]
    steps = step_rows(games)
    values = np.random.default_rng(1).random(steps["branch_evs"].shape, np.float32)
    steps["branch_evs"] *= values
    pack, valued = _pack(tmp_path, games, steps=steps, layout=layout)
    config = ViewConfig(0.3, symmetries="all", num_bins=0)
    training_view(pack, [valued], tmp_path / "view", config)
    seen = set()
    for side in ("train", "validation"):
        found = all_rows(tmp_path / "view" / side)
        for run in np.unique(found["run_id"]).tolist():
            source = copied(steps, steps["run_id"] == run // 8)
            ranks = true_ranks(source, np.zeros(1, np.int64)).ranks
            assert_turned(source, copied(found, found["run_id"] == run), run % 8, ranks)
            seen.add((side, run // 8, run % 8))
    assert {run for _, run, _ in seen} == set(range(10))
    assert {side for side, *_ in seen} == {"train", "validation"}


def test_a_run_with_a_missing_step_is_marked_or_refused(tmp_path):
    runs, view = run_table(GAMES), tmp_path / "view"
    runs[1] = replace(runs[1], steps=59)
    steps = copied(step_rows(GAMES), np.arange(720) != 70)
    pack, values = _pack(tmp_path, steps=steps, runs=runs)
    training_view(pack, [values], view, ViewConfig(num_bins=0))
    assert read_gaps(view / "metadata.db") == [Gap(1, 11, "board")]
    valued = np.load(view / "values.npy")
    assert (np.isnan(valued["return_raw"]) == (valued["run_id"] == 1)).all()
    assert list(view_law(Subject(view))) == []
    with pytest.raises(BadInput, match="run 1 has missing steps"):
        training_view(pack, [values], tmp_path / "w", ViewConfig(num_bins=0, gaps="refuse"))


def test_edges_are_the_quantiles_and_bins_that_cannot_be_filled_are_refused(tmp_path):
    numbers = -np.random.default_rng(1).random(5000).round(3) - 0.001
    found = Differences()
    for part in np.split(numbers, 5):
        found.add(Branches(1, 1, 0, 0, 0, part))
    wanted = np.quantile(numbers, np.linspace(0, 1, 33))
    assert found.edges(32)[:-1] == wanted[:-1].tolist()
    pack, values = _pack(tmp_path)
    with pytest.raises(GristmillError, match="tuple11 rows: 0 negative differences do not fill"):
        training_view(pack, [values], tmp_path / "view", ViewConfig())


def test_annotations_go_along_with_games_and_turn_with_their_boards(tmp_path):
    pack, values = _pack(tmp_path)
    drop = write_annotations(tmp_path / "student", pack, keep=slice(30, None), files=2)
    config = ViewConfig(num_bins=0, validation_share=0.3, symmetries="all", shard_rows=1000)
    view = tmp_path / "view"
    summary = training_view(pack, [values], view, config, annotations=drop)
    source = step_rows(GAMES)
    wanted = annotated(source)
    for side, images in (("train", 8), ("validation", 1)):
        steps = all_rows(view / side)
        files = {stem: sorted((view / side).glob(f"{stem}-0*")) for stem in wanted}
        parts = {stem: np.concatenate([*map(np.load, own)]) for stem, own in files.items()}
        assert [len(rows) for rows in parts.values()] == [len(steps)] * 4
        origin = {(row["run_id"], row["step_index"]): at for at, row in enumerate(source)}
        for at in range(0, len(steps), 37):
            run, symmetry = divmod(int(steps["run_id"][at]), 8)
            row = origin[run, int(steps["step_index"][at])]
            assert symmetry < images
            said = parts[ROWS][at]
            assert (said["run_id"], said["step_index"]) == (8 * run + symmetry, row - 60 * run)
            assert (said["teacher_move"] == 255) == (row < 30)
            if row >= 30:
                order = BRANCHES[symmetry]
                assert said["teacher_move"] == steps["move_dir"][at]
                assert said["legal_mask"] == steps["ev_legal"][at]
                assert (said["policy_hard"] == wanted[ROWS]["policy_hard"][row][order]).all()
                assert (parts[STUDENT][at] == wanted[STUDENT][row][order]).all()
                assert (parts[VALUE_BINS][at] == wanted[VALUE_BINS][row]).all()
            else:
                assert np.isnan(parts[STUDENT][at]).all() and np.isnan(said["policy_p1"]).all()
        manifest = json.loads((view / side / MANIFEST).read_text())
        assert {run["run_id"] for run in manifest["runs"]} == set(steps["run_id"].tolist())
    masks = [np.load(file)["policy_kind_mask"] for file in view.glob(f"*/{ROWS}-0*.npy")]
    assert summary.annotated_rows == sum(map(np.count_nonzero, masks))
    assert list(view_law(Subject(view))) == []


def test_a_pool_has_the_values_of_its_members(tmp_path):
    others = [play(1, 40), play(2, 50)]
    made = [_pack(tmp_path / "a", GAMES[:5]), _pack(tmp_path / "b", others)]
    pool = tmp_path / "pool"
    merge([pack for pack, _ in made], pool, MergeConfig(shard_rows=250, names=("a", "b")))
    view, whole = tmp_path / "view", tmp_path / "whole"
    training_view(pool, [values for _, values in made], view, ViewConfig(num_bins=0))
    value_sidecar(pool, whole, ValueConfig())
    for file in whole.glob("values-*.npy"):
        assert (view / file.name).read_bytes() == file.read_bytes()
    with pytest.raises(BadInput, match="row 40 has another run_id"):
        training_view(pool, [made[1][1], made[0][1]], tmp_path / "x", ViewConfig(num_bins=0))
    with pytest.raises(BadInput, match="has 390 rows, but the values have 300"):
        training_view(pool, [made[0][1]], tmp_path / "y", ViewConfig(num_bins=0))
    (made[1][1] / "values.json").write_text('{"gamma": 0.5}')
    with pytest.raises(GristmillError, match="other settings"):
        training_view(pool, [values for _, values in made], tmp_path / "z", ViewConfig(num_bins=0))


@pytest.mark.parametrize(
    ("train", "held", "rule"),
    [
        ("SELECT id FROM runs", "SELECT id FROM runs WHERE id = 3", "is the same game"),
        ("SELECT id FROM runs WHERE id = 2", "SELECT 99", "not the id of a run"),
        ("SELECT id FROM runs WHERE id = 2", "DROP TABLE runs", "not authorized"),
        ("SELECT id FROM runs WHERE id = 2", "SELECT", "incomplete input"),
        ("SELECT id FROM runs WHERE id = 2", "SELECT id FROM runs WHERE 0", "in validation/"),
    ],
)
def test_a_query_that_does_not_split_is_refused(tmp_path, train, held, rule):
    pack, values = _pack(tmp_path)
    config = ViewConfig(num_bins=0, train_query=train, validation_query=held)
    with pytest.raises(GristmillError, match=rule):
        training_view(pack, [values], tmp_path / "view", config)


def test_unknown_ranks_have_no_images_and_empty_runs_go_along(tmp_path):
    config = ViewConfig(num_bins=0, symmetries="all")
    for top, without, count in ((19, 0, 16), (20, 1, 9)):
        games = [GAMES[0], play(5, 30, start=[top, 18, 0, 0, *[0] * 10, 1, 1])]
        pack, values = _pack(tmp_path / f"{top}", games)
        summary = training_view(pack, [values], tmp_path / f"{top}/view", config)
        runs = [run.id for run in StepDataset(tmp_path / f"{top}/view").run_table]
        assert (summary.games_without_images, runs) == (without, [*range(count)])
    runs = run_table(GAMES)
    empty = [*runs[:3], Run(3, 99, 0, 0, 0), *(replace(run, id=run.id + 1) for run in runs[3:])]
    steps = step_rows(GAMES)
    steps["run_id"] += steps["run_id"] >= 3
    pack, values = _pack(tmp_path, steps=steps, runs=empty)
    config = ViewConfig(0.3, symmetries="all", num_bins=0)
    training_view(pack, [values], tmp_path / "view", config)
    assert list(view_law(Subject(tmp_path / "view", config=dataclasses.asdict(config)))) == []
