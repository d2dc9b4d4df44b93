"""Grids of any symbols: their tokens, and which cells of a row each of them takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.domains.dihedral import affine, turns
from gristmill.puzzles.format.metadata import Encoding

KIND: Final = "grid"
PAD: Final = 0

Cells = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Symbols:
    """What the cells of a dataset are, and their tokens.

    texts: of each token how a person writes it; that of padding is empty where no cell is padding.
    """

    texts: tuple[str, ...]
    token_of: dict[str | int, int]

    @classmethod
    def of(cls, alphabet: str | None, values: int | None, pad: str | None) -> Self:
        """The symbols of the cells that a config names; see `GridConfig` for its fields."""
        cells: list[str | int] = list(alphabet or range(values or 0))
        pads = [cell for cell in cells if str(cell) == pad]
        ordered = [*pads, *(cell for cell in cells if cell not in pads)]
        first = 0 if pads else 1
        token_of = {cell: token for token, cell in enumerate(ordered, first)}
        return cls(("",) * first + tuple(map(str, ordered)), token_of)

    def encoding(self, height: int, width: int) -> Encoding:
        """The numbers of a dataset whose rows have so many cells."""
        return Encoding(seq_len=height * width, vocab_size=len(self.texts))


def trimmed(tokens: Cells) -> Cells:
    """A grid without the rows below and the columns to its right that are all padding."""
    height, width = extents(tokens[None])[0].tolist()
    return tokens[:height, :width]


def extents(tokens: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Height and width up to the last cell that is no padding, int64 [n, 2]."""
    used = tokens != PAD
    sides = (used.any(axis=2), used.any(axis=1))
    counted = [
        np.where(of, np.arange(1, of.shape[1] + 1), 0).max(axis=1, initial=0) for of in sides
    ]
    return np.stack(counted, axis=1).astype(np.int64)


@cache
def turned_cells(
    symmetry: int, shape: tuple[int, int], sides: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """Where each cell of a row comes from when its grid is turned, -1 for padding: int64 [cells].

    shape: of the grid before. sides: rows and columns of a row of tokens, whose upper left the grid
    takes, before and after. The same array comes back: do not change it.
    """
    height, width = shape
    start, down, right = affine(symmetry, height, width)
    rows, columns = (width, height) if turns(symmetry) else (height, width)
    own = start + np.arange(rows)[:, None] * down + np.arange(columns) * right
    cells = np.full(sides, -1, np.int64)
    cells[:rows, :columns] = own // width * sides[1] + own % width
    return cells.reshape(-1)
