"""Strict JSON: no NaN, no infinity, and no key twice in one object.

orjson takes the last of equal keys, and Python's JSON needs five times its time: it parses the
texts that may have a key twice.
Source: `docs/formats/synth.md#strict-json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from gristmill.printable import cut, printable

_LONGEST_KEY: Final = 60


def parse(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, or RecursionError for deep nesting."""
    return json.loads(text, object_pairs_hook=_members, parse_constant=_constant)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shown(twice)!r} is twice in one object: remove one of them")
    return members


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON: write null or a number")


def shown(key: str) -> str:
    """Return a key as messages and counts name it."""
    return cut(printable(key), _LONGEST_KEY)


def column_rules(name: str, texts: Sequence[str | None]) -> dict[int, str]:
    """Return the rules that a column of JSON that is not rendered breaks, by index."""
    doubted = [at for at, text in enumerate(texts) if text is not None and _is_doubted(text)]
    return json_rules(texts, doubted, f"{name}: ")


def _is_doubted(text: str) -> bool:
    """Whether a text may not be strict: each key, also one that is there twice, has a colon."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return True
    return text.count(":") != (len(value) if type(value) is dict else 0)


def json_rules(
    texts: Sequence[str | None], doubted: Iterable[int], name: str = ""
) -> dict[int, str]:
    """Return the rules of strict JSON that texts break, by index."""
    rules = {}
    for index in doubted:
        try:
            if (text := texts[index]) is not None:
                parse(text)
        except (ValueError, RecursionError) as error:
            rules[index] = f"{type(error).__name__}: {name}{error}"
    return rules
