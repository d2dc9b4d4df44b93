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
        "56efaa0a5f86bd0635baf6805deb31204d1c9707a073415c1fdb3e887f65c292",
        "c2e1da02ea365bffd17ea618a7682ab9e360ca765753694b2679a6bcb588f85a",
        "33d654526ed9bd222f66853a5047bf104362ec2f3d79b9661c23adad6b58dc8c",
        "c1d05202f500445c2474df173b23baf6e5f17e3cbd58adc9ce1844947b901b1b",
    ),
)
SUDOKU = Code(
    entries=("gristmill.puzzles.builders.sudoku.build_sudoku", *_DATASET),
    compatible_with=(
        "05358fb27e2f4028f086f5bfa5d11174defb001fde2772f02ee8319179ca0fce",
        "46340f9d6e8ca6b4856a0966173b992966a11af5ab05337d59462f5f6cfd5cd5",
        "9a134d8e6a99deb92d93ddfd010827f9c6a2debb04ed20ac2d79893db232c2ca",
        "e49dd8d49698ae10940246754e30b4bd55650b0234f456947be128a9cf11c13e",
    ),
)
MAZE = Code(
    entries=("gristmill.puzzles.builders.maze.build_maze", *_DATASET),
    compatible_with=(
        "26d0f56853a04c3058d3679b1314857a10b8472a3bca580616fea4c67e763b56",
        "787724c036bc0c994ce545265f4b9bfd5fd0f043cb6cbcb36a5bef00b870fc60",
    ),
)
DOMINO = Code(
    entries=("gristmill.puzzles.builders.domino.build_domino", *_DATASET),
    compatible_with=(
        "1513a9da339c6adc00dbaf693ee4deaf1a86a611d0368809b6a8c281adc2eefe",
        "602a3c9a91a9ff2119a61cd37ba603d786a7d3a4ccc26061caee44a80d56c341",
        "71dbaec5e65c93c7125a90770e0c48bc562998c64813ce76a1c5db443c42db02",
    ),
)
GRID = Code(entries=("gristmill.puzzles.builders.grid.build_grid", *_DATASET))
