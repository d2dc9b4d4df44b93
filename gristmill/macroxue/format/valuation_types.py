"""valuation_types.json: which name each `valuation_type` id of a pack stands for."""

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
"""A pack with more names is refused, as the Rust packer refuses it (docs/formats/macroxue.md#valuation-types)."""


def write_valuation_types(path: Path, names: Sequence[str], form: EnumForm = "list") -> None:
    """Write the names by id.

    form: "list" is index -> name as the prose of the original document says, right for both Python
        readers of packs; "object" is the Rust packer's name -> id, keys in id
        order, which its merge needs but the training collate misreads (docs/formats/macroxue.md#valuation-types).
    """
    value: Any = list(names) if form == "list" else {name: i for i, name in enumerate(names)}
    path.write_bytes(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _by_id(path: Path, ids: dict[int, str]) -> list[str]:
    if sorted(ids) != list(range(len(ids))):
        raise BadInput(path, f"ids {sorted(ids)} are not 0, 1, 2, ... without gaps")
    return [ids[i] for i in range(len(ids))]


def read_valuation_types(path: Path) -> tuple[str, ...]:
    """Names by id, from any form in use: list, object name -> id, object id -> name.

    Raises BadInput naming the file where ids have gaps or repeat, names repeat,
    or there are more than 255.
    """
    if not path.is_file():
        raise BadInput(path, "there is no such file: valuation_type ids are per pack, keep it")
    try:
        value = json.loads(path.read_bytes(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not the JSON of an enum: {error}") from error
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        names = value
    elif isinstance(value, dict) and all(type(i) is int for i in value.values()):
        if len(set(value.values())) != len(value):
            raise BadInput(path, "two names share an id")
        names = _by_id(path, {i: name for name, i in value.items()})
    elif isinstance(value, dict) and all(
        isinstance(name, str) and key.isdecimal() and key.isascii() and len(key) < 10
        for key, name in value.items()
    ):
        if len({int(key) for key in value}) != len(value):
            raise BadInput(path, "two names share an id")
        names = _by_id(path, {int(key): name for key, name in value.items()})
    else:
        raise BadInput(path, "neither a list of names nor an object name -> id or id -> name")
    if not names or len(set(names)) != len(names) or len(names) > MAX_NAMES:
        raise BadInput(path, f"needs 1 to {MAX_NAMES} names, each once")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise BadInput(path, f"{name!r} holds half of a surrogate pair") from error
    return tuple(names)
