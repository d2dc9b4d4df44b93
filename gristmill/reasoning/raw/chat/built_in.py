"""The recipes of conversations that are built in. Source: `docs/formats/chat.md#synth`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from gristmill.settings.fields import did_you_mean, shown

SYNTH: Final = "synth"
"""The columns of SYNTH. Its texts, ids, shards and splits are those of the family `synth`."""
_FILES: Final = {SYNTH: Path(__file__).parents[2] / "chats/synth.toml"}
_OWN: Final = (
    *("messages", "prompt", "completion", "tree", "marks", "keys", "roles", "system"),
    *("thinking", "tools", "broken", "branch", "unknown_keys", "dedup", "sample"),
)
"""Keys that a recipe does not have beside the name of a built-in one."""


@cache
def _built_in(name: str) -> Mapping[str, Any]:
    return tomllib.loads(_FILES[name].read_text("utf-8"))


def check_built_in(raw: Mapping[str, Any]) -> None:
    """Check what a recipe has beside the name of a built-in one, if it names one."""
    if (name := raw.get("recipe")) is None:
        return
    if name not in [*_FILES]:
        known = " or ".join(_FILES)
        hint = did_you_mean(name, _FILES) if isinstance(name, str) else ""
        raise ValueError(f"recipe = {shown(name)}{hint}: must be {known}")
    said = f'recipe = "{name}"'
    if other := [key for key in _OWN if key in raw]:
        raise ValueError(f"{other[0]}: {said} says how rows are read: leave one of both out")
    split = raw.get("split")
    if isinstance(split, Mapping) and (other := [key for key in ("by", "seed") if key in split]):
        rule = "divides conversations by the hash of their ids: leave it out"
        raise ValueError(f"split.{other[0]}: {said} {rule}")


def expanded(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe with the keys of the built-in one that it names; its own take their place.

    raw: a table that was checked. Of `turns` each value stands for itself. Files that name their
    splits need no rule for splits.
    """
    if "recipe" not in raw:
        return raw
    built_in = _built_in(raw["recipe"])
    made = {**built_in, **raw}
    if isinstance(raw.get("turns"), Mapping):
        made["turns"] = {**built_in["turns"], **raw["turns"]}
    if "files" in raw and "split" not in raw:
        del made["split"]
    return made
