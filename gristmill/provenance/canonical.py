"""Canonical JSON: equal values give equal bytes and equal digests."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from datetime import date
from enum import Enum
from pathlib import PurePath
from typing import Any

from gristmill.settings.fields import Checked
from gristmill.settings.kinds import ADDED_LATER, NO_EFFECT, fields_with


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
    affecting_output: leave out fields that cannot change the output (`NO_EFFECT`: workers and the
        like), and those that came later (`ADDED_LATER`) while they have their default, which is
        how it was before; default False.

    Raises TypeError for another object or a value that has no JSON form.
    """
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"a config is an instance of a dataclass, not {config!r}")
    values = config.recorded() if isinstance(config, Checked) else dataclasses.asdict(config)
    if affecting_output:
        later, without = (
            fields_with(type(config), ADDED_LATER),
            fields_with(type(config), NO_EFFECT),
        )
        for field in dataclasses.fields(config):
            unchanged = field.name in later and values[field.name] == field.default
            if unchanged or field.name in without:
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
