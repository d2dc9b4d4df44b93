"""The real maze dataset, turned back into the CSV files that it was built from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.paths import REAL_DATA

BUILT = REAL_DATA / "puzzles" / "maze_hrm_built"
CHARACTERS = "?# SGo"


def write_csv(path: Path, mazes: list[tuple[str, str]]) -> None:
    """Write mazes, question and answer, as a rated CSV file."""
    lines = [f"here,{question},{answer},{answer.count('o')}" for question, answer in mazes]
    path.write_text("\n".join(["source,question,answer,rating", *lines]) + "\n")


def write_drop(folder: Path) -> Path:
    """Write the real mazes into a new folder; skips the test where they are not there."""
    if not BUILT.is_dir():
        pytest.skip(f"no real data at {BUILT} (GRISTMILL_REAL_DATA)")
    folder.mkdir()
    for split in ("train", "test"):
        mazes = [
            ["".join(CHARACTERS[token] for token in row) for row in np.load(path).tolist()]
            for path in (BUILT / split / f"all__{name}.npy" for name in ("inputs", "labels"))
        ]
        write_csv(folder / f"{split}.csv", list(zip(*mazes, strict=True)))
    return folder
