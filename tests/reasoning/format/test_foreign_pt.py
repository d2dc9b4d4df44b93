"""`.pt` files of other versions of torch, laid out here by hand, and of the installed one."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Mapping

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import foreign_pt, id_files, pt_file
from tests.reasoning.shard_folders import PICKLE, foreign, pickle, tensor

SHAPES = [(1, 1), (1, 255), (255, 1), (3, 7), (17, 65_535), (65_536, 2), (104, 2048)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_file_of_an_older_torch_is_mapped_at_every_shape(tmp_path, shape):
    path, ids = tmp_path / "shard_00003.pt", tensor(shape)
    foreign(path, ids)
    assert foreign_pt.payload(path).shape == shape
    assert foreign_pt.payload(path).offset % 64 == 0
    assert (foreign_pt.mapped(path) == ids).all()
    octets = path.read_bytes()
    expected = hashlib.sha256(ids.tobytes()).hexdigest(), hashlib.sha256(octets).hexdigest()
    assert foreign_pt.hashes(path) == expected
    with pytest.raises(BadInput):
        pt_file.payload(path)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_file_of_the_installed_torch_is_mapped_at_every_shape(tmp_path, shape):
    torch = pytest.importorskip("torch")
    path, ids = tmp_path / "shard_00003.pt", tensor(shape)
    torch.save({"input_ids": torch.from_numpy(ids)}, str(path))
    assert foreign_pt.payload(path) == pt_file.payload(path)
    with path.open("rb", buffering=0) as file:
        assert foreign_pt._Zip(file).payload() == pt_file.payload(path)
    # torch takes the layout by hand for its own.
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
        assert foreign_pt.payload(path).offset % pad == 0
        assert (foreign_pt.mapped(path) == ids).all()


def test_a_zip_without_torch_s_padding_is_read(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((3, 5))
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("x/data.pkl", pickle((3, 5)))
        made.writestr("x/data/0", ids.tobytes())
    assert (foreign_pt.mapped(path) == ids).all()


def test_the_stride_of_one_sequence_does_not_matter(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((1, 5))
    foreign(path, ids, pickled=PICKLE % (b"K\5", b"K\1", b"K\5", b"K\1"))
    assert (foreign_pt.mapped(path) == ids).all()


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
    with pytest.raises(BadInput, match="nor as another version does: "):
        foreign_pt.payload(tmp_path / "x.pt")


def test_two_sequences_that_overlap_are_refused(tmp_path):
    pickled = PICKLE % (b"K\6", b"K\2", b"K\3", b"K\2")
    foreign(tmp_path / "x.pt", tensor((2, 3)), pickled=pickled)
    with pytest.raises(BadInput, match="begin 2 ids apart"):
        foreign_pt.payload(tmp_path / "x.pt")


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
        foreign_pt.payload(tmp_path / "x.pt")


@pytest.mark.parametrize("change", [-4, 4, -60])
def test_a_payload_of_another_size_is_refused(tmp_path, change):
    ids = tensor((3, 5)).tobytes()
    data = ids[:change] if change < 0 else ids + b"\0" * change
    foreign(tmp_path / "x.pt", np.frombuffer(data, "<i4"), pickled=pickle((3, 5)))
    with pytest.raises(BadInput, match="`data/0` has"):
        foreign_pt.payload(tmp_path / "x.pt")


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
            foreign_pt.payload(path)
    with zipfile.ZipFile(path, "w") as made:
        for name in named:
            made.writestr(name, named[name])
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("x/data/0", ids)
    with pytest.raises(BadInput, match="twice there"):
        foreign_pt.payload(path)


def test_a_changed_byte_never_leads_to_another_tensor(tmp_path):
    path, ids = tmp_path / "x.pt", tensor((2, 3))
    foreign(path, ids)
    octets, place = path.read_bytes(), foreign_pt.payload(path)
    refused = 0
    for at in [*range(place.offset), *range(place.offset + 24, len(octets))]:
        for bit in (1, 128):
            path.write_bytes(octets[:at] + bytes([octets[at] ^ bit]) + octets[at + 1 :])
            try:
                assert foreign_pt.payload(path) == place
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
        foreign_pt.payload(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "x.pt"
    foreign(path, tensor((2, 3)))
    octets = path.read_bytes()
    for size in range(len(octets)):
        path.write_bytes(octets[:size])
        with pytest.raises(BadInput):
            foreign_pt.payload(path)
    for more in (b"\0" + octets, octets + b"\0"):
        path.write_bytes(more)
        with pytest.raises(BadInput):
            foreign_pt.payload(path)


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
        with pytest.raises(BadInput, match="nor as another version does: "):
            foreign_pt.payload(tmp_path / f"{name}.pt")


def test_a_file_is_its_header_and_its_tensor(tmp_path):
    found = id_files.write(tmp_path / "x", (1, 2), [b"\1\0\0\0", b"\2\0\0\0"])
    text = b'{"input_ids":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]}}'
    text += b" " * (-len(text) % 8)
    octets = len(text).to_bytes(8, "little") + text + b"\1\0\0\0\2\0\0\0"
    assert (tmp_path / "x").read_bytes() == octets
    assert (found.sha256, found.bytes) == (hashlib.sha256(octets).hexdigest(), len(octets))


def test_rows_that_do_not_fill_the_shape_are_refused(tmp_path):
    with pytest.raises(ValueError, match="4 bytes of rows"):
        id_files.write(tmp_path / "x", (1, 2), [b"1234"])
