"""Laws of views: what is changed after a build is a violation of the law that is meant."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.families import Subject
from gristmill.macroxue import ViewConfig, training_view, value_sidecar
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.rows import copied
from gristmill.macroxue.laws.training_view import law
from tests.macroxue.annotated import write_annotations
from tests.macroxue.games import play, run_table, step_rows, write_pack

GAMES = [play(seed, 40) for seed in range(12)]


def _make(folder: Path, **settings: Any) -> Subject:
    """A view with a gap in run 1, and annotations."""
    steps, runs = step_rows(GAMES), run_table(GAMES)
    steps = copied(steps, np.arange(len(steps)) != 50)
    runs[1] = type(runs[1])(1, runs[1].seed, 39, runs[1].max_score, runs[1].highest_tile)
    tuples = np.flatnonzero(steps["valuation_type"])
    steps["valuation_type"][tuples] = 1 + np.arange(len(tuples)) % 2
    legal = (steps["ev_legal"][:, None] >> np.arange(4)) & 1
    steps["branch_evs"] = legal * np.random.default_rng(1).random(legal.shape).round(3)
    pack = write_pack(folder / "p", GAMES, steps=steps, runs=runs)
    value_sidecar(pack, folder / "v", ValueConfig())
    drop = write_annotations(folder / "drop", pack)
    given = {"num_bins": 3, "search_failure_cutoff": -(10**6), **settings}
    config = ViewConfig(**given)
    training_view(pack, [folder / "v"], folder / "view", config, annotations=drop)
    return Subject(folder / "view", config=vars(config))


def _broken(subject: Subject) -> set[str]:
    return {each.law for each in law(subject)}


def _rows(path: Path, change: Callable[[Any], object]) -> None:
    change(np.load(path, mmap_mode="r+"))


def _sql(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


SPLIT = {"validation_share": 0.5, "symmetries": "all"}


@pytest.mark.parametrize("settings", [{}, SPLIT, {"zero_tolerance": 0.2}])
def test_a_view_as_it_was_built_breaks_no_law(tmp_path: Path, settings: dict[str, Any]) -> None:
    subject = _make(tmp_path, **settings)
    assert _broken(subject) == _broken(replace(subject, has_record=False)) == set()


def _edge(side: Path) -> None:
    said = json.loads((side / "tokenizer.json").read_text())
    edges = said["search"]["bin_edges"]
    edges[2] = (3 * edges[1] + edges[2]) / 4
    (side / "tokenizer.json").write_text(json.dumps(said))


def _value_of_a_gap(values: Any) -> None:
    values["reward"][np.flatnonzero(np.isnan(values["reward"]))[0]] = 4


def _put(column: str, symmetry: int, value: int) -> Callable[[Any], object]:
    def change(rows: Any) -> None:
        rows[column][np.flatnonzero(rows["run_id"] % 8 == symmetry)[2]] = value

    return change


DAMAGES: dict[str, tuple[str, Callable[[Path], object], set[str]]] = {
    "a value of a gap": (
        "values.npy", lambda file: _rows(file, _value_of_a_gap), {"values_of_gaps"},
    ),
    "a gap that is not named": (
        "metadata.db", lambda file: _sql(file, "DELETE FROM gaps"),
        {"values_finite", "values_recomputed"},
    ),
    "a gap of no run": (
        "metadata.db", lambda file: _sql(file, "INSERT INTO gaps VALUES (999, 0, 'board')"),
        {"gap_run"},
    ),
    "an edge": ("tokenizer.json", lambda file: _edge(file.parent), {"bin_edges"}),
    "an annotation": (
        "annotations-000000.npy", lambda file: _rows(file, _put("step_index", 0, 77)),
        {"annotations_aligned"},
    ),
    "a move of an image": (
        "steps.npy", lambda file: _rows(file, _put("move_dir", 5, 9)),
        {"row_move_dir", "values_recomputed"},
    ),
    "a reward of an image": (
        "values.npy", lambda file: _rows(file, _put("reward", 5, 9)), {"values_recomputed"},
    ),
}  # fmt: skip
"""What is changed, and the laws that find it in a folder without a record. `verify --rebuild` finds
what else differs from the source: another column, another board_eval, a game on the wrong side."""


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_changed_breaks_the_law_that_names_it(tmp_path: Path, name: str) -> None:
    subject = _make(tmp_path, **SPLIT)
    file, damage, laws = DAMAGES[name]
    damage(subject.folder / "train" / file)
    assert _broken(replace(subject, has_record=False)) == laws
    assert _broken(subject) == laws - {"values_recomputed"}


def test_a_link_that_can_be_written_to_is_named(tmp_path: Path) -> None:
    subject = _make(tmp_path)
    (subject.folder / "steps.npy").chmod(0o644)
    assert _broken(subject) == {"read_only"}
    (tmp_path / "p/steps.npy").unlink()
    assert _broken(subject) == set()


def test_a_game_in_both_folders_is_named(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    few = "SELECT id FROM runs WHERE id BETWEEN"
    config = ViewConfig(0, 42, f"{few} 0 AND 3", f"{few} 5 AND 7", num_bins=0)
    training_view(pack, [tmp_path / "v"], tmp_path / "view", config)
    assert list(law(Subject(tmp_path / "view"))) == []
    game = f"seed = {GAMES[1].seed}, max_score = {GAMES[1].score}"
    same = f"UPDATE runs SET {game}, highest_tile = {GAMES[1].highest_tile} WHERE id = 5"
    _sql(tmp_path / "view/validation/metadata.db", same)
    found = [each.law for each in law(Subject(tmp_path / "view"))]
    assert found == ["game_on_both_sides"]
