"""Real ARC tasks: the numbers that the original builder gives for them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from gristmill.puzzles.builders.arc import ArcSummary, build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.laws.arc import arc_laws
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.puzzles.raw.arc_tasks import read_tasks
from tests.paths import REAL_DATA

REAL = REAL_DATA / "puzzles"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data at {REAL}"),
]


def built(out: Path, num_aug: int, *sources: str, leaks: str = "refuse") -> ArcSummary:
    config = ArcConfig(num_aug=num_aug, dtype="uint8", leaks=leaks)  # type: ignore[arg-type]
    summary = build_arc([REAL / source for source in sources], out, config)
    assert [*contract_laws(out), *arc_laws(out)] == []
    return summary


def mean(out: Path, split: str) -> float:
    return float(json.loads((out / split / "dataset.json").read_text())["mean_puzzle_examples"])


def test_arc_1_has_the_groups_and_examples_of_the_original(tmp_path: Path) -> None:
    summary = built(tmp_path / "out", 0, "arc")
    assert summary.groups == summary.puzzles == {"train": 800, "test": 400}
    assert summary.examples == {"train": 3081, "test": 419}
    assert mean(tmp_path / "out", "train") == 3.85125
    assert mean(tmp_path / "out", "test") == 1.0475
    assert summary.identifiers == 801
    assert summary.leaks_dropped == summary.files_dropped == 0


def test_arc_1_with_concept_arc_is_not_refused(tmp_path: Path) -> None:
    summary = built(tmp_path / "out", 2, "arc", "concept_arc/corpus")
    assert summary.groups == {"train": 960, "test": 400}
    # Two tests of ARC-1 repeat a pair of its training; nothing of ConceptARC does.
    assert summary.known_leaks == 2


def test_the_tests_that_arc_1_trains_are_dropped_where_the_config_says_so(tmp_path: Path) -> None:
    summary = built(tmp_path / "out", 0, "arc", leaks="drop")
    assert summary.leaks_dropped == 2 and summary.known_leaks == 0
    assert summary.examples["test"] == 417


def test_the_files_have_what_the_rules_speak_of() -> None:
    tasks = read_tasks(REAL / "arc")
    keys = Counter(tuple(json.loads(task.path.read_text())) for task in tasks)
    assert sum(count for order, count in keys.items() if order[0] == "test") == 81
    assert sum(count for order, count in keys.items() if "name" in order) == 11
    assert sum(task.is_test[0] for task in tasks) == 81


@pytest.mark.slow
def test_a_task_with_few_symmetries_is_not_full(tmp_path: Path) -> None:
    summary = built(tmp_path / "out", 100, "arc")
    assert 10 < summary.not_full < 30
    listed = json.loads((tmp_path / "out" / "identifiers.json").read_text())
    assert sum(name.startswith("332efdb3_") for name in listed) == 8
    assert summary.augmented > 300_000
