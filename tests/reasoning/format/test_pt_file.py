"""`.pt` files against torch: the same bytes, and strict about any other."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import pt_file
from tests.reasoning.shard_folders import tensor

SHAPES = [
    (1, 1),
    (1, 255),
    (255, 1),
    (256, 256),
    (3, 7),
    (17, 65_535),
    (2, 65_536),
    (65_536, 2),
    (104, 2048),
]
STEMS = ["shard_00000", "shard_123456", "a", "x.y", "s" * 60, "ünï"]


def written(path: Path, ids: npt.NDArray[np.int32]) -> Path:
    pt_file.write(path, ids.shape, [ids.tobytes()])
    return path


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_file_has_torch_s_bytes_at_every_shape(tmp_path: Path, shape: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    ids = tensor(shape)
    expected, path = tmp_path / "torch" / "shard_00007.pt", tmp_path / "shard_00007.pt"
    expected.parent.mkdir()
    torch.save({"input_ids": torch.from_numpy(ids)}, str(expected))

    found = pt_file.write(path, shape, [ids.tobytes()])

    octets = expected.read_bytes()
    assert path.read_bytes() == octets
    assert found.bytes == len(octets)
    assert found.sha256 == hashlib.sha256(octets).hexdigest()
    assert found.tensor_sha256 == hashlib.sha256(ids.tobytes()).hexdigest()
    assert (pt_file.mapped(expected) == ids).all()


@pytest.mark.parametrize("stem", STEMS)
def test_a_file_has_torch_s_bytes_under_every_name(tmp_path: Path, stem: str) -> None:
    torch = pytest.importorskip("torch")
    ids = tensor((5, 9))
    expected = tmp_path / f"{stem}.pt"
    torch.save({"input_ids": torch.from_numpy(ids)}, str(expected))

    pt_file.write(tmp_path / "other", (5, 9), [ids.tobytes()], stem=stem)

    assert (tmp_path / "other").read_bytes() == expected.read_bytes()
    assert pt_file.payload(expected).offset % 64 == 0


@pytest.mark.parametrize("shape", [(1024, 2048), (5000, 2048)], ids=str)
def test_a_large_file_has_torch_s_bytes(tmp_path: Path, shape: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    ids = tensor(shape)
    expected = tmp_path / "shard_00000.pt"
    torch.save({"input_ids": torch.from_numpy(ids)}, str(expected))
    octets = expected.read_bytes()

    data = memoryview(ids).cast("B")
    cut = [data[at : at + 1_000_003] for at in range(0, len(data), 1_000_003)]
    found = pt_file.write(tmp_path / "ours.pt", shape, cut, stem="shard_00000")

    assert found.sha256 == hashlib.sha256(octets).hexdigest()
    assert pt_file.hashes(expected) == (found.tensor_sha256, found.sha256)


@pytest.mark.parametrize("mmap", [False, True])
def test_torch_loads_a_file_as_weights_alone(tmp_path: Path, mmap: bool) -> None:
    torch = pytest.importorskip("torch")
    ids = tensor((6, 11))

    loaded = torch.load(written(tmp_path / "shard_00000.pt", ids), weights_only=True, mmap=mmap)

    assert list(loaded) == ["input_ids"]
    assert loaded["input_ids"].dtype == torch.int32
    assert loaded["input_ids"].is_contiguous()
    assert (loaded["input_ids"].numpy() == ids).all()


def test_the_payload_of_a_shard_is_at_byte_704(tmp_path: Path) -> None:
    path = written(tmp_path / "shard_00000.pt", tensor((104, 2048)))
    assert pt_file.payload(path) == pt_file.Payload(704, (104, 2048))


def test_a_mapped_tensor_is_read_only(tmp_path: Path) -> None:
    ids = pt_file.mapped(written(tmp_path / "shard_00000.pt", tensor((3, 4))))
    assert ids.dtype == np.dtype("<i4")
    with pytest.raises(ValueError, match="read-only"):
        ids[0, 0] = 1


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (-1, -1), (1 << 15, (1 << 14) + 1)], ids=str)
def test_a_shape_without_a_file_is_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="sequences of"):
        pt_file.write(tmp_path / "x.pt", shape, [])


@pytest.mark.parametrize("rows", [[], [b"1234"], [b"12345678", b"9"]])
def test_rows_that_do_not_fill_the_shape_are_refused(tmp_path: Path, rows: list[bytes]) -> None:
    with pytest.raises(ValueError, match="for a tensor of 8 bytes"):
        pt_file.write(tmp_path / "x.pt", (1, 2), rows)


def test_every_changed_byte_around_the_tensor_is_refused(tmp_path: Path) -> None:
    octets = written(tmp_path / "shard_00000.pt", tensor((2, 3))).read_bytes()
    offset = pt_file.payload(tmp_path / "shard_00000.pt").offset
    path = tmp_path / "changed.pt"
    for at in [*range(offset), *range(offset + 24, len(octets))]:
        path.write_bytes(octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :])
        with pytest.raises(BadInput, match=r"torch 2\.13"):
            pt_file.payload(path)


@pytest.mark.parametrize("size", [0, 1, 29, 64, 300, 704, 720, 728, 740, -1])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    path = written(tmp_path / "shard_00000.pt", tensor((2, 3)))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(BadInput, match=r"torch 2\.13"):
        pt_file.mapped(path)


def test_bytes_after_the_end_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "shard_00000.pt", tensor((2, 3)))
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(BadInput, match="cut off or damaged"):
        pt_file.payload(path)


def test_a_zip_that_only_looks_like_a_tensor_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "shard_00000.pt", tensor((2, 3)))
    # A pickle that names a storage of 2**31 - 1 tokens, which the file does not have.
    path.write_bytes(path.read_bytes().replace(b"cpuq\x06K\x06", b"cpuq\x06K\x07", 1))
    with pytest.raises(BadInput):
        pt_file.payload(path)
