"""Puzzles: which functions decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries mean.
"""

from __future__ import annotations

from gristmill.code.digest import Code

_DATASET = (
    "gristmill.contract.counts_of",
    "gristmill.puzzles.raw.drops.source_files",
    "gristmill.puzzles.show.report_page.write_report",
)
"""What every build of a dataset does beside its builder."""

ARC = Code(
    entries=("gristmill.puzzles.builders.arc.build_arc", *_DATASET),
)
SUDOKU = Code(
    entries=("gristmill.puzzles.builders.sudoku.build_sudoku", *_DATASET),
)
MAZE = Code(
    entries=("gristmill.puzzles.builders.maze.build_maze", *_DATASET),
)
DOMINO = Code(
    entries=("gristmill.puzzles.builders.domino.build_domino", *_DATASET),
)
GRID = Code(entries=("gristmill.puzzles.builders.grid.build_grid", *_DATASET))
