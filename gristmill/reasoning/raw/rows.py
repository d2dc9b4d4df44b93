"""The rows of a data file, whatever its format: each an object, or why it is refused.

See also `unpacked.py`: the bytes; `tables.py`: CSV and TSV; `parquet.py`; `shapes.py`: what the
objects mean. Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput
from gristmill.reasoning.format.corpora import Corpus
from gristmill.reasoning.raw.drops import kind
from gristmill.reasoning.raw.flatten import Unfit
from gristmill.reasoning.raw.unpacked import unpacked
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.json_text import check_nesting, has_more_values, load_json, members
from gristmill.untrusted.limits import LIMITS, Limits
from gristmill.untrusted.lines import line_bytes, lines

Row = tuple[int, dict[str, Any] | Unfit]
"""Number of a row in its file, from 1, and the row or why it is refused."""

_NUMBERED: Final = re.compile(rb'\s*\{\s*"[0-9]+"\s*:\s*\{')
"""Begins one object with an object for each number, as CoT-Collection has it."""
_NUMBER_FIRST: Final = re.compile(rb'\s*\{\s*"[0-9]+"\s*:')
_LOOKED: Final = 1 << 20
"""Bytes, a member more or less, in which the first object of such a file must begin."""
_BLANK: Final = b" \t\r\n"
_FORMS: Final = "write an object a line, or one array of objects"
# Whole numbers of more than 64 bits, which orjson reads as floats.
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")


def rows(
    path: Path, corpus: Corpus, links: LinkRule = REFUSE_LINKS, limits: Limits = LIMITS
) -> Iterator[Row]:
    """Yield the rows of a data file in order.

    path: the file, in its drop.
    corpus: whose rows they are; cot_collection may have tables without a header.
    links: what happens if the file is a link; default: it is refused.
    limits: of the file.

    Rows are numbered from 1: lines of JSON lines and of tables without a header, blank ones
    included, members of a JSON array or object, rows of Parquet, and records of CSV and TSV
    below the header. Raises BadInput where the file itself is damaged or breaks a limit.
    Memory: a few rows. Source: `docs/formats/reasoning.md#drops`.
    """
    from gristmill.reasoning.raw import parquet, tables

    ending, _ = kind(path.name) or ("", "")
    if ending == "parquet":
        yield from parquet.rows(path, links)
        return
    with unpacked(path, links, limits) as texts:
        _, unmarked = _without_mark(texts, path)
        if ending in ("csv", "tsv"):
            yield from tables.rows(unmarked, path, corpus, limits)
        else:
            yield from _json_rows(unmarked, path, limits)


def row_bytes(path: Path, corpus: Corpus, row: int) -> dict[str, object]:
    """The fact `raw_row_bytes` of a row: its bytes `a-b` in the file, without the line's end.

    path: a raw file that is as its record says; it may be a link.
    corpus: whose rows they are. row: its number, from 1, as `rows` counts.

    Of a packed file the fact is `raw_row_bytes_unpacked`, of the unpacked text. There is none for
    Parquet and for members of JSON arrays and objects. One pass over the file up to the row.
    Source: `docs/formats/reasoning.md#trace`.
    """
    from gristmill.reasoning.raw import tables

    ending, packing = kind(path.name) or ("", "")
    if ending == "parquet":
        return {}
    links = LinkRule(follow=True, roots=(str(path.resolve().parent),))
    with unpacked(path, links) as texts:
        before, unmarked = _without_mark(texts, path)
        if ending in ("csv", "tsv"):
            place = tables.place_of(unmarked, path, corpus, row)
        else:
            is_whole, whole = _one_or_lines(unmarked, path, LIMITS)
            place = None if is_whole else line_bytes(whole, path, row)
    if place is None:
        return {}
    name = "raw_row_bytes_unpacked" if packing else "raw_row_bytes"
    return {name: f"{before + place[0]}-{before + place[1]}"}


def _without_mark(texts: Iterable[bytes], path: Path) -> tuple[int, Iterator[bytes]]:
    """The bytes of a byte order mark at the beginning of a text, and the text without it.

    Its first part has 64 bytes. Raises BadInput for a mark of UTF-16.
    """
    parts = iter(texts)
    head = b""
    for part in parts:
        head += part
        if len(head) >= 64:
            break
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise BadInput(path, "is UTF-16: save it as UTF-8")
    unmarked = head.removeprefix(BOM_UTF8)
    return len(head) - len(unmarked), chain([unmarked], parts)


def _json_rows(texts: Iterator[bytes], path: Path, limits: Limits) -> Iterator[Row]:
    is_whole, whole = _one_or_lines(texts, path, limits)
    if is_whole:
        for number, (_, value) in enumerate(members(whole, path, limits), 1):
            yield number, value if isinstance(value, dict) else _no_object()
        return
    found = _json_lines(whole, path, limits)
    begun = list(islice(found, 2))
    if len(begun) == 1 and _holds_columns(begun[0][1]):
        raise BadInput(path, f"holds its columns in one object, and no rows: {_FORMS}")
    yield from begun
    yield from found


def _holds_columns(row: dict[str, Any] | Unfit) -> bool:
    """Whether the only row of a file is a table by columns, as pandas and datasets write one.

    Its values are lists of one length, or objects with the same numbers as keys.
    """
    if isinstance(row, Unfit) or len(row) < 2:
        return False
    values = list(row.values())
    if all(isinstance(value, list) for value in values):
        return len(values[0]) > 1 and len({len(value) for value in values}) == 1
    return (
        all(isinstance(value, dict) for value in values)
        and len({tuple(value) for value in values}) == 1
        and bool(values[0])
        and all(key.isascii() and key.isdigit() for key in values[0])
    )


def _one_or_lines(
    texts: Iterator[bytes], path: Path, limits: Limits
) -> tuple[bool, Iterator[bytes]]:
    """Whether a JSON file is one array or object of rows, and no JSON lines; its text again.

    texts, path, limits: as for `members`; a byte order mark is no part of the texts.
    """
    head = b""
    for part in texts:
        head += part
        if head.strip(_BLANK) and len(head) >= 64:
            break
        if len(head) > limits.line_bytes:
            raise BadInput(path, f"begins with more than {limits.line_bytes:,} blank bytes")
    whole: Iterator[bytes] = chain([head], texts)
    is_whole = head.lstrip(_BLANK).startswith(b"[") or bool(_NUMBERED.match(head))
    if not is_whole and _NUMBER_FIRST.match(head):
        is_whole, whole = _looked_at(whole, path, limits)
    return is_whole, whole


def _looked_at(texts: Iterator[bytes], path: Path, limits: Limits) -> tuple[bool, Iterator[bytes]]:
    """Whether a text is an object of numbers whose first values are broken; the text again.

    One line of JSON lines may have numbers as columns, too, but it holds no objects below them.
    """
    seen: list[bytes] = []

    def kept() -> Iterator[bytes]:
        for part in texts:
            seen.append(part)
            yield part

    is_numbered = False
    try:
        for key, value in members(kept(), path, limits):
            is_number = isinstance(key, str) and key.isascii() and key.isdigit()
            is_numbered = is_number and isinstance(value, dict)
            if is_numbered or not is_number or sum(map(len, seen)) > _LOOKED:
                break
    except BadInput:
        pass  # As lines it says where it is damaged.
    return is_numbered, chain(seen, texts)


def _json_lines(texts: Iterator[bytes], path: Path, limits: Limits) -> Iterator[Row]:
    loads = orjson.loads
    for number, line in enumerate(lines(texts, path, limits), 1):
        if number == 1 and line.strip(_BLANK) == b"{":
            raise BadInput(path, f"its first object has several lines: {_FORMS}", number)
        if len(line) > limits.values and has_more_values(line, limits.values):
            yield number, _exact(line, path, limits, number)
            continue
        try:
            value = loads(line)
        except orjson.JSONDecodeError:
            if line.isspace():
                continue
            yield number, _exact(line, path, limits, number)
            continue
        if type(value) is not dict:
            yield number, _no_object()
            continue
        for item in value.values():
            if type(item) is not str and item is not None:
                yield number, _checked(value, line, path, limits, number)
                break
        else:
            yield number, value


def _checked(
    value: dict[str, Any], line: bytes, path: Path, limits: Limits, number: int
) -> dict[str, Any] | Unfit:
    """A value with numbers, lists or objects, after a look at what orjson does not refuse."""
    if _LONG_NUMBER.search(line):
        return _exact(line, path, limits, number)
    try:
        check_nesting(line, path, limits, number)
    except BadInput as error:
        return Unfit("json", error.rule)
    return value


def _exact(line: bytes, path: Path, limits: Limits, number: int) -> dict[str, Any] | Unfit:
    """A line as the standard library parses it, which keeps all digits and lone surrogates."""
    try:
        value = load_json(line, path, limits, number)
    except BadInput as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            return Unfit("utf8", f"is not UTF-8: {error.__cause__}")
        return Unfit("json", error.rule)
    return value if isinstance(value, dict) else _no_object()


def _no_object() -> Unfit:
    return Unfit("object", "is no JSON object")
