"""Text that a terminal only prints."""

import os
from pathlib import Path

import pytest

from gristmill.printable import breakable, command, cut, is_utf8, plain, printable, unbroken


def test_commands_and_paths_are_printable_and_long_texts_cut_with_a_count() -> None:
    assert command("retire", "d6_v1") == "gristmill retire d6_v1"
    assert command("retire", "-x") == "gristmill retire -- -x"
    assert command("ls") == "gristmill ls"
    assert command("show --rows 3", "a/b", "-c d") == "gristmill show --rows 3 -- a/b '-c d'"
    assert is_utf8(Path("drops/\u00fc/\ud7ff\ue000"))
    for byte in (b"\x80", b"\xff"):
        assert not is_utf8(Path(os.fsdecode(b"drops/a" + byte)))
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "abc… and 1 more character"
    assert cut("x" * 5000, 3) == "xxx… and 4,997 more characters"
    assert plain("a\r\nb\nc\x1b[2J\u202e\udc80\t") == "a\nb\nc\ufffd[2J\ufffd\ufffd\ufffd"
    assert plain("x" * 2001) == "x" * 2000 + "… and 1 more character"
    assert plain("abc", most=1) == "a… and 2 more characters"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ü ♔", "plain ü ♔"),
        ("\x1b[31mred", "\N{REPLACEMENT CHARACTER}[31mred"),
        ("a\nb\tc", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"),
        ("\u202eabc", "\N{REPLACEMENT CHARACTER}abc"),
        ("", ""),
    ],
)
def test_each_character_that_is_not_printable_is_replaced(text: str, expected: str) -> None:
    assert printable(text) == expected


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short words stay", ["short words stay"]),
        ("x" * 24, ["x" * 24]),
        ("x" * 25, ["x" * 24, "x"]),
        (
            "drops/macroxue/broken/depth06_worker00",
            ["drops/macroxue/broken/", "depth06_", "worker00"],
        ),
        ("a" * 20 + "\\_" * 4, ["a" * 20 + "\\_" * 4]),
        ("a" * 23 + "&lt;bbbb", ["a" * 23 + "&lt;", "bbbb"]),
        ("\\" * 4000, ["\\" * 48] * 83 + ["\\" * 16]),  # as of a file of zeros
    ],
)
def test_long_words_can_be_broken_after_a_part_of_a_name(text: str, lines: list[str]) -> None:
    broken = breakable(text)
    assert broken.split("\N{ZERO WIDTH SPACE}") == lines
    assert unbroken(broken) == text
