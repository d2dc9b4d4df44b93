"""IndexedDataset files against the table of spec synth_kd, section 8, and Megatron's builder."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.synth import indexed


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
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, place: int, value: bytes, rule: str) -> None:
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


def test_values_must_fit(tmp_path: Path) -> None:
    with indexed.IndexedWriter(tmp_path / "d", "u1") as writer:
        with pytest.raises(ValueError, match="does not fit"):
            writer.add(np.zeros(3, dtype=np.uint8), np.array([2], dtype=np.int32))
        with pytest.raises(ValueError, match="does not fit"):
            writer.add(np.zeros(2, dtype=np.int32), np.array([2], dtype=np.int32))
