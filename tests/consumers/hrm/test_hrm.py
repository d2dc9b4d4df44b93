"""HRM opens every kind of puzzle, and its notebook counts all votes of ARC."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.consumers.hrm import HRM
from tests.consumers.hrm.evaluator import score
from tests.consumers.puzzle_builds import AUGMENTATIONS, KINDS, arc, built, wrong
from tests.puzzles.read.plain_reader import PlainReader


@HRM.opens(*(f"puzzles/{kind}" for kind in KINDS), how="`dataset_path`: the folder")
@pytest.mark.parametrize("kind", KINDS)
def test_the_reader_of_hrm_opens_the_datasets(kind: str, tmp_path: Path) -> None:
    folder = built(kind, tmp_path)
    tested = np.load(folder / "test/all__inputs.npy")
    rows = [batch for _, batch, _ in PlainReader(folder, "test", seed=0, size=4, test=True)]
    assert np.array_equal(np.concatenate([b["inputs"] for b in rows])[: len(tested)], tested)
    described = json.loads((folder / "train/dataset.json").read_text())
    name, batch, size = next(iter(PlainReader(folder, "train", seed=0, size=2, test=False)))
    assert (name, size, batch["inputs"].shape) == ("all", 2, (2, described["seq_len"]))
    assert batch["puzzle_identifiers"].max() < described["num_puzzle_identifiers"]


@HRM.opens("puzzles/arc", how="the notebook `arc_eval.ipynb`: the folder")
def test_the_notebook_of_hrm_counts_every_vote(tmp_path: Path) -> None:
    folder = arc(tmp_path, first_identifier=4)
    labels = np.load(folder / "test/all__labels.npy")
    assert score(folder, labels) == (2, 1.0, AUGMENTATIONS + 1)
    assert score(folder, wrong(labels, 0.3, 5)) == (2, 1.0, AUGMENTATIONS + 1)
    assert score(folder, wrong(labels, 1.0, 5))[1] == 0.0


def test_the_notebook_of_hrm_misreads_the_names_of_trm(tmp_path: Path) -> None:
    folder = arc(tmp_path)
    other = (folder / "trm/identifiers.json").read_text().replace("_", "-")
    (folder / "identifiers.json").write_text(other)
    labels = np.load(folder / "test/all__labels.npy")
    assert score(folder, labels) == (2 * (AUGMENTATIONS + 1), 1.0, 1), "each name is a task"
