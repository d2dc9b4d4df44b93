"""2048former opens training views on both of its branches."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.macroxue import MergeConfig, ViewConfig, merge, training_view, value_sidecar
from gristmill.macroxue.config import ValueConfig
from tests.consumers.macroxue_trainer import FORMER
from tests.consumers.macroxue_trainer.reader import KINDS, Folder
from tests.macroxue.annotated import write_annotations
from tests.macroxue.games import play, step_rows, write_pack

BINS = 8


def _pack(folder: Path, seed: int) -> Path:
    games = [play(100 * seed + number, 80) for number in range(10)]
    steps = step_rows(games)
    tuples = np.flatnonzero(steps["valuation_type"])
    steps["valuation_type"][tuples] = 1 + np.arange(len(tuples)) % 2
    random = np.random.default_rng(seed)
    legal = (steps["ev_legal"][:, None] >> np.arange(4)) & 1
    near = steps["board_eval"][:, None] / 1000 + random.normal(0, 0.7, legal.shape)
    searched = (steps["valuation_type"] == 0)[:, None]
    steps["branch_evs"] = legal * np.where(searched, near, random.random(legal.shape).round(2))
    return write_pack(folder / f"p{seed}", games, steps=steps)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[Path]]]:
    """A pack and a pool, each with its values."""
    folder = tmp_path_factory.mktemp("sources")
    packs = [_pack(folder, seed) for seed in (1, 2)]
    for pack in packs:
        value_sidecar(pack, folder / f"v_{pack.name}", ValueConfig())
    merge(packs, folder / "pool", MergeConfig())
    values = [folder / f"v_{pack.name}" for pack in packs]
    return {"pack": (packs[0], values[:1]), "pool": (folder / "pool", values)}


Sources = dict[str, tuple[Path, list[Path]]]


def _view(sources: Sources, source: str, out: Path, **settings: Any) -> Path:
    training_view(*sources[source], out, ViewConfig(num_bins=BINS, **settings))
    return out


@FORMER.opens("macroxue/training_view", how="dataset: `train/` or `validation/`, or the folder")
@pytest.mark.parametrize("source", ["pack", "pool"])
def test_both_branches_open_a_view(sources, source, tmp_path):
    split = _view(sources, source, tmp_path / "split", validation_share=0.3, shard_rows=300)
    whole = _view(sources, source, tmp_path / "whole", symmetries="all")
    for folder in (split / "train", split / "validation", whole):
        opened = Folder(folder)
        targets, classes = opened.targets()
        assert classes == BINS + 3 and set(np.unique(targets)) == set(range(classes))
        assert np.isfinite(opened.values()["return_scaled"]).all()


@FORMER.opens("macroxue/training_view", how="`tokenizer.json`")
def test_the_bins_are_those_that_the_tokenizer_fits(sources, tmp_path):
    train = _view(sources, "pool", tmp_path / "view", validation_share=0.3) / "train"
    said = json.loads((train / "tokenizer.json").read_text())
    for kind in KINDS:
        below = Folder(train).differences(kind, said["search"]["failure_cutoff"])
        edges = np.quantile(below, np.linspace(0, 1, BINS + 1))
        edges[-1] = max(edges[-1], 0.0)
        for at in range(1, len(edges)):
            edges[at] = edges[at] if edges[at] > edges[at - 1] else edges[at - 1] + 1e-9
        assert said[kind]["bin_edges"] == edges.tolist()


@FORMER.opens("macroxue/training_view", how="annotations of a student: the folder")
def test_annotations_are_read_beside_the_steps(sources, tmp_path):
    pack, _ = sources["pack"]
    drop = write_annotations(tmp_path / "student", pack)
    training_view(
        *sources["pool"],
        tmp_path / "view",
        ViewConfig(num_bins=0, symmetries="all"),
        annotations=drop,
    )
    opened = Folder(tmp_path / "view")
    found = opened.annotations()
    rows = found["annotations"]
    assert np.count_nonzero(rows["policy_kind_mask"]) == 8 * len(Folder(pack).steps)
    own = rows["policy_kind_mask"] != 0
    assert np.array_equal(rows["teacher_move"][own], opened.steps["move_dir"][own])
    assert np.isnan(found["annotations-student"][~own]).all()
