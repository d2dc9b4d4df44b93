"""Index and values of a dataset as Megatron asks for them, against Megatron's own reader."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import megatron
from gristmill.synth.format.megatron import Index, MappedValues, UnmappedValues

pytestmark = pytest.mark.filterwarnings("ignore")


def held(path: Path) -> Any:
    return SimpleNamespace(path=path, opened=path)


@pytest.mark.parametrize("name", sorted(megatron.DTYPES))
@pytest.mark.parametrize("split", ["train", "valid"])
def test_index_and_values_are_those_that_megatron_reads(
    kd_root: Path, split: str, name: str
) -> None:
    core = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    prefix = megatron.sibling(kd_root / split / "shard_00_tokens", name)
    index = Index(prefix.with_name(f"{prefix.name}.idx"), megatron.DTYPES[name])
    bin_file = prefix.with_name(f"{prefix.name}.bin")
    for mapped in (True, False):
        theirs = core.IndexedDataset(str(prefix), mmap=mapped)
        ours = MappedValues(bin_file) if mapped else UnmappedValues(held(bin_file))
        assert len(index) == len(theirs) > 0
        for array in ("sequence_lengths", "sequence_pointers", "document_indices"):
            expected = getattr(theirs.index, array)
            assert getattr(index, array).dtype == expected.dtype
            assert np.array_equal(getattr(index, array), expected)
        for field in ("dtype", "sequence_count", "document_count", "sequence_modes"):
            assert getattr(index, field) == getattr(theirs.index, field)
        for document in range(len(index)):
            pointer, length, mode = index[document]
            assert (pointer, length, mode) == theirs.index[document]
            values = ours.read(index.dtype, length, pointer)
            assert values.dtype == theirs[document].dtype
            assert np.array_equal(values, theirs[document])


def test_values_that_end_before_their_index_are_refused(kd_copy: Path) -> None:
    file = kd_copy / "train/shard_00_span.bin"
    size = file.stat().st_size
    unmapped = UnmappedValues(held(file))
    assert len(unmapped.read(np.uint8, 4, size - 4)) == 4
    with pytest.raises(BadInput, match="ends before its index says: build the shard again"):
        unmapped.read(np.uint8, 5, size - 4)


def test_a_read_that_fails_is_repeated(
    kd_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storage in a network can be away for a while."""
    file = kd_copy / "train/shard_00_span.bin"
    moved = Path(shutil.move(file, tmp_path / "away"))
    slept: list[int] = []

    def sleep(seconds: int) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            shutil.move(moved, file)

    monkeypatch.setattr("gristmill.synth.format.megatron.time.sleep", sleep)
    assert len(UnmappedValues(held(file)).read(np.uint8, 4, 0)) == 4
    assert slept == [10, 20]
    shutil.move(file, moved)
    with pytest.raises(FileNotFoundError):
        UnmappedValues(held(tmp_path / "missing")).read(np.uint8, 4, 0)
    assert slept == [10, 20, 10, 20, 40]
