"""Packed files: all members, all damage."""

from __future__ import annotations

import errno
import lzma
import random
from pathlib import Path

import pytest
import zstandard

from gristmill.contract import BadInput
from gristmill.hashing import NamedFile
from gristmill.reasoning.raw.unpacked import unpacked
from gristmill.untrusted import unpack
from gristmill.untrusted.limits import LIMITS, Limits
from gristmill.untrusted.pointer import HEAD_BYTES
from tests.reasoning.drops import packed

PACKINGS = ("gz", "bz2", "xz", "zst")


def _text(path: Path, octets: bytes, limits: Limits = LIMITS) -> bytes:
    path.write_bytes(octets)
    with unpacked(path, limits=limits) as texts:
        return b"".join(texts)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 2_100_000])
def test_a_text_comes_back_whole(tmp_path: Path, packing: str, size: int) -> None:
    text = random.Random(1).randbytes(size // 20) + bytes(size - size // 20)
    path = tmp_path / f"x.jsonl.{packing}"
    assert _text(path, packed(text, packing)) == text
    assert _text(path, packed(text[:9], packing) + packed(text, packing)) == text[:9] + text


def test_a_plain_file_is_read_as_it_is(tmp_path: Path) -> None:
    assert _text(tmp_path / "x.jsonl", b"\x1f\x8b") == b"\x1f\x8b"


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_cut_and_every_empty_file_is_refused(tmp_path: Path, packing: str) -> None:
    whole = packed(b"some text " * 20, packing)
    for length in range(len(whole)):
        with pytest.raises(BadInput, match="get it again"):
            _text(tmp_path / f"x.jsonl.{packing}", whole[:length])


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_changed_bytes_are_found(tmp_path: Path, packing: str) -> None:
    whole = bytearray(packed(random.Random(2).randbytes(500), packing))
    whole[len(whole) // 2] ^= 1
    with pytest.raises(BadInput, match="broken"):
        _text(tmp_path / f"x.jsonl.{packing}", bytes(whole))


@pytest.mark.parametrize("packing", PACKINGS)
def test_limits_hold(tmp_path: Path, packing: str) -> None:
    octets = packed(bytes(100_000), packing)
    path = tmp_path / f"x.jsonl.{packing}"
    assert len(_text(path, octets)) == 100_000
    with pytest.raises(BadInput, match="decompression bomb"):
        _text(path, octets, Limits(any_ratio_bytes=1000, ratio=2))
    with pytest.raises(BadInput, match="has more than 5 bytes"):
        _text(path, octets, Limits(bytes=5))


@pytest.mark.parametrize("log", [28, 31])
def test_a_long_window_of_zstd_is_read(tmp_path: Path, log: int) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=log, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    octets = packer.compress(b"some text " * 999) + packer.flush()
    assert zstandard.get_frame_parameters(octets).window_size == 1 << log
    assert _text(tmp_path / "x.jsonl.zst", octets) == b"some text " * 999


def test_a_packed_file_that_needs_too_much_memory_says_how_to_pack_it(tmp_path: Path) -> None:
    # A frame that begins with a window of 4 GiB.
    with pytest.raises(BadInput, match=r"too much memory to unpack .*`zstd -d --long=31 \| zstd`"):
        _text(tmp_path / "x.jsonl.zst", b"\x28\xb5\x2f\xfd\x00\xb0" + bytes(20))
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    with pytest.raises(BadInput, match=r"too much memory to unpack .*`xz -d \| xz -6`"):
        _text(tmp_path / "x.jsonl.xz", lzma.compress(b"a", filters=filters))


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_not_packed_as_its_name_says_is_refused(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"x.jsonl.{packing}"
    with pytest.raises(BadInput, match=r"or none: give it the ending of what it is, or pack it"):
        _text(path, b'{"question": 1}')
    with pytest.raises(BadInput, match=r"has bytes behind its \w+ data that are none: pack it"):
        _text(path, packed(b"a", packing) + b"garbage")
    with pytest.raises(BadInput, match="is a Git LFS pointer"):
        _text(path, b"version https://git-lfs.github.com/spec/v1\n")


def test_frames_of_zstd_that_are_skipped_are_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    octets = skipped + packed(b"a", "zst") + skipped + packed(b"b", "zst")
    assert _text(tmp_path / "x.jsonl.zst", octets) == b"ab"


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "_MEMBERS", 3)
    for packing in PACKINGS:
        path = tmp_path / f"x.jsonl.{packing}"
        assert _text(path, packed(b"a", packing) * 3) == b"aaa"
        with pytest.raises(BadInput, match="more than 3"):
            _text(path, packed(b"a", packing) * 4)


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_parts_are_short_and_padding_behind_members_is_no_text(
    tmp_path: Path, packing: str
) -> None:
    path = tmp_path / f"x.jsonl.{packing}"
    path.write_bytes(packed(bytes(3 << 20), packing) + bytes(512) + packed(b"a", packing) + b"\0")
    with unpacked(path) as texts:
        sizes = [len(text) for text in texts]
    assert max(sizes) == 1 << 20
    assert sum(sizes) == (3 << 20) + 1


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="is a link"), unpacked(tmp_path / "x.jsonl"):
        pass


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
def test_an_error_of_the_disk_is_no_damage(
    tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a.jsonl.{packing}"
    path.write_bytes(packed(b"x" * 100, packing))

    read = NamedFile.read

    def failing(file: NamedFile, size: int) -> bytes:
        if size != HEAD_BYTES:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read(file, size)

    monkeypatch.setattr(NamedFile, "read", failing)
    with pytest.raises(OSError, match=r"Input/output error: .*a\.jsonl"):
        _text(path, path.read_bytes())
