"""The eight symmetries of a grid by their ids: on grids, as index maps, and for kernels.

0 is the identity; 1, 2, 3 rotate by 90, 180, 270 degrees counter-clockwise; 4 mirrors left and
right, 5 up and down; 6 transposes; 7 along the other diagonal.
Source: docs/formats/puzzles.md#symmetries
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)

SYMMETRIES: Final = 8
"""How many there are: the ids are 0 to 7."""
INVERSE: Final = (0, 3, 2, 1, 4, 5, 6, 7)
"""The id that undoes each id."""


def affine(symmetry: int, height: int, width: int) -> tuple[int, int, int]:
    """Return (start, down, right): where the cells of a transformed grid come from.

    Cell (r, c) of the transformed grid is cell `start + r * down + c * right` of the grid before,
    row by row. It has no imports, so that a kernel can compile it: `kernel()(affine)`.
    """
    if symmetry == 0:
        return 0, width, 1
    if symmetry == 1:
        return width - 1, -1, width
    if symmetry == 2:
        return height * width - 1, -width, -1
    if symmetry == 3:
        return (height - 1) * width, 1, -width
    if symmetry == 4:
        return width - 1, width, -1
    if symmetry == 5:
        return (height - 1) * width, -width, 1
    if symmetry == 6:
        return 0, 1, width
    return height * width - 1, -1, -width


def turns(symmetry: int) -> bool:
    """Return whether height and width change places. It has no imports, as `affine`."""
    return symmetry == 1 or symmetry == 3 or symmetry >= 6


def transform(grid: npt.NDArray[Scalar], symmetry: int) -> npt.NDArray[Scalar]:
    """Return a grid after a symmetry."""
    height, width = grid.shape
    shape = (width, height) if turns(symmetry) else (height, width)
    return grid.reshape(-1)[index_map(symmetry, height, width)].reshape(shape)


def index_map(symmetry: int, height: int, width: int) -> npt.NDArray[np.int32]:
    """Return where each cell of a transformed grid comes from, row by row."""
    if symmetry not in range(SYMMETRIES):
        raise ValueError(f"{symmetry!r} is not a symmetry: the ids are 0 to {SYMMETRIES - 1}")
    start, down, right = affine(symmetry, height, width)
    rows, columns = (width, height) if turns(symmetry) else (height, width)
    cells = start + np.arange(rows)[:, None] * down + np.arange(columns) * right
    return cells.astype(np.int32).reshape(-1)


@cache
def index_maps(side: int) -> npt.NDArray[np.int32]:
    """Return the index maps of all symmetries of a square grid, int32 [8, side * side].

    side: cells of one side. The same array comes back for the same side: do not change it.
    """
    return np.stack([index_map(symmetry, side, side) for symmetry in range(SYMMETRIES)])
