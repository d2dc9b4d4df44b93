"""Megatron's files: their bytes, their alignment and digest, and what Megatron asks them for."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import megatron
from gristmill.synth.format.megatron import Index, MappedValues, UnmappedValues
from tests.paths import CHECKOUT


def write(prefix: Path, lengths: list[int], dtype: str, batches: int = 1) -> np.ndarray:
    values = np.arange(sum(lengths)).astype(dtype)
    with megatron.IndexedWriter(prefix, dtype) as writer:
        at = 0
        for batch in np.array_split(np.array(lengths, dtype=np.int32), batches):
            size = int(batch.sum())
            writer.add(values[at : at + size], batch)
            at += size
    return values


@pytest.mark.parametrize("dtype", ["<i4", "u1"])
@pytest.mark.parametrize("lengths", [[5], [3, 1, 4, 1, 5, 9, 2, 6]])
def test_the_files_have_the_bytes_of_megatrons_builder(tmp_path, dtype, lengths):
    core = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    values = write(tmp_path / "ours", lengths, dtype, batches=3)
    builder = core.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=np.dtype(dtype).type)
    at = 0
    for length in lengths:
        builder.add_document(values[at : at + length], [length])
        at += length
    builder.finalize(str(tmp_path / "theirs.idx"))
    for kind in ("bin", "idx"):
        assert (tmp_path / f"ours.{kind}").read_bytes() == (
            tmp_path / f"theirs.{kind}"
        ).read_bytes()


def test_an_index_of_many_batches_has_the_same_bytes(tmp_path, monkeypatch):
    lengths = [1 + n % 7 for n in range(100)]
    write(tmp_path / "whole", lengths, "<i4")
    monkeypatch.setattr(megatron, "_BATCH", 9)
    values = write(tmp_path / "batches", lengths, "<i4", batches=10)
    assert (tmp_path / "whole.idx").read_bytes() == (tmp_path / "batches.idx").read_bytes()
    assert (tmp_path / "whole.idx").stat().st_size == 42 + 20 * 100
    dataset = megatron.read(tmp_path / "batches")
    assert len(dataset) == 100
    assert np.array_equal(dataset.values, values)
    assert dataset[3].tolist() == values[6:10].tolist()
    assert np.concatenate([*dataset.length_batches()]).tolist() == lengths
    edges = [0, *np.cumsum(lengths).tolist()]
    for first, last in ((0, 100), (0, 0), (3, 20), (98, 100), (100, 100)):
        assert dataset.bounds(first, last).tolist() == edges[first : last + 1]
    with pytest.raises(IndexError, match="documents 99 to 101 of 100"):
        dataset.bounds(99, 101)
    assert megatron.same_boundaries(dataset, megatron.read(tmp_path / "whole"))
    write(tmp_path / "other", [*lengths[:-1], lengths[-1] + 1], "u1")
    write(tmp_path / "fewer", lengths[:-1], "u1")
    for name in ("other", "fewer"):
        assert not megatron.same_boundaries(dataset, megatron.read(tmp_path / name))


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [
        (0, b"X", "version 1 index"),
        (9, b"\x02", "version 1 index"),
        (17, b"\x07", "dtype code 7"),
        (18, b"\x09", "document indices"),
        (34, b"\x09", "offsets are not the sums"),
        (34 + 4 * 3 + 8, b"\x09", "offsets are not the sums"),
        (34 + 12 * 3, b"\x09", "indices are not 0, 1"),
        (34 + 12 * 3 + 8 * 3, b"\x09", "indices are not 0, 1"),
        (34 + 4 * 3 + 8 * 2, b"\x09", "offsets are not the sums"),
    ],
)
@pytest.mark.parametrize("batch", [2, 1 << 16])
def test_a_damaged_index_is_refused(tmp_path, place, value, rule, batch, monkeypatch):
    monkeypatch.setattr(megatron, "_BATCH", batch)
    write(tmp_path / "d", [2, 3, 4], "<i4")
    data = bytearray((tmp_path / "d.idx").read_bytes())
    data[place : place + 1] = value
    (tmp_path / "d.idx").write_bytes(data)
    with pytest.raises(BadInput, match=rule):
        megatron.read(tmp_path / "d")


def test_a_truncated_file_and_values_of_another_type_are_refused(tmp_path):
    write(tmp_path / "d", [2, 3, 4], "<i4")
    with (tmp_path / "d.bin").open("r+b") as file:
        file.truncate(35)
    with pytest.raises(BadInput, match="35 bytes, its index says 36"):
        megatron.read(tmp_path / "d")
    with (tmp_path / "d.idx").open("r+b") as file:
        file.truncate(20)
    with pytest.raises(BadInput, match="20 bytes are too few for an index"):
        megatron.read(tmp_path / "d")
    (tmp_path := tmp_path / "next").mkdir()
    with megatron.IndexedWriter(tmp_path / "d", "u1") as writer:
        with pytest.raises(ValueError, match="does not fit"):
            writer.add(np.zeros(3, dtype=np.uint8), np.array([2], dtype=np.int32))
        with pytest.raises(ValueError, match="does not fit"):
            writer.add(np.zeros(2, dtype=np.int32), np.array([2], dtype=np.int32))


_CHILD = """
import sys
from pathlib import Path
from gristmill.synth.laws import kd_laws
from gristmill.synth.format import megatron

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

for root in map(Path, sys.argv[1:]):
    # These datasets lack only a trace.
    assert [v.law for v in kd_laws(root, "00")] == ["trace"]
    megatron.digest(root / "train/shard_00_tokens")
    for _ in megatron.read(root / "train/shard_00_tokens").length_batches():
        pass
    print(peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peak memory in /proc")
def test_memory_does_not_grow_with_the_documents(tmp_path):
    """A million documents: one int64 for each would be 8 MB."""
    document = np.array([200006, 200008, 200007, 199999], dtype="<i4")
    rows = 1 << 17
    values = {"tokens": np.tile(document, rows), "lossmask": np.zeros(4 * rows, dtype="u1")}
    values["span"] = values["lossmask"]
    for name, times in (("some", 1), ("many", 8)):
        for suffix, array in values.items():
            prefix = tmp_path / name / f"train/shard_00_{suffix}"
            with megatron.IndexedWriter(prefix, array.dtype) as writer:
                for _ in range(times):
                    writer.add(array, np.full(rows, 4, dtype=np.int32))
    # The first two runs are equal, so that the second one measures a warm allocator.
    roots = [str(tmp_path / name) for name in ("some", "some", "many")]
    ran = subprocess.run(
        [sys.executable, "-c", _CHILD, *roots],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    _, some, many = map(int, ran.stdout.split())
    assert many - some < 6_000_000


def test_an_empty_document_is_refused_and_an_error_leaves_no_index(tmp_path):
    write(tmp_path / "d", [2, 0, 3], "<i4")
    with pytest.raises(BadInput, match="a document is empty"):
        megatron.read(tmp_path / "d")
    (tmp_path := tmp_path / "next").mkdir()
    with pytest.raises(RuntimeError), megatron.IndexedWriter(tmp_path / "d", "u1") as writer:
        writer.add(np.zeros(2, dtype=np.uint8), np.array([2], dtype=np.int32))
        raise RuntimeError
    with pytest.raises(BadInput, match="version 1 index"):
        megatron.read(tmp_path / "d")


def test_a_missing_file_is_named_and_an_existing_one_is_not_replaced(tmp_path):
    write(tmp_path / "d", [1], "u1")
    (tmp_path / "d.bin").unlink()
    with pytest.raises(BadInput, match=r"d\.bin: the file is missing"):
        megatron.read(tmp_path / "d")
    (tmp_path / "d.bin").touch()
    with pytest.raises(FileExistsError):
        megatron.IndexedWriter(tmp_path / "d", "u1")


@pytest.mark.parametrize(("first", "last"), [(-1, 1), (2, 1), (0, 4)])
def test_bounds_of_missing_documents_are_refused(tmp_path, first, last):
    write(tmp_path / "d", [2, 3, 4], "<i4")
    with pytest.raises(IndexError, match=f"documents {first} to {last} of 3"):
        megatron.read(tmp_path / "d").bounds(first, last)


def test_a_copy_has_its_begin_and_not_its_stop_and_no_documents_are_readable(tmp_path):
    values = write(tmp_path / "d", [2, 3, 4], "<i4")
    dataset = megatron.read(tmp_path / "d")
    assert dataset.load(2, 5).tolist() == values[2:5].tolist() == dataset[1].tolist()
    (tmp_path := tmp_path / "next").mkdir()
    write(tmp_path / "d", [], "<i4", batches=1)
    dataset = megatron.read(tmp_path / "d")
    assert (len(dataset), dataset.size) == (0, 0)
    assert (dataset.values.tolist(), dataset.lengths.tolist()) == ([], [])
    assert dataset.bounds(0, 0).tolist() == [0]
    assert (tmp_path / "d.idx").stat().st_size == 42


def write_datasets(tokens: Path, lengths: list[int]) -> None:
    for name, dtype in megatron.DTYPES.items():
        with megatron.IndexedWriter(megatron.sibling(tokens, name), dtype) as writer:
            writer.add(np.zeros(sum(lengths), dtype=dtype), np.array(lengths, dtype=np.int32))


def test_without_a_record_the_digest_is_that_of_the_three_index_files(tmp_path):
    tokens = tmp_path / "kd/train/shard_00_tokens"
    write_datasets(tokens, [3, 2])
    joined = ""
    for name in ("tokens", "lossmask", "span"):
        index = tokens.with_name(f"shard_00_{name}.idx")
        joined += hashlib.sha256(index.read_bytes()).hexdigest()
    assert megatron.digest(tokens) == hashlib.sha256(joined.encode()).hexdigest()


@pytest.mark.parametrize("name", ["shard_00_tokens", "part_tokens", "shard_00_tokens_tokens"])
def test_without_a_record_the_cache_is_beside_the_dataset(tmp_path, name):
    tokens = tmp_path / "kd/train" / name
    assert megatron.cache_folder(tokens) == tmp_path / "cache/synth/kd/train" / name


def test_a_missing_dataset_is_refused_with_its_prefix(tmp_path):
    tokens = tmp_path / "kd/train/shard_00_tokens"
    with pytest.raises(RuntimeError, match=r"shard_00_tokens: the dataset is not complete"):
        megatron.digest(tokens)


pytestmark = pytest.mark.filterwarnings("ignore")


def held(path: Path) -> Any:
    return SimpleNamespace(path=path, opened=path)


@pytest.mark.parametrize("name", sorted(megatron.DTYPES))
@pytest.mark.parametrize("split", ["train", "valid"])
def test_index_and_values_are_those_that_megatron_reads(kd_root, split, name):
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


def test_values_that_end_before_their_index_are_refused(kd_copy):
    file = kd_copy / "train/shard_00_span.bin"
    size = file.stat().st_size
    unmapped = UnmappedValues(held(file))
    assert len(unmapped.read(np.uint8, 4, size - 4)) == 4
    with pytest.raises(BadInput, match="ends before its index says: build the shard again"):
        unmapped.read(np.uint8, 5, size - 4)


def test_a_read_that_fails_is_repeated(kd_copy, tmp_path, monkeypatch):
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
