"""The notebook of HRM counts all votes of ARC."""

from pathlib import Path

import numpy as np

from tests.consumers.hrm import HRM
from tests.consumers.hrm.evaluator import score
from tests.consumers.puzzle_builds import AUGMENTATIONS, arc, wrong


@HRM.opens("puzzles/arc", how="the notebook `arc_eval.ipynb`: the folder")
def test_the_notebook_of_hrm_counts_every_vote(tmp_path: Path) -> None:
    folder = arc(tmp_path, first_identifier=4)
    labels = np.load(folder / "test/all__labels.npy")
    assert score(folder, labels) == (2, 1.0, AUGMENTATIONS + 1)
    assert score(folder, wrong(labels, 0.3, 5)) == (2, 1.0, AUGMENTATIONS + 1)
    assert score(folder, wrong(labels, 1.0, 5))[1] == 0.0
