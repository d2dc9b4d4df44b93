"""Lines that end in CR alone, and CR that ends no line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gristmill.untrusted.line_ends import with_line_feeds

BIG = b"x" * (1 << 20)


def _read(*parts: bytes, is_line: Callable[[bytes], bool] = lambda _: True) -> bytes:
    return b"".join(with_line_feeds(iter(parts), is_line))


@pytest.mark.parametrize(
    "parts", [(b"a\rb\r",), (b"\r\ra\r", b"b"), (b"a", b"\rb\r"), (b"a\rb\r" + BIG, b"\r", b"\rc")]
)
def test_every_byte_keeps_its_place(parts: tuple[bytes, ...]) -> None:
    assert _read(*parts) == b"".join(parts).replace(b"\r", b"\n")


@pytest.mark.parametrize(
    "text", [b"", b"a", b"a\r", b"\ra", b"a\r\nb\r\n", b"a\r\r\nb", b"a\rb\n", b"a\nb\rc"]
)
def test_other_texts_stay(text: bytes) -> None:
    assert _read(text) == text


def test_a_line_feed_behind_the_first_mebibyte_is_kept() -> None:
    text = b"a\rb\r" + BIG + b"c\nd\r"
    assert _read(text[:-4], text[-4:]) == text.replace(b"\r", b"\n")


def test_cr_within_a_line_stays() -> None:
    asked: list[bytes] = []

    def is_line(line: bytes) -> bool:
        asked.append(line)
        return line != b"c"

    assert _read(b"a\rb\rc\r", is_line=is_line) == b"a\nb\nc\n"
    assert asked == [b"a", b"b"]
    assert _read(b"c\ra\r", is_line=is_line) == b"c\ra\r"
    assert _read(b"a\rc\r", is_line=is_line) == b"a\rc\r"
