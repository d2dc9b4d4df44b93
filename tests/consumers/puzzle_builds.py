"""Small datasets of every kind of puzzle, built for the readers of HRM and TRM."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.grid import build_grid
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, GridConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.raw.samples import write_grid_sample, write_maze_sample, write_sudoku_sample
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_tasks import write

KINDS: Final = ("arc", "sudoku", "maze", "domino", "grid")
AUGMENTATIONS: Final = 8


def arc(folder: Path, seed: int = 1, **settings: Any) -> Path:
    """A dataset of ARC: tasks of two forms, ids with `_`, several test pairs, 8 augmentations."""
    source = write(folder / "kaggle", "training", {"tr_1": arc_tasks.task(10 * seed, most=5)})
    write(source, "evaluation", {"ev_1": arc_tasks.task(10 * seed + 1, test=3, colours=9)})
    more = {f"evaluation/e{seed}": arc_tasks.task(10 * seed + 2, test=2, colours=9)}
    other = arc_tasks.write(folder / "files", more)
    build_arc([source, other], folder / "out", ArcConfig(num_aug=AUGMENTATIONS, **settings))
    return folder / "out"


def built(kind: str, folder: Path) -> Path:
    """A dataset of a kind, in a new folder below `folder`."""
    if kind == "arc":
        return arc(folder, dtype="uint8")
    out, drop = folder / "out", folder / "drop"
    if kind == "sudoku":
        write_sudoku_sample(drop)
        build_sudoku(drop, out, SudokuConfig(num_aug=2))
    elif kind == "maze":
        write_maze_sample(drop)
        build_maze(drop, out, MazeConfig(aug=True, dtype="uint8"))
    elif kind == "grid":
        write_grid_sample(drop)
        build_grid(drop, out, GridConfig(alphabet=".#So", dihedral=True))
    else:
        build_domino(out, DominoConfig(num_games=20, num_aug=1))
    return out


def wrong(labels: Any, share: float, seed: int) -> Any:
    """Answers of which a share has another colour in the first cell."""
    answers = np.where(labels == -100, 0, labels).copy()
    chosen = np.random.default_rng(seed).random(len(answers)) < share
    answers[chosen, 0] = (answers[chosen, 0] - 1) % 10 + 2
    return answers
