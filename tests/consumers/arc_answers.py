"""What the evaluators of HRM and TRM do alike: grids of predicted tokens, undone and hashed."""

import hashlib

import numpy as np
import numpy.typing as npt

Grid = npt.NDArray[np.uint8]
_INVERSE = (0, 3, 2, 1, 4, 5, 6, 7)


def cropped(tokens: npt.NDArray[np.int32]) -> Grid:
    """The largest rectangle of colours from the first cell on; tokens: [900]."""
    cells = tokens.reshape(30, 30)
    best, width = (0, 0, 0), 30
    for height in range(1, 31):
        line = (cells[height - 1] < 2) | (cells[height - 1] > 11)
        width = min(width, int(line.argmax()) if line.any() else 30)
        if height * width > best[0]:
            best = (height * width, height, width)
    return (cells[: best[1], : best[2]] - 2).astype(np.uint8)


def undone(grid: Grid, symmetry: str, colours: str) -> Grid:
    """A grid before the augmentation `t3`, `0124356789`."""
    turned = {
        0: grid,
        1: np.rot90(grid),
        2: np.rot90(grid, 2),
        3: np.rot90(grid, 3),
        4: np.fliplr(grid),
        5: np.flipud(grid),
        6: grid.T,
        7: np.fliplr(np.rot90(grid)),
    }[_INVERSE[int(symmetry[1:])]]
    before: Grid = np.argsort(list(map(int, colours))).astype(np.uint8)[turned]
    return before


def hashed(grid: Grid) -> str:
    """The sha256 of height, width and cells, a byte each, in hex."""
    return hashlib.sha256(bytes(grid.shape) + np.ascontiguousarray(grid).tobytes()).hexdigest()
