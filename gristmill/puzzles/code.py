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
    compatible_with=(
        "3ed42fe03efd41c4a94408bc778f22166eb22a3890a62b8e1c5cc5d15c743e10",
        "f49887cb14c8b1586b9abd4f5656c2f6753b75358eaf17ee83575dea85992200",
        "8dd035e66fd5b186e421fe3462d402b5277bfac78625f49b774cf6ac2a949320",
    ),
)
SUDOKU = Code(
    entries=("gristmill.puzzles.builders.sudoku.build_sudoku", *_DATASET),
    compatible_with=(
        "5ef539b88e436066851ab4809fcfbbf0a50336fc4c88cc19d8e1516bd8844e13",
        "1ef49c52c9e7d5839fa5c944784d307be432aa5d5ecd7a677d59b8dd05175290",
        "2de705fe06d67d194e7aaa119dff47f657e09c74b10c895e8c15468305fe0ab3",
    ),
)
MAZE = Code(
    entries=("gristmill.puzzles.builders.maze.build_maze", *_DATASET),
    compatible_with=(
        "ac096b850d783819e2aad4fd0ccb5ec907c8bc3988211a07244b009f5bbccfba",
        "c2b5455fd9a2af2298a26793318c5e44b106986705339b145a9dbc33c0d03335",
        "d74f0ea17beb1c2720f0f9d948ee6a8906d66492d4c429b8cb51e49147f1e2f6",
    ),
)
DOMINO = Code(
    entries=("gristmill.puzzles.builders.domino.build_domino", *_DATASET),
    compatible_with=("cff7f7ee5ecfcff3ce0405ad603629bd41425204800e93f14cce99022863a884",),
)
GRID = Code(
    entries=("gristmill.puzzles.builders.grid.build_grid", *_DATASET),
    compatible_with=(
        "2ee101970cb702b884fcf6d75f99ab49e7bd8cbdb5d30739d478eb9d816ec9ce",
        "84fee85f99fe11405304965f363a913a1a1eb36cfbd430485ebec5a559b7b9a6",
        "f623fdd5f923c1ad81f030272f193cc8903a2d78b281c0cf1dc205ef5beb4bf8",
    ),
)
