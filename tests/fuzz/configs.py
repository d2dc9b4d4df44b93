"""The configs of all builders, each under a table of `gristmill.toml`."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

from gristmill.families import FAMILIES


def _configs() -> dict[str, type[Any]]:
    found = {}
    for family in FAMILIES:
        module = import_module(f"gristmill.{family}.config")
        for name, value in sorted(vars(module).items()):
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                found[f"{family}/{name}"] = value
    return found


CONFIGS = _configs()
