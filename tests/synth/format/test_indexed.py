"""IndexedDataset files against `docs/formats/synth.md#idx-file` and Megatron's builder."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.synth.format import indexed
from tests.paths import CHECKOUT


def write(prefix: Path, lengths: list[int], dtype: str, pieces: int = 1) -> np.ndarray:
    values = np.arange(sum(lengths)).astype(dtype)
    with indexed.IndexedWriter(prefix, dtype) as writer:
        at = 0
        for part in np.array_split(np.array(lengths, dtype=np.int32), pieces):
            size = int(part.sum())
            writer.add(values[at : at + size], part)
            at += size
    return values


@pytest.mark.parametrize("dtype", ["<i4", "u1"])
@pytest.mark.parametrize("lengths", [[5], [3, 1, 4, 1, 5, 9, 2, 6]])
def test_the_bytes_are_those_of_megatrons_builder(
    tmp_path: Path, dtype: str, lengths: list[int]
) -> None:
    megatron = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    values = write(tmp_path / "ours", lengths, dtype, pieces=3)
    builder = megatron.IndexedDatasetBuilder(
        str(tmp_path / "theirs.bin"), dtype=np.dtype(dtype).type
    )
    at = 0
    for length in lengths:
        builder.add_document(values[at : at + length], [length])
        at += length
    builder.finalize(str(tmp_path / "theirs.idx"))
    for kind in ("bin", "idx"):
        assert (tmp_path / f"ours.{kind}").read_bytes() == (
            tmp_path / f"theirs.{kind}"
        ).read_bytes()


def test_an_index_of_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [1 + n % 7 for n in range(100)]
    write(tmp_path / "whole", lengths, "<i4")
    monkeypatch.setattr(indexed, "_CHUNK", 9)
    values = write(tmp_path / "chunks", lengths, "<i4", pieces=10)
    assert (tmp_path / "whole.idx").read_bytes() == (tmp_path / "chunks.idx").read_bytes()
    assert (tmp_path / "whole.idx").stat().st_size == 42 + 20 * 100
    opened = indexed.read(tmp_path / "chunks")
    assert len(opened) == 100
    assert np.array_equal(opened.values, values)
    assert opened[3].tolist() == values[6:10].tolist()
    assert np.concatenate([*opened.chunks()]).tolist() == lengths
    edges = [0, *np.cumsum(lengths).tolist()]
    for first, last in ((0, 100), (0, 0), (3, 20), (98, 100), (100, 100)):
        assert opened.bounds(first, last).tolist() == edges[first : last + 1]
    with pytest.raises(IndexError, match="documents 99 to 101 of 100"):
        opened.bounds(99, 101)
    assert indexed.same_boundaries(opened, indexed.read(tmp_path / "whole"))
    write(tmp_path / "other", [*lengths[:-1], lengths[-1] + 1], "u1")
    write(tmp_path / "fewer", lengths[:-1], "u1")
    for name in ("other", "fewer"):
        assert not indexed.same_boundaries(opened, indexed.read(tmp_path / name))


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [
        (0, b"X", "version 1 index"),
        (9, b"\x02", "version 1 index"),
        (17, b"\x07", "dtype code 7"),
        (18, b"\x09", "document indices"),
        (34, b"\x09", "offsets do not fit"),
        (34 + 4 * 3 + 8, b"\x09", "offsets do not fit"),
        (34 + 12 * 3, b"\x09", "not 0, 1"),
        (34 + 12 * 3 + 8 * 3, b"\x09", "not 0, 1"),
        (34 + 4 * 3 + 8 * 2, b"\x09", "offsets do not fit"),
    ],
)
@pytest.mark.parametrize("chunk", [2, 1 << 16])
def test_a_damaged_index_is_refused(
    tmp_path: Path, place: int, value: bytes, rule: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed, "_CHUNK", chunk)
    write(tmp_path / "d", [2, 3, 4], "<i4")
    data = bytearray((tmp_path / "d.idx").read_bytes())
    data[place : place + 1] = value
    (tmp_path / "d.idx").write_bytes(data)
    with pytest.raises(BadInput, match=rule):
        indexed.read(tmp_path / "d")


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "d", [2, 3, 4], "<i4")
    with (tmp_path / "d.bin").open("r+b") as file:
        file.truncate(35)
    with pytest.raises(BadInput, match="35 bytes, its index says 36"):
        indexed.read(tmp_path / "d")
    with (tmp_path / "d.idx").open("r+b") as file:
        file.truncate(20)
    with pytest.raises(BadInput, match="20 bytes are no index"):
        indexed.read(tmp_path / "d")


_CHILD = """
import sys
from pathlib import Path
from gristmill.synth.format import aligned
from gristmill.synth.laws import shards
from gristmill.synth.show import preview

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

for root in map(Path, sys.argv[1:]):
    # A trace is all that these datasets lack.
    assert [v.law for v in shards.kd_laws(root, "00")] == ["trace"]
    aligned.digest(root / "train/shard_00_tokens")
    preview.document_lengths(root, "00")
    print(peak())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peak memory in /proc")
def test_memory_does_not_grow_with_the_documents(tmp_path: Path) -> None:
    """Two million of them: one int64 of each would be 16 MB."""
    document = np.array([200006, 200008, 200007, 199999], dtype="<i4")
    rows = 1 << 18
    values = {"tokens": np.tile(document, rows), "lossmask": np.zeros(4 * rows, dtype="u1")}
    values["span"] = values["lossmask"]
    for name, times in (("some", 1), ("many", 8)):
        for suffix, array in values.items():
            prefix = tmp_path / name / f"train/shard_00_{suffix}"
            with indexed.IndexedWriter(prefix, array.dtype) as writer:
                for _ in range(times):
                    writer.add(array, np.full(rows, 4, dtype=np.int32))
    # The first two, so that what the allocator keeps is there before it is measured.
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


def test_values_must_fit(tmp_path: Path) -> None:
    with indexed.IndexedWriter(tmp_path / "d", "u1") as writer:
        with pytest.raises(ValueError, match="does not fit"):
            writer.add(np.zeros(3, dtype=np.uint8), np.array([2], dtype=np.int32))
        with pytest.raises(ValueError, match="does not fit"):
            writer.add(np.zeros(2, dtype=np.int32), np.array([2], dtype=np.int32))
