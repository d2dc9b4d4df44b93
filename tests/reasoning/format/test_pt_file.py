"""`.pt` files against torch: the same bytes; and those of other versions, laid out by hand."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import id_files, pt_file
from tests.reasoning.shard_folders import PICKLE, foreign, pickle, tensor

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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_file_of_an_older_torch_is_mapped_at_every_shape(tmp_path, shape):
    path, ids = tmp_path / "shard_00003.pt", tensor(shape)
    foreign(path, ids)
    assert pt_file.payload(path).shape == shape
    assert pt_file.payload(path).offset % 64 == 0
    assert (pt_file.mapped(path) == ids).all()
    octets = path.read_bytes()
    expected = hashlib.sha256(ids.tobytes()).hexdigest(), hashlib.sha256(octets).hexdigest()
    assert pt_file.hashes(path) == expected


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_torch_takes_the_layout_by_hand_for_its_own(tmp_path, shape):
    torch = pytest.importorskip("torch")
    path, ids = tmp_path / "shard_00003.pt", tensor(shape)
    torch.save({"input_ids": torch.from_numpy(ids)}, str(path))
    assert zipfile.ZipFile(path).read("shard_00003/data.pkl") == pickle(shape)
    foreign(tmp_path / "older.pt", ids, stem="older")
    loaded = torch.load(tmp_path / "older.pt", weights_only=True)["input_ids"]
    assert (loaded.numpy() == ids).all()


@pytest.mark.parametrize("pad", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("stem", ["archive", "a", "s" * 60])
def test_padding_stem_and_entries_may_be_others(tmp_path, pad, stem):
    path, ids = tmp_path / "x.pt", tensor((3, 5))
    for entries in ({}, {"byteorder": b"little"}, {"byteorder": b"little", "more": b"x" * 99}):
        foreign(path, ids, stem=stem, pad=pad, entries=entries)
        assert pt_file.payload(path).offset % pad == 0
        assert (pt_file.mapped(path) == ids).all()


def test_a_zip_without_torch_s_padding_is_read(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((3, 5))
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("x/data.pkl", pickle((3, 5)))
        made.writestr("x/data/0", ids.tobytes())
    assert (pt_file.mapped(path) == ids).all()


def test_the_stride_of_one_sequence_does_not_matter(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((1, 5))
    foreign(path, ids, pickled=PICKLE % (b"K\5", b"K\1", b"K\5", b"K\1"))
    assert (pt_file.mapped(path) == ids).all()


PICKLES = {
    "more ids than the matrix": PICKLE % (b"K\x10", b"K\3", b"K\5", b"K\5"),
    "rows that overlap": PICKLE % (b"K\x0f", b"K\3", b"K\5", b"K\4"),
    "another offset": (PICKLE % (b"K\x0f", b"K\3", b"K\5", b"K\5")).replace(b"QK\0", b"QK\1"),
    "no ids": PICKLE % (b"K\0", b"K\0", b"K\5", b"K\5"),
    "a negative shape": PICKLE % (b"K\x0f", struct.pack("<ci", b"J", -3), b"K\5", b"K\5"),
    "more ids than a shard has": PICKLE
    % tuple(struct.pack("<ci", b"J", n) for n in (1 << 30, 1 << 15, 1 << 15, 1 << 15)),
    "another dtype": pickle((3, 5)).replace(b"IntStorage", b"LongStorage"),
    "another name": pickle((3, 5)).replace(b"input_ids", b"input_idz"),
    "another device": pickle((3, 5)).replace(b"\3\0\0\0cpu", b"\6\0\0\0cuda:0"),
    "another function": pickle((3, 5)).replace(b"ctorch._utils\n_rebuild_tensor_v2", b"cos\nabort"),
    "something after it": pickle((3, 5)) + b".",
    "something before it": b"\x80\2" + pickle((3, 5)),
    "nothing": b"",
    "too much": pickle((3, 5)) * 9,
}


@pytest.mark.parametrize("name", PICKLES)
def test_any_other_pickle_is_refused(tmp_path, name):
    foreign(tmp_path / "x.pt", tensor((3, 5)), pickled=PICKLES[name])
    with pytest.raises(BadInput, match="as torch saves it: "):
        pt_file.payload(tmp_path / "x.pt")


def test_two_sequences_that_overlap_are_refused(tmp_path):
    pickled = PICKLE % (b"K\6", b"K\2", b"K\3", b"K\2")
    foreign(tmp_path / "x.pt", tensor((2, 3)), pickled=pickled)
    with pytest.raises(BadInput, match="begin 2 ids apart"):
        pt_file.payload(tmp_path / "x.pt")


ENTRIES: dict[str, tuple[Mapping[str, bytes], str]] = {
    "big endian": ({"byteorder": b"big"}, "not little endian"),
    "byte order that is long": ({"byteorder": b"little" * 999}, "too long"),
    "two pickles": ({"y/data.pkl": b""}, "2 entries `data.pkl`"),
    "too many": ({f"{n:0>250}": b"" for n in range(60)}, "directory is too long"),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_that_contradict_are_refused(tmp_path, name):
    entries, rule = ENTRIES[name]
    foreign(tmp_path / "x.pt", tensor((3, 5)), entries=entries)
    with pytest.raises(BadInput, match=rule):
        pt_file.payload(tmp_path / "x.pt")


@pytest.mark.parametrize("change", [-4, 4, -60])
def test_a_payload_of_another_size_is_refused(tmp_path, change):
    ids = tensor((3, 5)).tobytes()
    data = ids[:change] if change < 0 else ids + b"\0" * change
    foreign(tmp_path / "x.pt", np.frombuffer(data, "<i4"), pickled=pickle((3, 5)))
    with pytest.raises(BadInput, match="`data/0` has"):
        pt_file.payload(tmp_path / "x.pt")


def test_other_zips_are_refused(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((3, 5)).tobytes()
    named = {"x/data.pkl": pickle((3, 5)), "x/data/0": ids}
    for method, names, comment, rule in (
        (zipfile.ZIP_DEFLATED, list(named), b"", "compressed"),
        (zipfile.ZIP_STORED, ["x/data/0"], b"", "0 entries `data.pkl`"),
        (zipfile.ZIP_STORED, ["x/data.pkl"], b"", "no entry b'x/data/0'"),
        (zipfile.ZIP_STORED, list(named), b"a comment", "does not end as"),
    ):
        with zipfile.ZipFile(path, "w", method) as made:
            for name in names:
                made.writestr(name, named[name])
            made.comment = comment
        with pytest.raises(BadInput, match=rule):
            pt_file.payload(path)
    with zipfile.ZipFile(path, "w") as made:
        for name in named:
            made.writestr(name, named[name])
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("x/data/0", ids)
    with pytest.raises(BadInput, match="twice there"):
        pt_file.payload(path)


def test_a_changed_byte_never_leads_to_another_tensor(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((2, 3))
    foreign(path, ids)
    octets, place = path.read_bytes(), pt_file.payload(path)
    refused = 0
    for at in [*range(place.offset), *range(place.offset + 24, len(octets))]:
        for bit in (1, 128):
            path.write_bytes(octets[:at] + bytes([octets[at] ^ bit]) + octets[at + 1 :])
            try:
                assert pt_file.payload(path) == place
            except BadInput:
                refused += 1
    assert refused > 500


EDITS: dict[str, tuple[bytes, bytes, str]] = {
    "shape and stride": (b"K\2K\3\x86q\x08K\3", b"K\3K\2\x86q\x08K\2", "or damaged"),
    "size before compression": (
        b"\x18\0\0\0\x18\0\0\0\x08\0",
        b"\x18\0\0\0\x17\0\0\0\x08\0",
        "damaged",
    ),
    "encrypted": (b"PK\1\2\0\0\0\0\x08", b"PK\1\2\0\0\0\0\x09", "encrypted"),
    "name at the tensor": (b"x/data/0FB", b"y/data/0FB", "not where its directory says"),
    "length of the comment": (b"\0\0", b"\1\0", "does not end as a zip"),
    "number of entries": (b"\4\0\4\0", b"\3\0\3\0", "bytes that are no entry"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file_is_refused(tmp_path, name):
    path = tmp_path / "x.pt"
    foreign(path, tensor((2, 3)))
    before, after, rule = EDITS[name]
    begin, found, end = path.read_bytes().rpartition(before)
    assert found
    path.write_bytes(begin + after + end)
    with pytest.raises(BadInput, match=rule):
        pt_file.payload(path)


def test_a_file_that_is_cut_off_or_longer_is_refused(tmp_path):
    path = tmp_path / "x.pt"
    foreign(path, tensor((2, 3)))
    octets = path.read_bytes()
    for size in range(len(octets)):
        path.write_bytes(octets[:size])
        with pytest.raises(BadInput):
            pt_file.payload(path)
    for more in (b"\0" + octets, octets + b"\0"):
        path.write_bytes(more)
        with pytest.raises(BadInput):
            pt_file.payload(path)


def test_another_tensor_of_torch_is_refused(tmp_path):
    torch = pytest.importorskip("torch")
    zeros = torch.zeros((2, 3), dtype=torch.int32)
    others = {
        "dtype": {"input_ids": zeros.long()},
        "rank": {"input_ids": zeros.reshape(6)},
        "strides": {"input_ids": torch.zeros((3, 2), dtype=torch.int32).T},
        "view": {"input_ids": torch.zeros((4, 3), dtype=torch.int32)[:2]},
        "two": {"input_ids": zeros, "b": zeros},
        "gradient": {"input_ids": torch.zeros((2, 3), requires_grad=True)},
        "no dict": zeros,
    }
    for name, saved in others.items():
        torch.save(saved, str(tmp_path / f"{name}.pt"))
        with pytest.raises(BadInput, match="as torch saves it: "):
            pt_file.payload(tmp_path / f"{name}.pt")


def test_a_file_is_its_header_and_its_tensor(tmp_path):
    found = id_files.write(tmp_path / "x", (1, 2), [b"\1\0\0\0", b"\2\0\0\0"])
    text = b'{"input_ids":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]}}'
    text += b" " * (-len(text) % 8)
    octets = len(text).to_bytes(8, "little") + text + b"\1\0\0\0\2\0\0\0"
    assert (tmp_path / "x").read_bytes() == octets
    assert (found.sha256, found.bytes) == (hashlib.sha256(octets).hexdigest(), len(octets))


def test_rows_that_do_not_fill_a_header_are_refused(tmp_path):
    with pytest.raises(ValueError, match="4 bytes of rows"):
        id_files.write(tmp_path / "x", (1, 2), [b"1234"])
