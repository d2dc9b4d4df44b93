"""The order in which the values of a builder's config are looked up.

Source: docs/configuration.md#a-choice-lasts-one-run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from gristmill.contract import BadInput
from gristmill.settings.fields import rules_of, shown
from gristmill.settings.tables import Settings

Config = TypeVar("Config")


def resolve(
    config: type[Config],
    settings: Settings,
    chosen: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    filled_in: Mapping[str, Any] | None = None,
) -> Config:
    """Returns the builder's config: chosen values, else those of the settings, else the defaults.

    config: the builder's config dataclass.
    settings: values from `gristmill.toml`, by field. Keys that are no fields of `config` belong
        to the asset, and are left out.
    chosen: values for one build, by field.
    defaults: values of the asset that replace the builder's defaults, by field; default none.
    filled_in: values that the asset fills in itself; chosen ones come before them. Default none.

    Raises BadInput if the config refuses a value, naming the file if all values come from it.
    """
    rules = rules_of(config)
    given = {**settings, **(filled_in or {}), **chosen}
    values = {**(defaults or {}), **given}
    values = {name: rules[name].normal(value) for name, value in values.items() if name in rules}
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        listed = ", ".join(f"{name} = {shown(value)}" for name, value in given.items())
        place = settings.file if settings and not chosen else "configuration"
        raise BadInput(place, f"{error} (given: {listed})") from error
