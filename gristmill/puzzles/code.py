"""Puzzles: which functions decide the output of each asset."""

from __future__ import annotations

from gristmill.code.digest import Code

_DATASET = ("gristmill.puzzles.raw.drops.source_files",)
"""What every build of a dataset does beside its builder."""

ARC = Code(
    entries=("gristmill.puzzles.builders.arc.build_arc", *_DATASET),
    compatible_with=("333f35ee9a22921b32007d23e4ff47c5331e7fbf420dd33fd2608a0c35567891",),
)
SUDOKU = Code(
    entries=("gristmill.puzzles.builders.sudoku.build_sudoku", *_DATASET),
    compatible_with=("6e6d167ec5cb79b84fc330ec39e6f51a8b9a90ed9d9e872d20651844ecf7a855",),
)
MAZE = Code(
    entries=("gristmill.puzzles.builders.maze.build_maze", *_DATASET),
    compatible_with=("b2e160f02789778963627e685907203c742c0b2f516fa01f16e9e213d18b201a",),
)
DOMINO = Code(
    entries=("gristmill.puzzles.builders.domino.build_domino", *_DATASET),
    compatible_with=("0cd808a6ceecab3ef7b39b679e85202f5f65aeac8608fd8fb66a281035a29956",),
)
GRID = Code(
    entries=("gristmill.puzzles.builders.grid.build_grid", *_DATASET),
    compatible_with=("c63b790996b1827767f9b8943bc88a38b33e357cee6897902037807335528212",),
)
