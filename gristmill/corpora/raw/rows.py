"""Rows of a data file of any format, or refusals; what a JSON file is, by its beginning.

Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

import json
import re
from array import array
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.contract import BadInput
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw.drops import SPLIT_WORDS, kind
from gristmill.corpora.raw.reader import columns_of
from gristmill.corpora.raw.texts import CURES, Unfit
from gristmill.hashing import kept
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.json_text import (
    HEAD_BYTES,
    check_nesting,
    has_more_values,
    load_json,
    members,
    refuse_packed,
    refuse_pointer,
)
from gristmill.untrusted.limits import LIMITS, Limits, bounded
from gristmill.untrusted.lines import line_places, lines, reads, with_line_feeds
from gristmill.untrusted.walk import unpack

FORMS: Final = CURES["json"]
BLANK: Final = b" \t\r\n"
_NUMBERED: Final = re.compile(rb'\s*\{\s*"[0-9]+"\s*:\s*\{')
"""Begins one object with an object for each number, as CoT-Collection has it."""
_NUMBER_FIRST: Final = re.compile(rb'\s*\{\s*"[0-9]+"\s*:')
_WORD_FIRST: Final = re.compile(rb'\s*\{\s*"([A-Za-z]+)"\s*:\s*[\[{]')
_LOOKED: Final = 1 << 20
"""Bytes, a member more or less, in which the first object of such a file must begin."""
_MOST_SPLITS: Final = 3
_PIECES: Final = 256
_PIECE_BYTES, _MOST_PIECE_BYTES = 1 << 20, 1 << 24
_LEAST_BYTES: Final = 1 << 18


def one_or_lines(
    texts: Iterator[bytes], path: Path, limits: Limits
) -> tuple[bool, Iterator[bytes]]:
    """Whether a JSON file is one array or object of rows, and no JSON lines; its text again."""
    head = b""
    for part in texts:
        head += part
        if head.strip(BLANK) and len(head) >= 64:
            break
        if len(head) > limits.line_bytes:
            raise BadInput(path, f"begins with more than {limits.line_bytes:,} blank bytes")
    whole: Iterator[bytes] = chain([head], texts)
    if head.lstrip(BLANK).startswith(b"[") or _NUMBERED.match(head):
        return True, whole
    if _NUMBER_FIRST.match(head):
        return _looked_at(whole, path, limits)
    word = _WORD_FIRST.match(head)
    if word and word[1].decode().lower() in SPLIT_WORDS:
        whole = _without_splits(whole, path, limits)
    return False, whole


def holds_columns(row: object) -> bool:
    """Whether the only row of a file is a table by columns, as pandas and datasets write one.

    row: the value. Its values are lists of one length, or objects with the same numbers as keys.
    """
    if not isinstance(row, dict) or len(row) < 2:
        return False
    values: list[Any] = list(row.values())
    if all(isinstance(value, list) for value in values):
        return len(values[0]) > 1 and len({len(value) for value in values}) == 1
    return (
        all(isinstance(value, dict) for value in values)
        and len({tuple(value) for value in values}) == 1
        and bool(values[0])
        and all(key.isascii() and key.isdigit() for key in values[0])
    )


def held_under(row: object, columns: Collection[str]) -> str | None:
    """What the only object of a file is, whose rows are below its keys; None: it is a row.

    row: the object. columns: that are read; an object with one of them, or with numbers as
        keys, is a row.
    """
    if not isinstance(row, dict) or any(each in columns or each.isdecimal() for each in row):
        return None
    counts = {name: count for name, value in row.items() if (count := _count_rows(value))}
    return _held(counts) or ("holds " + _ALONE.format("") if _are_alike(row) else None)


_ALONE: Final = "a row under each of its keys: write them alone, as `jq -c '.{}[]'` does"


def _held(counts: Mapping[str, int]) -> str | None:
    """What a file is whose only object has so many rows under some keys; None where it has none."""
    if not counts:
        return None
    name = max(counts, key=lambda each: abs(counts[each]))
    way = f"[{json.dumps(name)}]"
    if counts[name] < 0:
        return f"holds, under {name!r}, {_ALONE.format(way)}"
    what = f"holds its rows in a list under {name!r}"
    return f"{what}: write them alone, as `jq -c '.{way}[]'` does"


def _count_rows(value: object) -> int:
    """How many rows a value holds: objects in a list, or below keys, these counted below 0."""
    if isinstance(value, dict):
        return -len(value) if _are_alike(value) else 0
    return len(value) if isinstance(value, list) and _is_of_rows(value) else 0


def _are_alike(value: Mapping[str, Any]) -> bool:
    """Whether there are rows below the keys of an object: three or more, with the same keys."""
    values = list(value.values())
    is_alike = _is_of_rows(values) and len({tuple(each) for each in values}) == 1
    return is_alike and len(values) >= _MOST_SPLITS


def _one_object(path: Path, links: LinkRule, limits: Limits) -> str | None:
    """What a JSON file is that is one object over several lines; None where it is another one.

    Memory: that of its largest member.
    """
    counts: dict[str, int] = {}
    with unpacked(path, links, limits) as texts:
        _, unmarked = _without_mark(texts, path)
        try:
            for key, value in members(unmarked, path, limits):
                if isinstance(key, str) and (count := _count_rows(value)):
                    counts[key] = count
        except BadInput as error:
            is_large = error.rule.startswith("a member of more")
            cure = "write the rows in it alone, an object a line, as `jq -c` does"
            return f"is one object, with {error.rule}: {cure}" if is_large else None
    return _held(counts) or _SEVERAL


def _is_of_rows(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(each and isinstance(each, dict) for each in value)
    )


def _looked_at(texts: Iterator[bytes], path: Path, limits: Limits) -> tuple[bool, Iterator[bytes]]:
    """Whether a text is an object of numbers whose first values are broken; the text again.

    One line of JSON lines may have numbers as columns, too, but it holds no objects below them.
    """
    seen: list[bytes] = []
    is_numbered = False
    try:
        for key, value in members(_kept(texts, seen), path, limits):
            is_number = isinstance(key, str) and key.isascii() and key.isdigit()
            is_numbered = is_number and isinstance(value, dict)
            if is_numbered or not is_number or sum(map(len, seen)) > _LOOKED:
                break
    except BadInput:
        pass  # As lines it says where it is damaged.
    return is_numbered, chain(seen, texts)


def _without_splits(texts: Iterator[bytes], path: Path, limits: Limits) -> Iterator[bytes]:
    """The text again. Raises BadInput if each of its first members is a split with its rows.

    A row may have a column with the name of a split, too, but it has others beside it.
    """
    seen: list[bytes] = []
    found: list[str] = []
    try:
        for key, value in members(_kept(texts, seen), path, limits):
            if str(key).lower() not in SPLIT_WORDS or not isinstance(value, list | dict):
                return chain(seen, texts)
            found.append(str(key))
            if len(found) == _MOST_SPLITS:
                break
    except BadInput as error:
        # A member that breaks a limit is no row either; what is damaged, lines tell.
        if error.rule.startswith(("not JSON", "text after")):
            return chain(seen, texts)
    named = f"the splits {', '.join(found)}" if found else "splits"
    word = found[0] if found else "train"
    raise BadInput(
        path,
        f"holds {named} under their names: write a file for each split, as with "
        f"`jq -c '.{word}[]' {path.name} > {SPLIT_WORDS[word.lower()]}.jsonl`",
    )


def _kept(texts: Iterator[bytes], seen: list[bytes]) -> Iterator[bytes]:
    """The parts of a text; each is put into `seen` before it is given."""
    for part in texts:
        seen.append(part)
        yield part


Row = tuple[int, dict[str, Any] | Unfit]
"""Number of a row in its file, from 1, and the row or why it is refused."""

# Whole numbers of more than 64 bits, which orjson reads as floats.
_ESCAPED_COLON: Final = b"\\u003"
"""Begins one, as it may begin other characters."""
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")


def rows(
    path: Path,
    corpus: Corpus,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = LIMITS,
    columns: Collection[str] | None = None,
    piece: Piece | None = None,
) -> Iterator[Row]:
    """Yield the rows of a data file in order.

    path: the file, in its drop.
    corpus: whose rows they are; cot_collection may have tables without a header.
    links: what happens if the file is a link; default: it is refused.
    limits: of the file.
    columns: that are read; default: those of the forms of the corpus.
    piece: of `pieces`, whose rows alone are read, and numbered from 1; default: the whole file.

    Rows are numbered from 1: lines of JSON lines and of tables without a header, blank ones
    included, members of a JSON array or object, rows of Parquet, and records of CSV and TSV
    below the header. What other columns hold does not matter.
    Raises BadInput where the file itself is damaged or breaks a limit.
    Memory: a few rows.
    """
    from gristmill.corpora.raw import parquet, tables

    ending, _ = kind(path.name) or ("", "")
    wanted = columns_of(corpus) if columns is None else columns
    if ending == "parquet":
        yield from parquet.rows(path, links, wanted)
        return
    with unpacked(path, links, limits, piece) as texts:
        if piece is not None and piece.begin:
            yield from _json_lines(texts, path, wanted, limits, has_begin=False)
            return
        _, unmarked = _without_mark(texts, path)
        if ending in ("csv", "tsv"):
            yield from tables.rows(_lined(unmarked, ending), path, corpus, limits)
        else:
            found = _json_rows(unmarked, path, wanted, limits)
            yield from _unless_one_object(found, path, links, limits)


def row_bytes(path: Path, corpus: Corpus, row: int) -> dict[str, object]:
    """The fact `raw_bytes` of a row: its bytes `a-b` in the file, without the line's end.

    corpus: whose rows they are. row: its number, from 1, as `rows` counts.

    Of a packed file the fact is `raw_unpacked_bytes`, of the unpacked text. There is none for
    Parquet and for members of JSON arrays and objects. One pass over the file in a process while it
    does not change; 16 bytes a row are kept.
    """
    ending, packing = kind(path.name) or ("", "")
    if ending == "parquet":
        return {}
    places, error = kept(row_places, path, corpus, ending)
    if 2 * row > len(places):
        if error is not None:
            raise error
        return {}
    begin, end = places[2 * row - 2 : 2 * row]
    return {"raw_unpacked_bytes" if packing else "raw_bytes": f"{begin}-{end}"}


def row_places(path: Path, corpus: Corpus, ending: str) -> tuple[array[int], BadInput | None]:
    """Begin and end of each row of a file, and why there are no more where it is damaged."""
    from gristmill.corpora.raw import tables

    places = array("q")
    links = LinkRule(follow=True, roots=(str(path.resolve().parent),))
    with unpacked(path, links) as texts:
        before, unmarked = _without_mark(texts, path)
        if ending in ("csv", "tsv"):
            found = tables.places(_lined(unmarked, ending), path, corpus)
        else:
            is_whole, whole = one_or_lines(unmarked, path, LIMITS)
            found = iter(()) if is_whole else line_places(_lined(whole, ending), path)
        try:
            for begin, end in found:
                places.extend((before + begin, before + end))
        except BadInput as error:
            return places, error
    return places, None


def _without_mark(texts: Iterable[bytes], path: Path) -> tuple[int, Iterator[bytes]]:
    """The bytes of a byte order mark at the beginning of a text, and the text without it.

    Its first part has 64 bytes. Raises BadInput for UTF-16, and for what was packed twice.
    """
    parts = iter(texts)
    head = b""
    for part in parts:
        head += part
        if len(head) >= 64:
            break
    begin = head[:HEAD_BYTES]
    refuse_packed(begin, path, is_inner=True)
    # Without a mark every other byte of it is zero, which no text of ours has.
    if begin.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or begin.count(0) > len(begin) // 4:
        raise BadInput(path, "is UTF-16: save it as UTF-8")
    unmarked = head.removeprefix(BOM_UTF8)
    return len(head) - len(unmarked), chain([unmarked], parts)


def _lined(texts: Iterator[bytes], ending: str) -> Iterator[bytes]:
    """A text with LF for CR where its lines end in CR alone."""
    if ending == "csv":
        return with_line_feeds(texts, lambda _: True)
    # A cell of FLAN CoT may hold a CR, and so may the blanks of a JSON object.
    return with_line_feeds(texts, _is_json if ending != "tsv" else lambda line: b"\t" in line)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _json_rows(
    texts: Iterator[bytes], path: Path, columns: Collection[str], limits: Limits
) -> Iterator[Row]:
    is_whole, whole = one_or_lines(texts, path, limits)
    if is_whole:
        try:
            for number, (_, value) in enumerate(members(whole, path, limits, _object), 1):
                yield number, _unrepeated(value, columns)
        except BadInput as error:
            is_after = error.rule.startswith("text after")  # an array a line
            if not (is_after or error.rule.startswith("not JSON")):
                raise
            cure = CURES["object"] if is_after else FORMS
            raise BadInput(path, f"{error.rule}: {cure}", error.row) from error
        return
    found = _json_lines(_lined(whole, "jsonl"), path, columns, limits)
    begun = list(islice(found, 2))
    if len(begun) == 1 and holds_columns(begun[0][1]):
        raise BadInput(path, f"holds its columns in one object, and no rows: {FORMS}")
    if len(begun) == 1 and columns and (rule := held_under(begun[0][1], columns)):
        raise BadInput(path, rule)
    yield from begun
    yield from found


def _unless_one_object(
    found: Iterator[Row], path: Path, links: LinkRule, limits: Limits
) -> Iterator[Row]:
    """The rows again. Raises BadInput where the first one is none since it has several lines."""
    try:
        first = next(found, None)
    except BadInput as error:
        rule = not error.rule.startswith("holds") and _one_object(path, links, limits)
        if rule and rule != _SEVERAL:
            raise BadInput(path, rule) from error
        raise
    if first is None:
        return
    is_damaged = isinstance(first[1], Unfit) and first[1].reason == "json"
    if is_damaged and (rule := _one_object(path, links, limits)):
        raise BadInput(path, rule, 1 if rule == _SEVERAL else None)
    yield first
    yield from found


_SEVERAL: Final = f"its first object has several lines: {FORMS}"


def _json_lines(
    texts: Iterator[bytes],
    path: Path,
    columns: Collection[str],
    limits: Limits,
    has_begin: bool = True,
) -> Iterator[Row]:
    loads, dumps = orjson.loads, orjson.dumps
    blanks: int | None = None
    for number, line in enumerate(lines(texts, path, limits), 1):
        if number == 1 and has_begin and line.strip(BLANK) == b"{":
            raise BadInput(path, _SEVERAL, number)
        if line.isspace():
            continue
        if len(line) > limits.values and has_more_values(line, limits.values):
            yield number, _exact(line, path, columns, limits, number)
            continue
        try:
            value = loads(line)
        except orjson.JSONDecodeError:
            yield number, _exact(line, path, columns, limits, number)
            continue
        if type(value) is not dict:
            yield number, _no_object()
            continue
        for item in value.values():
            if type(item) is not str and item is not None:
                yield number, _checked(value, line, path, columns, limits, number)
                break
        else:
            # A key that is there twice makes the line longer than the object is.
            if blanks is None:
                blanks = _blanks(line)
            more = len(line) - len(dumps(value))
            if more != (blanks * len(value) or 1) and not _is_whole(value, line):
                yield number, _exact(line, path, columns, limits, number)
            else:
                yield number, value


def _blanks(line: bytes) -> int:
    """Blanks that the writer of a line puts beside each key: behind its colon and its comma."""
    colon = line.find(b'":') + 1
    return 2 if line[colon + 1 : colon + 2] == b" " else 0


def _is_whole(value: Mapping[str, Any], line: bytes) -> bool:
    """Whether a line that is this object has surely no key twice."""
    # An escaped colon would take the place of one that is lost.
    return _ESCAPED_COLON not in line and line.count(b":") == orjson.dumps(value).count(b":")


def _checked(
    value: dict[str, Any],
    line: bytes,
    path: Path,
    columns: Collection[str],
    limits: Limits,
    number: int,
) -> dict[str, Any] | Unfit:
    """A value after a look at what orjson does not refuse: long numbers, nesting, equal keys."""
    if _LONG_NUMBER.search(line):
        return _exact(line, path, columns, limits, number)
    try:
        check_nesting(line, path, limits, number)
    except BadInput as error:
        return Unfit("json", error.rule)
    if not _is_whole(value, line):
        return _exact(line, path, columns, limits, number)
    return value


def _exact(
    line: bytes, path: Path, columns: Collection[str], limits: Limits, number: int
) -> dict[str, Any] | Unfit:
    """A line as the standard library parses it, which keeps all digits and lone surrogates."""
    if line.startswith(b"\0") and not line.strip(b"\0\r\n"):
        return Unfit("value", "is zero bytes alone, as a write that broke off leaves: get it again")
    try:
        value = load_json(line, path, limits, number, _object)
    except BadInput as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            return Unfit("utf8", f"is not UTF-8: {error.__cause__}")
        return Unfit("json", error.rule)
    return _unrepeated(value, columns)


class _Repeated(dict[str, Any]):
    """An object that has keys several times; of each the last value is kept."""

    keys_again: Collection[str] = ()


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    repeated = _Repeated(made)
    counts = Counter(key for key, _ in pairs)
    repeated.keys_again = [key for key, count in counts.items() if count > 1]
    return repeated


def _unrepeated(value: Any, columns: Collection[str]) -> dict[str, Any] | Unfit:
    """A row, refused if a column that is read or a key of an object is there twice."""
    if not isinstance(value, dict):
        return _no_object()
    again = value.keys_again if isinstance(value, _Repeated) else ()
    for name, item in value.items():
        if name in columns and (name in again or _is_repeated(item)):
            return Unfit("json", f"has a key twice, {name!r} or one in it: leave one of them")
    return value


def _is_repeated(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value, _Repeated) or any(map(_is_repeated, value.values()))
    return isinstance(value, list) and any(map(_is_repeated, value))


def _no_object() -> Unfit:
    return Unfit("object", "is no JSON object")


class Piece(NamedTuple):
    """Whole lines of a file, whose last one is a row. begin, end: bytes in the file."""

    begin: int
    end: int


def has_pieces(path: Path, links: LinkRule = REFUSE_LINKS) -> bool:
    """Whether a file is one of JSON lines whose `pieces` can be read alone.

    A small or a packed one is not, nor one of another form: it is read as a whole. Raises BadInput
    for what is no regular file.
    """
    if kind(path.name) not in (("jsonl", ""), ("json", "")):
        return False
    with open_file(path, root=path.parent, links=links) as file:
        size = file.seek(0, 2)
        file.seek(0)
        return size >= _LEAST_BYTES and _are_lines(file.readline(_LOOKED), file.readline(_LOOKED))


def pieces(path: Path, links: LinkRule = REFUSE_LINKS, limits: Limits = LIMITS) -> Iterator[Piece]:
    """Yield the pieces of a file that has some, in order. Memory: one line."""
    with open_file(path, root=path.parent, links=links) as file:
        size, end = file.seek(0, 2), 0
        step = min(max(size // _PIECES, _PIECE_BYTES), _MOST_PIECE_BYTES)
        while (begin := end) < size:
            file.seek(min(begin + step, size))
            # The number of the last row is that of the lines, since no blank one is behind it.
            while file.readline(limits.line_bytes + 1).isspace():
                pass
            end = file.tell()
            yield Piece(begin, end)


def _are_lines(*begun: bytes) -> bool:
    """Whether the first lines of a file are objects, each whole, and none of numbered rows."""
    return all(line.endswith(b"\n") and _is_json(line) for line in begun) and not (
        _NUMBER_FIRST.match(begun[0]) or not begun[0].lstrip(BLANK).startswith(b"{")
    )


@contextmanager
def unpacked(
    path: Path,
    links: LinkRule = REFUSE_LINKS,
    limits: Limits = LIMITS,
    piece: Piece | None = None,
) -> Iterator[Iterator[bytes]]:
    """Open a data file that is no Parquet; gives its text in parts, 1 MiB at most for most formats.

    limits: `bytes`, `text_bytes`, `ratio` and `any_ratio_bytes` count.
    piece: that is read alone; default: the whole file.

    Raises BadInput for what is no regular file, is damaged, or breaks a limit; GristmillError
    where `.zst` is read without zstandard.
    """
    _, packing = kind(path.name) or ("", "")
    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size > limits.bytes:
            raise BadInput(path, f"has more than {limits.bytes:,} bytes")
        refuse_pointer(head := file.read(HEAD_BYTES), path)
        file.seek(0)
        if not packing:
            refuse_packed(head, path)
            if piece is None:
                yield reads(file)
                return
            file.seek(piece.begin)
            yield iter([file.read(piece.end - piece.begin)])
            return
        yield bounded(unpack(file, path, packing), path, limits.unpacked(size))
