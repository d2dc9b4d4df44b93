"""Canonical JSON: equal values give equal bytes and equal digests.

Source: `docs/publishing.md#provenance`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from datetime import date
from enum import Enum
from pathlib import PurePath
from typing import Any


def canonical(value: object) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8: equal values give equal bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: object) -> str:
    """Hex sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def config_fields(config: object, affecting_output: bool = False) -> dict[str, Any]:
    """A config dataclass as JSON values.

    config: an instance of a dataclass.
    affecting_output: leave out fields whose metadata say that they cannot change
        the output (`affects_output: False`: workers and the like); default False.
        Where such a field counted in an earlier version, its metadata have
        `counted_before: True`: records of that version stay current. A field of a later
        version with `counted_at_default: False` is left out at its default, as it was not there.

    Raises TypeError for another object or a value that has no JSON form.
    """
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"a config is an instance of a dataclass, not {config!r}")
    values = dataclasses.asdict(config)
    if affecting_output:
        for field in dataclasses.fields(config):
            at_default = getattr(config, field.name) == field.default
            if not field.metadata.get("affects_output", True) or (
                at_default and not field.metadata.get("counted_at_default", True)
            ):
                del values[field.name]
    plain: dict[str, Any] = json.loads(json.dumps(values, default=_plain))
    return plain


def _plain(value: object) -> object:
    """A JSON value for one that has none, the same in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, PurePath | Enum | date):
        return str(value)
    raise TypeError(f"a config holds plain values, paths, dates and sets, not {value!r}")
