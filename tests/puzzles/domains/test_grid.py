"""Where the cells of grids stand in rows of tokens, and which token a cell has."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.puzzles.domains.dihedral import transform
from gristmill.puzzles.domains.grid import Symbols, extents, trimmed, turned_cells


@pytest.mark.parametrize("symmetry", range(8))
@pytest.mark.parametrize("sides", [(4, 4), (3, 5), (5, 3)])
def test_a_turned_grid_is_at_the_upper_left_of_its_row(
    symmetry: int, sides: tuple[int, int]
) -> None:
    grid = np.arange(1, 7).reshape(2, 3)
    row = np.zeros(sides, int)
    row[:2, :3] = grid
    turned = transform(grid, symmetry)
    expected = np.zeros(sides, int)
    expected[: turned.shape[0], : turned.shape[1]] = turned
    cells = turned_cells(symmetry, (2, 3), sides)
    assert np.where(cells < 0, 0, row.reshape(-1)[cells]).tolist() == expected.reshape(-1).tolist()


def test_a_grid_ends_at_its_last_cell_that_is_no_padding() -> None:
    grids = np.zeros((3, 2, 4), np.uint16)
    grids[0, 0, 2] = grids[1, 1, 0] = 1
    assert extents(grids).tolist() == [[1, 3], [2, 1], [0, 0]]
    assert trimmed(grids[0]).tolist() == [[0, 0, 1]] and trimmed(grids[2]).size == 0


def test_tokens_follow_the_order_of_the_cells_with_padding_first() -> None:
    assert Symbols.of(".#S", None, None).token_of == {".": 1, "#": 2, "S": 3}
    assert Symbols.of(".#S", None, "S").texts == ("S", ".", "#")
    plain = Symbols.of(None, 3, None)
    assert plain.token_of == {0: 1, 1: 2, 2: 3} and plain.encoding(2, 5).vocab_size == 4
    assert plain.encoding(2, 5).seq_len == 10
