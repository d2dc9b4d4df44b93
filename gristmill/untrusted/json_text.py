"""Untrusted JSON: one value within limits, and the members of a large file one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.untrusted.limits import LIMITS, Limits

Made = Callable[[Sequence[tuple[str, Any]]], dict[str, Any]]
"""Takes the keys and values of an object in order, gives the object."""

_BLANK: Final = b" \t\r\n"
# A string, or a mark of the structure. A string that does not end matches as one quote.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},:]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"', re.DOTALL)
_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{}]', re.DOTALL)
# As much as has no bracket outside of strings, and the bracket behind it.
_NESTED = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([\[\]{}])', re.DOTALL)
_MARK = re.compile(rb"[^ \t\r\n]")


def check_nesting(
    octets: bytes, path: Path, limits: Limits = LIMITS, row: int | None = None
) -> None:
    """Raise BadInput if a JSON text has more values, levels or digits of a number than allowed."""
    if has_more_values(octets, limits.values):
        raise BadInput(path, _many_values(limits), row)
    if is_deeper(octets, limits.depth):
        raise BadInput(path, f"nested deeper than {limits.depth} levels", row)
    if len(octets) > limits.digits and _has_long_number(octets, limits.digits):
        raise BadInput(path, f"a number of more than {limits.digits} digits", row)


def has_more_values(octets: bytes, most: int) -> bool:
    """Whether a JSON text has more opening brackets and commas outside of strings than allowed.

    octets: the text; it need not be JSON, and a string that does not end is taken as in
        `is_deeper`.
    most: brackets and commas that are allowed. A text of no more bytes is not looked at.
    """
    if len(octets) <= most or _opened(octets, 0, len(octets)) <= most:
        return False
    values = at = 0
    for strings, match in enumerate(_STRING.finditer(octets), 1):
        values += _opened(octets, at, match.start())
        at = match.end()
        if len(match.group()) == 1:
            return values > most
        # A value has one string and its key at most.
        if values > most or strings > 2 * (most + 1):
            return True
    return values + _opened(octets, at, len(octets)) > most


def _opened(octets: bytes, begin: int, end: int) -> int:
    return sum(octets.count(mark, begin, end) for mark in (b"[", b"{", b","))


def _many_values(limits: Limits) -> str:
    return f"more than {limits.values:,} values: brackets and commas are counted"


def is_deeper(octets: bytes, most: int) -> bool:
    """Whether a JSON text is nested deeper than allowed, in brackets outside of strings.

    It need not be JSON. What follows the start of a string that does not end is in the string.
    """
    if octets.count(b"[") + octets.count(b"{") <= most:
        return False
    depth = 0
    for match in _BRACKET.finditer(octets):
        mark = match.group()
        if mark in (b"[", b"{"):
            depth += 1
            if depth > most:
                return True
        elif mark in (b"]", b"}"):
            depth -= 1
        elif mark == b'"':
            break
    return False


def _has_long_number(octets: bytes, digits: int) -> bool:
    # Deleting costs a tenth of the search, and shows that most texts have no such number.
    if len(octets) - len(octets.translate(None, b"0123456789")) <= digits:
        return False
    long_run = re.compile(rb"[0-9]{%d}" % (digits + 1))
    if long_run.search(octets) is None:
        return False
    # Digits in strings do not count.
    outside = _TOKEN.sub(lambda match: b"," if match.group()[:1] == b'"' else match.group(), octets)
    return long_run.search(outside) is not None


def load_json(
    octets: bytes,
    path: Path,
    limits: Limits = LIMITS,
    row: int | None = None,
    made: Made | None = None,
) -> Any:
    """Parse one JSON value.

    Raises BadInput for a text that is no JSON, and as `check_nesting`.
    """
    check_nesting(octets, path, limits, row)
    try:
        return json.loads(octets.decode("utf-8"), object_pairs_hook=made)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not JSON: {error}", row) from error


class _Window:
    """The text from the start of the present member on; more is read where it is needed."""

    def __init__(self, texts: Iterable[bytes], path: Path, limits: Limits) -> None:
        self._texts, self._path, self._limits = iter(texts), path, limits
        self.text = bytearray()
        self.at = 0
        self.number = 0
        self._brackets = 0

    def bad(self, rule: str) -> BadInput:
        return BadInput(self._path, rule, self.number or None)

    def more(self) -> bool:
        """Append the next part; False at the end. The part before `at` is forgotten."""
        if self.at:
            del self.text[: self.at]
            self.at = 0
        if len(self.text) > self._limits.line_bytes:
            raise self.bad(f"a member of more than {self._limits.line_bytes} bytes")
        # At least as much as there is, so that scanning a long member again costs little.
        wanted = len(self.text)
        gained = 0
        for text in self._texts:
            self.text += text
            gained += len(text)
            if gained > wanted:
                break
        return gained > 0

    def peek(self) -> bytes:
        """The next byte that is not blank; empty at the end."""
        while True:
            if found := _MARK.search(self.text, self.at):
                self.at = found.start()
                return found.group()
            self.at = len(self.text)
            if not self.more():
                return b""

    def take(self, mark: bytes) -> None:
        if self.peek() != mark:
            raise self.bad(f"not JSON: {mark.decode()!r} expected")
        self.at += 1

    def value(self, stops: bytes) -> bytes:
        """The text of one value, up to one of `stops` outside of it."""
        self.peek()
        place = self.at
        self._brackets = 0
        depth = 0
        while True:
            if depth:
                nested = _NESTED.match(self.text, place)
                if nested is not None:
                    depth = self._deeper(depth, nested.group(1))
                    place = nested.end()
                else:
                    # A string continues behind what was read, or the value does.
                    place = self._after_more(place)
                continue
            match = _TOKEN.search(self.text, place)
            mark = match.group() if match else b""
            if match is None or mark == b'"':
                place = self._after_more(place if match is None else match.start())
                continue
            if mark in stops and mark[:1] != b'"':
                found = bytes(self.text[self.at : match.start()]).strip(_BLANK)
                self.at = match.start()
                return found
            depth = self._deeper(depth, mark)
            place = match.end()

    def _after_more(self, place: int) -> int:
        """Read more of a value; returns where `place` is then."""
        shift = place - self.at
        if not self.more():
            raise self.bad("not JSON: the text ends too early")
        return self.at + shift

    def _deeper(self, depth: int, mark: bytes) -> int:
        """The depth behind a mark."""
        is_opening = mark in (b"[", b"{")
        depth += is_opening - (mark in (b"]", b"}"))
        self._brackets += is_opening
        if self._brackets > self._limits.values:
            raise self.bad(_many_values(self._limits))
        if depth < 0:
            raise self.bad("not JSON: a bracket too many")
        if depth > self._limits.depth:
            raise self.bad(f"nested deeper than {self._limits.depth} levels")
        return depth


def members(
    texts: Iterable[bytes], path: Path, limits: Limits = LIMITS, made: Made | None = None
) -> Iterator[tuple[str | int, Any]]:
    """The members of one large JSON object or array, each parsed alone: (key or index, value).

    limits: `line_bytes` counts for each member, `rows` for their number, the others
        as in `load_json`.

    Memory: a few times one member, whatever the size of the file. A key that occurs twice
    is yielded twice. Raises BadInput, with the 1-based number of the member as row.
    """
    window = _Window(texts, path, limits)
    first = window.peek()
    if first not in (b"[", b"{"):
        raise window.bad("not a JSON object or array")
    last = b"]" if first == b"[" else b"}"
    window.take(first)
    if window.peek() == last:
        window.take(last)
    else:
        while True:
            window.number += 1
            if window.number > limits.rows:
                raise window.bad(f"more than {limits.rows} members")
            key: str | int = window.number - 1
            if first == b"{":
                key = _key(window, path, limits)
            octets = window.value(b"," + last)
            if len(octets) > limits.line_bytes:
                raise window.bad(f"a member of more than {limits.line_bytes} bytes")
            yield key, load_json(octets, path, limits, window.number, made)
            if window.peek() == last:
                window.take(last)
                break
            window.take(b",")
    window.number = 0
    if window.peek():
        raise window.bad("text after the JSON value")


def _key(window: _Window, path: Path, limits: Limits) -> str:
    if window.peek() != b'"':
        raise window.bad("not JSON: a key in quotes expected")
    key = load_json(window.value(b":"), path, limits, window.number)
    window.take(b":")
    if not isinstance(key, str):
        raise window.bad("not JSON: a key in quotes expected")
    return key


Way = tuple[str | None, ...]
"""The keys that lead to a value, and None for each list."""

_KEY: Final = re.compile(rb'("(?:[^"\\]|\\.)*+")(\s*:)?|[\[\]{}]|[^\s"\[\]{},:]++|"', re.DOTALL)


def way_to(head: bytes, is_it: Callable[[Way, bytes], bool]) -> Way | None:
    """The way to the first text, number or constant that `is_it` accepts; None where there is none.

    head: the begin of the text, which may be cut anywhere and need not be JSON.
    """
    way: list[str | None] = []
    for match in _KEY.finditer(head):
        token = match[0]
        if token == b'"':
            break
        if token in b"[{":
            way.append(None if token == b"[" else "")
        elif token in b"]}":
            del way[-1:]
        elif match[2]:
            with suppress(ValueError):
                way[-1:] = [json.loads(match[1])] if way else []
        elif is_it(tuple(way), token):
            return tuple(way)
    return None


def jq(way: Way) -> str:
    """The filter of jq that gives every value on a way."""
    keys = ((key, key is None or re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key)) for key in way)
    made = "".join(
        "[]" if key is None else f".{key if ok else json.dumps(key)}" for key, ok in keys
    )
    return made if made.startswith(".") else f".{made}"


HEAD_BYTES: Final = 64
"""Bytes at the beginning of a file that show a pointer."""
_PACKED: Final = {
    b"\x1f\x8b": "gzip, and its name does not end in .gz: rename it",
    b"\x28\xb5\x2f\xfd": "zstd, and its name does not end in .zst: rename it",
    b"\xfd7zXZ\0": "xz, and its name does not end in .xz: rename it",
    b"PK\x03\x04": "a ZIP archive: unpack it",
    b"PAR1": "Parquet, and its name does not end in .parquet: rename it",
}
_BEGINS: Final = b"version https://git-lfs.github.com/spec/"


def refuse_pointer(head: bytes, path: Path) -> None:
    """Raise BadInput for a file that is a pointer of Git LFS.

    head: its first bytes, `HEAD_BYTES` or more where it has them.
    """
    if head.startswith(_BEGINS):
        rule = "is a Git LFS pointer and not the data: run `git lfs pull` where it was cloned, and"
        raise BadInput(path, f"{rule} copy the file from there")


def refuse_packed(head: bytes, path: Path, *, is_inner: bool = False) -> None:
    """Raise BadInput for a text that is packed and has no such name, or is in an archive."""
    for begin, what in _PACKED.items():
        if head.startswith(begin):
            twice = "is packed twice: unpack it once, and give it the ending of what is in it"
            raise BadInput(path, twice if is_inner else f"is {what}")
