"""Small datasets of ARC, built for the evaluators of HRM and TRM."""

from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_tasks import write

AUGMENTATIONS: Final = 8


def arc(folder: Path, seed: int = 1, **settings: Any) -> Path:
    """A dataset of ARC: tasks of two forms, ids with `_`, several test pairs, 8 augmentations."""
    source = write(folder / "kaggle", "training", {"tr_1": arc_tasks.task(10 * seed, most=5)})
    write(source, "evaluation", {"ev_1": arc_tasks.task(10 * seed + 1, test=3, colours=9)})
    more = {f"evaluation/e{seed}": arc_tasks.task(10 * seed + 2, test=2, colours=9)}
    other = arc_tasks.write(folder / "files", more)
    build_arc([source, other], folder / "out", ArcConfig(num_aug=AUGMENTATIONS, **settings))
    return folder / "out"


def wrong(labels: Any, share: float, seed: int) -> Any:
    answers = np.where(labels == -100, 0, labels).copy()
    chosen = np.random.default_rng(seed).random(len(answers)) < share
    answers[chosen, 0] = (answers[chosen, 0] - 1) % 10 + 2
    return answers
