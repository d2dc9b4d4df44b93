"""The lines of an untrusted text, with a bound on the memory that one line takes.

Texts of old Macs and of some exports have lines that end in CR alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from gristmill.contract import BadInput
from gristmill.untrusted.limits import LIMITS, Limits

_READ_BYTES = 1 << 20
_SHORT = 64


def reads(file: BinaryIO) -> Iterator[bytes]:
    """The bytes of an open file, 1 MiB at a time."""
    while octets := file.read(_READ_BYTES):
        yield octets


def line_places(texts: Iterable[bytes], path: Path) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends in a text, in bytes, without its newline."""
    begin = 0
    for line in lines(texts, path):
        yield begin, begin + len(line.rstrip(b"\r\n"))
        begin += len(line)


def lines(texts: Iterable[bytes], path: Path, limits: Limits = LIMITS) -> Iterator[bytes]:
    """The lines of a text, each with its newline; the last one may have none.

    limits: `line_bytes`, `rows` and `blank_lines` count.

    Memory: one part, and one line twice. Raises BadInput for a line that is too long, and
    for too many lines, or blank ones.
    """
    held: list[bytes] = []
    length = count = blank = 0

    def checked(line: bytes) -> bytes:
        nonlocal blank, count
        count += 1
        # A longer one costs no more than other lines do.
        if len(line) <= _SHORT and line.isspace():
            blank += 1
            limits.check_blank(blank, count - blank, path)
        if len(line) > limits.line_bytes:
            raise BadInput(path, f"a line of more than {limits.line_bytes} bytes", count)
        if count > limits.rows:
            raise BadInput(path, f"more than {limits.rows} lines")
        return line

    for text in texts:
        begin = 0
        while end := text.find(b"\n", begin) + 1:
            line = text[begin:end]
            if held:
                line = b"".join([*held, line])
                held, length = [], 0
            yield checked(line)
            begin = end
        if begin < len(text):
            held.append(text[begin:])
            length += len(text) - begin
            if length > limits.line_bytes:
                raise BadInput(path, f"a line of more than {limits.line_bytes} bytes", count + 1)
            if len(held) > 1000:
                held = [b"".join(held)]
    if held:
        yield checked(b"".join(held))


_LOOKED: Final = 1 << 20
"""Bytes at the beginning of a text that decide, a part of it more or less."""
_BEGUN: Final = 2
"""Lines that must be whole. A single line needs no end."""


def with_line_feeds(texts: Iterator[bytes], is_line: Callable[[bytes], bool]) -> Iterator[bytes]:
    """A text with LF for CR, if its lines end in CR alone; else the text as it is.

    Every byte keeps its place. Lines end in CR alone where the first MiB has no LF, and the first
    two lines that are not blank pass `is_line`, since CR may also stand within a line.
    """
    seen: list[bytes] = []
    size = 0
    for part in texts:
        seen.append(part)
        size += len(part)
        if b"\n" in part or size >= _LOOKED:
            break
    head = b"".join(seen)
    whole = chain([head], texts)
    begun = [line for line in head.split(b"\r") if line.strip()][:_BEGUN]
    if b"\n" in head or len(begun) < _BEGUN or not all(map(is_line, begun)):
        return whole
    return (part.replace(b"\r", b"\n") for part in whole)
