"""The sample drop of ARC can be built, and is always the same."""

from pathlib import Path

import numpy as np

from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.laws.arc import arc_laws
from gristmill.puzzles.raw.arc_tasks import read_tasks
from gristmill.puzzles.raw.samples.arc import write_arc_sample


def test_the_sample_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_arc_sample(tmp_path / name)
    one, two = (
        {path.relative_to(folder): sha256_file(path) for path in folder.rglob("*.json")}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two and len(one) == 8


def test_the_sample_has_what_is_unusual_in_real_tasks(tmp_path: Path) -> None:
    write_arc_sample(tmp_path / "drop")
    tasks = {task.base: task for task in read_tasks(tmp_path / "drop")}
    assert tasks["gravity"].is_test == (True, True, False, False, False)
    assert (
        max(grid.shape[0] for task in tasks.values() for pair in task.pairs for grid in pair) > 20
    )
    for before, after in tasks["mirror"].pairs:
        np.testing.assert_array_equal(after, np.fliplr(before))
    summary = build_arc(tmp_path / "drop", tmp_path / "out", ArcConfig(num_aug=20))
    assert summary.groups == {"train": 8, "test": 3}
    assert summary.duplicates_removed > 0
    assert list(arc_laws(tmp_path / "out")) == []
