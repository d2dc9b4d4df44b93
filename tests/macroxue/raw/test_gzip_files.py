"""The texts of raw files: every member, nothing damaged, and no bombs."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.raw import drops, gzip_files
from gristmill.macroxue.raw.run_facts import RawDigest
from tests.macroxue.lines import step, write_run


def test_a_file_that_becomes_a_link_after_the_listing_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "drop", "g", [step()])
    (run,) = drops.find_runs(tmp_path / "drop").runs
    run.steps.rename(tmp_path / "away.gz")
    run.steps.symlink_to(tmp_path / "away.gz")
    with pytest.raises(BadInput, match="is a link"):
        list(gzip_files.gunzip(run.steps, RawDigest(), 100, run.folder, run.links))
    run.meta.unlink()
    run.meta.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="is a link"):
        gzip_files.read_meta(run.meta, RawDigest(), run.folder, run.links)


def test_much_more_text_than_the_size_explains_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    size = 0
    with pytest.raises(BadInput, match=r"unpacks to more than 200 times its size"):
        for text in gzip_files.gunzip(path, RawDigest(), 1 << 19):
            size += len(text)
    assert size == 16 << 20
    path.write_bytes(gzip.compress(bytes(16 << 20)))
    assert len(unzipped(path)[0]) == 16 << 20


def unzipped(path: Path, most: int = 1 << 18) -> tuple[bytes, RawDigest]:
    digest = RawDigest()
    pieces = list(gzip_files.gunzip(path, digest, most))
    assert all(0 < len(piece) <= most for piece in pieces)
    return b"".join(pieces), digest


@pytest.mark.parametrize("read_bytes", [1, 7, 1 << 18])
def test_every_member_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(gzip_files, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(gzip_files, "_HEADER_BYTES", 1)
    path = tmp_path / "x.jsonl.gz"
    text = [os.urandom(100), b"", b"\n" * 5000]
    path.write_bytes(b"".join(map(gzip.compress, text)))
    whole, digest = unzipped(path, 700)
    assert whole == b"".join(text)
    assert digest.size == path.stat().st_size


def member(text: bytes, fields: bool) -> bytes:
    """A gzip member; with `fields` its header has all that RFC 1952 allows."""
    head = b"\x1f\x8b\x08" + bytes([0b11110 if fields else 0]) + bytes(5) + b"\xff"
    if fields:
        head += (6).to_bytes(2, "little") + b"BC\x02\x00ab" + b"name\0" + b"comment\0"
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
    tail = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return head + squeeze.compress(text) + squeeze.flush() + tail


@pytest.mark.parametrize("before", range(1, 34, 4))
def test_a_header_may_come_in_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    first, second = member(b"one\n" * 9, False), member(b"two\n" * 9, True)
    monkeypatch.setattr(gzip_files, "_READ_BYTES", len(first) + before)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(first + second)
    assert gzip.decompress(path.read_bytes()) == b"one\n" * 9 + b"two\n" * 9
    assert unzipped(path)[0] == b"one\n" * 9 + b"two\n" * 9


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda data: b"", "0 bytes"),
        (lambda data: data[:-1], "cut short"),
        (lambda data: data[:-8], "cut short"),
        (lambda data: data[:5], "cut short"),
        (lambda data: data + data[:12], "cut short"),
        (lambda data: data[:-8] + b"\0" * 4 + data[-4:], "checksum"),
        (lambda data: data[:-4] + b"\0" * 4, "checksum"),
        (lambda data: data + b"garbage", "behind gzip member 1"),
        (lambda data: data + b"\0" * 64, "behind gzip member 1"),
        (lambda data: b'{"seed":1}', "gzip"),
    ],
)
def test_broken_gzip_is_named(tmp_path: Path, change, rule: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(change(gzip.compress(b"line\n" * 1000)))
    with pytest.raises(BadInput, match=rule) as caught:
        unzipped(path)
    assert caught.value.file == str(path)


def test_meta_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.meta.json.gz"
    path.write_bytes(gzip.compress(b" " * (2 << 20)))
    with pytest.raises(BadInput, match="more than 1048576 bytes"):
        gzip_files.read_meta(path, RawDigest())


def test_a_meta_object_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.meta.json"
    path.write_bytes(b" " * (1 << 20))
    assert len(gzip_files.read_meta(path, RawDigest())) == 1 << 20
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(BadInput, match="more than 1048576 bytes"):
        gzip_files.read_meta(path, RawDigest())
