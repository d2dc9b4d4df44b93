"""The sample of grids: the same bytes each time, and answers that fill what is reached."""

from __future__ import annotations

import json
from pathlib import Path

from gristmill.puzzles.builders.grid import build_grid
from gristmill.puzzles.config import GridConfig
from gristmill.puzzles.raw.recipes import BUILT_IN
from gristmill.puzzles.raw.samples.grid import ALPHABET, GRIDS, write_grid_sample


def test_the_sample_is_always_the_same_and_builds_without_leaks(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_grid_sample(tmp_path / name)
    for split, count in GRIDS.items():
        one, two = (tmp_path / name / f"{split}.jsonl" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        rows = [json.loads(line) for line in one.read_text().splitlines()]
        assert len(rows) == count
        for row in rows:
            assert set("".join(row["output"])) <= set(ALPHABET)
            assert [line.replace("o", ".") for line in row["output"]] == row["input"]
    config = GridConfig(**BUILT_IN["grid-sample"].settings)
    assert build_grid(tmp_path / "one", tmp_path / "out", config).examples["train"] == 8 * 24
