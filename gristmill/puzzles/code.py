"""Puzzles: which modules decide the output of each asset.

See also `gristmill.code_digest`: how a digest is made of them, and what its entries mean.
"""

from __future__ import annotations

from gristmill.code_digest import Code

ARC = Code(
    modules=("gristmill.puzzles.build.arc",),
    compatible_with=("33d654526ed9bd222f66853a5047bf104362ec2f3d79b9661c23adad6b58dc8c",),
)
SUDOKU = Code(
    modules=("gristmill.puzzles.build.sudoku",),
    compatible_with=("9a134d8e6a99deb92d93ddfd010827f9c6a2debb04ed20ac2d79893db232c2ca",),
)
MAZE = Code(
    modules=("gristmill.puzzles.build.maze",),
    compatible_with=("83fe244d2ac747a715848a59493c8822315504c47186445dd6dfdd57080fb5d6",),
)
DOMINO = Code(
    modules=("gristmill.puzzles.build.domino",),
)
