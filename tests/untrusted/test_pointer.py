"""Pointers of Git LFS are refused, and data are not."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from gristmill.contract import BadInput
from gristmill.untrusted.pointer import HEAD_BYTES, refuse_packed, refuse_pointer

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"


def test_a_pointer_is_refused_with_the_cure() -> None:
    with pytest.raises(BadInput) as error:
        refuse_pointer(POINTER[:HEAD_BYTES], Path("drop/train.jsonl"))
    assert str(error.value) == (
        "drop/train.jsonl: is a Git LFS pointer and not the data: run `git lfs pull` where it was "
        "cloned, and copy the file from there"
    )


@pytest.mark.parametrize("head", [b"", b"version https://example.org/spec/v1", b" " + POINTER])
def test_other_files_are_not(head: bytes) -> None:
    refuse_pointer(head, Path("x"))


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (gzip.compress(b"{}", mtime=0), r"is gzip, and its name does not end in \.gz: rename it"),
        (zstandard.compress(b"{}"), "is zstd"),
        (lzma.compress(b"{}"), "is xz"),
        (b"PK\x03\x04", "is a ZIP archive: unpack it"),
        (b"PAR1", r"is Parquet, and its name does not end in \.parquet"),
    ],
)
def test_a_packed_file_without_its_ending_is_named(data: bytes, rule: str) -> None:
    with pytest.raises(BadInput, match=rule):
        refuse_packed(data[:HEAD_BYTES], Path("train.jsonl"))
    refuse_packed(b'{"a": 1}', Path("train.jsonl"))
