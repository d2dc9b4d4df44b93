from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.limits import Limits, bounded, explained, unreadable

FILE = Path("drop/a.gz")


def test_defaults_hold_public_files_and_large_texts_end_at_their_ratio():
    limits = Limits()
    assert limits.bytes >= 64 << 30  # a month of chess
    assert limits.line_bytes >= 1 << 24  # a line of 2048, docs/formats/macroxue.md#gzip
    assert limits.rows >= 1_837_928  # CoT-Collection, one JSON file of 2.36 GB
    limits = Limits(text_bytes=5000, ratio=10, any_ratio_bytes=100)
    assert limits.unpacked(1) == 100
    assert limits.unpacked(10) == 100
    assert limits.unpacked(11) == 110
    assert limits.unpacked(1000) == 5000
    assert list(bounded([b"abc", b"", b"de"], FILE, 5)) == [b"abc", b"", b"de"]
    texts = bounded([b"abc", b"def", b"never"], FILE, 5)
    assert next(texts) == b"abc"
    with pytest.raises(BadInput, match=r"a.gz: unpacks to more than 5 bytes"):
        next(texts)


def test_errors_with_a_text_for_the_user_have_no_traceback_and_others_a_short_one():
    assert explained(BadInput("a.toml", "not TOML", 3)) == ("a.toml:3: not TOML", "")
    error = PermissionError(13, "Permission denied", "drops/x")
    assert explained(error) == ("drops/x: cannot be read: Permission denied", "")
    assert unreadable(error) == "drops/x: cannot be read: Permission denied"
    disk = OSError(5, "Input/output error", "drops/x")
    said = "drops/x: cannot be read: Input/output error: the disk or the network failed (see "
    assert unreadable(disk).startswith(said) and explained(disk) == (unreadable(disk), "")

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        raise RecursionError("x" * 10_000)

    try:
        deep(100)
    except RecursionError as error:
        reason, trace = explained(error)
    assert reason == "cannot be read: RecursionError: " + "x" * 500
    assert trace.count("in deep") <= 20
    assert "in deep" in trace
    assert explained(OSError("no name")) == (
        "cannot be read: OSError: no name",
        "OSError: no name\n",
    )
