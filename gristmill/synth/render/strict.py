"""Strict JSON: no NaN, no infinity, and no key twice in one object.

orjson takes the last of equal keys, and Python's JSON needs five times its time. So the keys of
many texts are counted at once; a text with more keys than were parsed is parsed again.
Source: `docs/formats/synth.md#strict-json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.printable import cut, printable

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_KEY: Final = 60
_SPACE, _QUOTE, _COLON, _BACKSLASH = b' ":\\'


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


def count_keys(value: Any) -> int:
    """Return the number of keys in all objects of a JSON value."""
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            count += len(item)
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return count


def suspects(texts: pa.Array, keys: Sequence[int]) -> list[int]:
    """Which texts may have a key twice in one object; the others certainly do not."""
    import pyarrow as pa

    if pa.types.is_null(texts.type):
        return []
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    bounds = np.frombuffer(texts.buffers()[1], kind)[texts.offset :][: len(texts) + 1]
    octets = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[bounds[0] : bounds[-1]]
    colons, last, before, third = octets[3:] == _COLON, octets[2:-1], octets[1:-2], octets[:-3]
    quotes = colons & (last == _QUOTE)
    slashes = before == _BACKSLASH
    ends = quotes & ~slashes
    odd = quotes & slashes & (third == _BACKSLASH)
    odd |= colons & (last <= _SPACE) & ((before == _QUOTE) | (before <= _SPACE))
    if np.count_nonzero(ends) == sum(keys) and not odd.any():
        return []
    places = bounds[1:] - bounds[0] - 3  # of the ends of texts, as the arrays above count
    wrong = _counts(ends, places) != np.array(keys)
    return [int(index) for index in np.flatnonzero(wrong | (_counts(odd, places) > 0))]


def column_rules(column: pa.Array, name: str, texts: Sequence[str | None]) -> dict[int, str]:
    """Return the rules that a column of JSON that is not rendered breaks, by index."""
    keys, broken = [], []
    for index, text in enumerate(texts):
        try:
            value = None if text is None else orjson.loads(text)
        except ValueError:
            value = None
            broken.append(index)
        # The keys of nested values are not counted: such a text is suspected.
        keys.append(len(value) if type(value) is dict else 0)
    doubted = suspects(column, keys)
    return json_rules(texts, {*broken, *doubted}, f"{name}: ")


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


def _counts(found: npt.NDArray[np.bool_], places: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How many were found in each text."""
    owners = np.searchsorted(places, np.flatnonzero(found), side="right")
    return np.bincount(owners, minlength=len(places))
