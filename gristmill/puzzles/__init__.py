"""Puzzles to datasets of the original `PuzzleDataset`: ARC, Sudoku, mazes, Domino and grids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.puzzles.builders.arc import build_arc
    from gristmill.puzzles.builders.domino import build_domino
    from gristmill.puzzles.builders.grid import build_grid
    from gristmill.puzzles.builders.maze import build_maze
    from gristmill.puzzles.builders.sudoku import build_sudoku
    from gristmill.puzzles.config import (
        ArcConfig,
        DominoConfig,
        GridConfig,
        MazeConfig,
        SudokuConfig,
    )
    from gristmill.puzzles.domains.arc_grid import arc_vote, aug_id, inverse, task_hash
    from gristmill.puzzles.format.dataset import PuzzleDatasetMetadata
    from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
    from gristmill.puzzles.read.examples import PuzzleExamples, trace

__all__ = [
    "ArcConfig",
    "DominoConfig",
    "GridConfig",
    "MazeConfig",
    "PuzzleDataset",
    "PuzzleDatasetConfig",
    "PuzzleDatasetMetadata",
    "PuzzleExamples",
    "SudokuConfig",
    "arc_vote",
    "aug_id",
    "build_arc",
    "build_domino",
    "build_grid",
    "build_maze",
    "build_sudoku",
    "inverse",
    "task_hash",
    "trace",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "builders.arc": ("build_arc",),
        "builders.domino": ("build_domino",),
        "builders.grid": ("build_grid",),
        "builders.maze": ("build_maze",),
        "builders.sudoku": ("build_sudoku",),
        "config": ("ArcConfig", "DominoConfig", "GridConfig", "MazeConfig", "SudokuConfig"),
        "domains.arc_grid": ("arc_vote", "aug_id", "inverse", "task_hash"),
        "format.dataset": ("PuzzleDatasetMetadata",),
        "read.dataset": ("PuzzleDataset", "PuzzleDatasetConfig"),
        "read.examples": ("PuzzleExamples", "trace"),
    },
)
