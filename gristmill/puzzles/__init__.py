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

__all__, __getattr__ = lazy_exports(__name__)
