"""What a JSON file is, by its beginning. Source: `docs/formats/reasoning.md#drops`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.reasoning.raw.drops import SPLIT_WORDS
from gristmill.reasoning.raw.flatten import CURES
from gristmill.untrusted.json_text import members
from gristmill.untrusted.limits import Limits

FORMS: Final = CURES["json"]
BLANK: Final = b" \t\r\n"
_NUMBERED: Final = re.compile(rb'\s*\{\s*"[0-9]+"\s*:\s*\{')
"""Begins one object with an object for each number, as CoT-Collection has it."""
_NUMBER_FIRST: Final = re.compile(rb'\s*\{\s*"[0-9]+"\s*:')
_WORD_FIRST: Final = re.compile(rb'\s*\{\s*"([A-Za-z]+)"\s*:\s*[\[{]')
_LOOKED: Final = 1 << 20
"""Bytes, a member more or less, in which the first object of such a file must begin."""
_MOST_SPLITS: Final = 3


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
    lists = [name for name, value in row.items() if _is_of_rows(value)]
    if lists:
        name = max(lists, key=lambda each: len(row[each]))
        what = f"holds its rows in a list under {name!r}"
        return f"{what}: write them alone, as `jq -c '.[{json.dumps(name)}][]'` does"
    values = list(row.values())
    is_alike = _is_of_rows(values) and len({tuple(value) for value in values}) == 1
    if is_alike and len(values) >= _MOST_SPLITS:
        return "holds a row under each of its keys: write them alone, as `jq -c '.[]'` does"
    return None


def _is_of_rows(value: object) -> bool:
    """Whether a value is a list of objects with keys."""
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
