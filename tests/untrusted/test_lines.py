import io
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.limits import LIMITS
from gristmill.untrusted.lines import lines, reads, with_line_feeds

FILE = Path("drop/games.jsonl")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("text", [b"", b"\n", b"a\n\nbc\n", b"a\nbc", b"abcdefghij\nk\n\n"])
def test_lines_are_those_of_the_whole_text(text, size):
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(lines(parts, FILE)) == text.splitlines(keepends=True)
    assert b"".join(reads(io.BytesIO(text))) == text


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_long_line_names_its_number_before_it_is_whole(size):
    limits = replace(LIMITS, line_bytes=5)
    text = b"1234\n12345"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(lines(parts, FILE, limits)) == [b"1234\n", b"12345"]
    with pytest.raises(BadInput, match="a line of more than 5 bytes") as raised:
        list(lines([*parts, b"6", b"\n"], FILE, limits))
    assert raised.value.row == 2


def test_lines_are_bounded_and_a_cr_within_one_stays():
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 16)

    tracemalloc.start()
    with pytest.raises(BadInput, match="a line of more than"):
        list(lines(endless(), FILE, replace(LIMITS, line_bytes=1 << 22)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 22
    limits = replace(LIMITS, rows=2)
    assert len(list(lines([b"a\nb\n"], FILE, limits))) == 2
    with pytest.raises(BadInput, match="more than 2 lines"):
        list(lines([b"a\nb\nc"], FILE, limits))
    asked: list[bytes] = []

    def is_line(line: bytes) -> bool:
        asked.append(line)
        return line != b"c"

    assert _read(b"a\rb\rc\r", is_line=is_line) == b"a\nb\nc\n"
    assert asked == [b"a", b"b"]
    assert _read(b"c\ra\r", is_line=is_line) == b"c\ra\r"
    assert _read(b"a\rc\r", is_line=is_line) == b"a\rc\r"
    text = b"a\rb\r" + BIG + b"c\nd\r"
    assert _read(text[:-4], text[-4:]) == text.replace(b"\r", b"\n")


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\x0b\n"])
def test_blank_lines_have_a_bound(blank):
    limits = replace(LIMITS, blank_lines=3)
    text = b"a\n" + blank * 7
    assert len(list(lines([text], FILE, limits))) == 8
    says = (
        r"games\.jsonl: has 8 blank lines and 1 others: a text may have 3 blank lines, and 4 more "
    )
    with pytest.raises(BadInput, match=says):
        list(lines([text + blank], FILE, limits))
    # Each other line allows four more.
    assert len(list(lines([b"a\n" + blank * 7 + b"b\n" + blank * 4], FILE, limits))) == 13
    # A long one costs no more than its bytes.
    assert len(list(lines([b" " * 64 + b"\n"] * 9, FILE, limits))) == 9


BIG = b"x" * (1 << 20)


def _read(*parts: bytes, is_line: Callable[[bytes], bool] = lambda _: True) -> bytes:
    return b"".join(with_line_feeds(iter(parts), is_line))


@pytest.mark.parametrize(
    "parts", [(b"a\rb\r",), (b"\r\ra\r", b"b"), (b"a", b"\rb\r"), (b"a\rb\r" + BIG, b"\r", b"\rc")]
)
def test_every_byte_keeps_its_place(parts):
    assert _read(*parts) == b"".join(parts).replace(b"\r", b"\n")


@pytest.mark.parametrize(
    "text", [b"", b"a", b"a\r", b"\ra", b"a\r\nb\r\n", b"a\r\r\nb", b"a\rb\n", b"a\nb\rc"]
)
def test_other_texts_stay(text):
    assert _read(text) == text
