"""valuation_types.json: the name of each id. Source: docs/formats/macroxue.md#valuation-types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput
from gristmill.macroxue.config import EnumForm

STANDARD_NAMES = ("search", "tuple11", "tuple10")
"""Ids 0, 1, 2 of every pack (docs/formats/macroxue.md#valuation-types)."""

MAX_NAMES = 255
"""The largest number of names in a pack (docs/formats/macroxue.md#valuation-types)."""


def write_valuation_types(path: Path, names: Sequence[str], form: EnumForm = "list") -> None:
    """Write the names of the ids.

    form: "list" (default): the names as a list, which the Python readers of the original take.
        "object": name to id in the order of ids, which the merge of the Rust packer needs; the
        training collate misreads it.
    """
    value: Any = list(names) if form == "list" else {name: i for i, name in enumerate(names)}
    path.write_bytes(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def read_valuation_types(path: Path) -> tuple[str, ...]:
    """The names by id, from any of the three forms: list, name to id, id to name.

    Raises BadInput, naming the file, where it has none of these forms, where ids have gaps or
    repeat, where names repeat, or where there are more than 255 of them.
    """
    if not path.is_file():
        raise BadInput(
            path, "there is no such file: ids of valuation_type belong to one pack; copy its file"
        )
    try:
        value = json.loads(path.read_bytes(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not JSON: {error}") from error
    names = _names(path, value)
    if not names or len(set(names)) != len(names) or len(names) > MAX_NAMES:
        raise BadInput(path, f"needs 1 to {MAX_NAMES} names, each once")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise BadInput(path, f"{name!r} holds half of a surrogate pair") from error
    return tuple(names)


def _names(path: Path, value: Any) -> list[str]:
    """The names by id that the JSON value of one of the three forms gives."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return value
    if isinstance(value, dict) and all(type(i) is int for i in value.values()):
        return _by_id(path, [(i, name) for name, i in value.items()])
    if isinstance(value, dict) and all(
        isinstance(name, str) and key.isdecimal() and key.isascii() and len(key) < 10
        for key, name in value.items()
    ):
        return _by_id(path, [(int(key), name) for key, name in value.items()])
    raise BadInput(path, "no list of names, and no object name to id or id to name")


def _by_id(path: Path, pairs: Sequence[tuple[int, str]]) -> list[str]:
    ids = dict(pairs)
    if len(ids) != len(pairs):
        raise BadInput(path, "two names share an id")
    if sorted(ids) != list(range(len(ids))):
        raise BadInput(path, f"ids {sorted(ids)} are not 0, 1, 2, ... without gaps")
    return [ids[i] for i in range(len(ids))]
