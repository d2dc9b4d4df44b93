"""The way to the first value of a kind in JSON, found in the head of its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

Way = tuple[str | None, ...]
"""The keys that lead to a value, and None for each list."""

_TOKEN: Final = re.compile(rb'("(?:[^"\\]|\\.)*+")(\s*:)?|[\[\]{}]|[^\s"\[\]{},:]++|"', re.DOTALL)


def way_to(head: bytes, is_it: Callable[[Way, bytes], bool]) -> Way | None:
    """The way to the first text, number or constant that `is_it` accepts; None where there is none.

    head: the begin of the text, which may be cut anywhere and need not be JSON.
    is_it: takes the way to a value, and its JSON text.
    """
    way: list[str | None] = []
    for match in _TOKEN.finditer(head):
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
