"""Arrays of puzzles in npy files: integers of the size that the header says, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.read.npy_file import mapped_integers

CURE = "build the dataset again, or copy it again"


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize("dtype", ["u1", "<i4"])
def test_integers_are_as_they_were_written_and_cannot_be_changed(
    tmp_path: Path, shape: tuple[int, int], dtype: str
) -> None:
    file = tmp_path / "a.npy"
    written = np.arange(shape[0] * shape[1], dtype=dtype).reshape(shape)
    np.save(file, written)
    found = mapped_integers(file, file, 2)
    assert (found.dtype, found.shape) == (written.dtype, shape)
    assert found.tolist() == written.tolist()
    if found.size:
        assert not found.flags.writeable


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_is_cut_or_too_long_is_refused_with_both_sizes(
    tmp_path: Path, change: int
) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.zeros((2, 3), "<i4"))
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(size + change)
    with pytest.raises(BadInput) as caught:
        mapped_integers(file, Path("puzzles/x/a.npy"), 2)
    says = f"has {size + change} bytes, its header says {size}"
    assert str(caught.value) == f"puzzles/x/a.npy: {says}: {CURE}"


@pytest.mark.parametrize(
    ("array", "dimensions", "holds"),
    [
        (np.zeros(3), 1, "float64 (3,) in C order, expected integers in 1"),
        (np.zeros(3, "u1"), 2, "uint8 (3,) in C order, expected integers in 2"),
        (np.asfortranarray(np.zeros((2, 3), "u1")), 2, "uint8 (2, 3) in Fortran order"),
    ],
)
def test_what_is_no_array_of_the_contract_is_refused(
    tmp_path: Path, array: np.ndarray, dimensions: int, holds: str
) -> None:
    file = tmp_path / "a.npy"
    np.save(file, array)
    with pytest.raises(BadInput) as caught:
        mapped_integers(file, file, dimensions)
    assert f"{file}: holds {holds}" in str(caught.value)
    assert str(caught.value).endswith(CURE)


def test_a_file_without_a_header_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    file.write_bytes(b"no array")
    with pytest.raises(BadInput, match="has no npy header that can be read"):
        mapped_integers(file, file, 1)
