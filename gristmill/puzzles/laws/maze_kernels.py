"""Compiled checks of mazes: whether the rows of a group are symmetries of its first one.

They share no code with the builder, which turns mazes by indices of NumPy.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from gristmill.run.kernels import kernel


@kernel(nogil=True)
def differing(tokens, maps, group):
    """Which rows are not their symmetry of the first row of their group: bool [rows].

    tokens: integers [rows, cells], whole groups of `group` rows.
    maps: int32 [8, cells], the cell that each cell comes from, by symmetry.
    """
    found = np.zeros(tokens.shape[0], np.bool_)
    for row in range(tokens.shape[0]):
        symmetry = row % group
        first, here, cells = tokens[row - symmetry], tokens[row], maps[symmetry]
        differs = False
        for cell in range(cells.shape[0]):
            differs |= here[cell] != first[np.uint64(cells[cell])]
        found[row] = differs
    return found
