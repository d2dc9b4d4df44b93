"""The eight symmetries, against numpy's rotations and mirrors."""

import numpy as np
import pytest

from gristmill.puzzles.domains.dihedral import INVERSE, index_map, index_maps, transform, turns

BY_NUMPY = {
    0: lambda grid: grid,
    1: lambda grid: np.rot90(grid, 1),
    2: lambda grid: np.rot90(grid, 2),
    3: lambda grid: np.rot90(grid, 3),
    4: np.fliplr,
    5: np.flipud,
    6: np.transpose,
    7: lambda grid: np.fliplr(np.rot90(grid, 1)),
}


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (3, 4), (4, 4)])
@pytest.mark.parametrize("symmetry", range(8))
def test_a_symmetry_is_what_numpy_makes(symmetry: int, shape: tuple[int, int]) -> None:
    grid = np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape)
    expected = BY_NUMPY[symmetry](grid)
    after = transform(grid, symmetry)
    assert after.dtype == grid.dtype and after.flags.c_contiguous
    np.testing.assert_array_equal(after, expected)
    np.testing.assert_array_equal(grid.flat[index_map(symmetry, *shape)], expected.reshape(-1))
    assert turns(symmetry) == (np.zeros((2, 3)).shape != BY_NUMPY[symmetry](np.zeros((2, 3))).shape)


@pytest.mark.parametrize("symmetry", range(8))
def test_the_inverse_undoes_a_symmetry(symmetry: int) -> None:
    grid = np.arange(12).reshape(3, 4)
    after = transform(transform(grid, symmetry), INVERSE[symmetry])
    np.testing.assert_array_equal(after, grid)


def test_the_maps_of_a_square_are_eight_permutations() -> None:
    maps = index_maps(3)
    assert maps.shape == (8, 9) and maps.dtype == np.int32
    assert len({tuple(each) for each in maps.tolist()}) == 8
    assert all(sorted(each) == list(range(9)) for each in maps.tolist())


@pytest.mark.parametrize("symmetry", [-1, 8])
def test_another_number_is_no_symmetry(symmetry: int) -> None:
    with pytest.raises(ValueError, match="not a symmetry"):
        transform(np.zeros((2, 2)), symmetry)
