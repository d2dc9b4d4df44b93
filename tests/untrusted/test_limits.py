from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.limits import Limits, bounded

FILE = Path("drop/a.gz")


def test_a_small_text_may_have_any_ratio_and_a_large_one_the_stated() -> None:
    limits = Limits(text_bytes=5000, ratio=10, any_ratio_bytes=100)
    assert limits.unpacked(1) == 100
    assert limits.unpacked(10) == 100
    assert limits.unpacked(11) == 110
    assert limits.unpacked(1000) == 5000


def test_a_text_is_cut_off_at_the_first_byte_more() -> None:
    assert list(bounded([b"abc", b"", b"de"], FILE, 5)) == [b"abc", b"", b"de"]
    texts = bounded([b"abc", b"def", b"never"], FILE, 5)
    assert next(texts) == b"abc"
    with pytest.raises(BadInput, match=r"a.gz: unpacks to more than 5 bytes"):
        next(texts)


def test_the_defaults_hold_every_public_file() -> None:
    limits = Limits()
    assert limits.bytes >= 64 << 30  # a month of chess
    assert limits.line_bytes >= 1 << 24  # a line of 2048, docs/formats/macroxue.md#gzip
    assert limits.rows >= 1_837_928  # CoT-Collection, one JSON file of 2.36 GB
