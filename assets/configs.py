"""Builder configs in the launchpad; `gristmill/settings/resolve.py` looks their values up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field, create_model

from gristmill.settings.fields import FieldRule, rules_of

_LAUNCHPAD_HELP = (
    "A field that is left out here gets its value from gristmill.toml, else the default named "
    "beside it. A value that is chosen here lasts one run: write it into gristmill.toml to keep it."
)


def launchpad(
    config: type[Any],
    base: type[Any] = dg.Config,
    *,
    leave_out: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    name: str = "",
) -> type[Any]:
    """Returns a Dagster config class with the fields of a builder's config, all optional.

    A field that is left out in the launchpad gets its value from `gristmill.toml`, else from
    `defaults`, else from the builder's default. The field's description is its help sentence, what
    is allowed, the unit and the default. A wrong choice, type or key is refused before the run
    starts; Dagster knows no ranges, so `resolve` refuses those.

    config: the builder's config dataclass.
    base: class to derive from; `dg.ConfigurableResource` for choices that several assets of a
        run share. Default `dg.Config`.
    leave_out: names of fields that the asset fills in itself; default none.
    defaults: values of the asset that replace the builder's defaults, by field; default none.
    name: name of the returned class; default the name of `config` with `Run` after it. Needed
        where several assets use the same builder.
    """
    fields: dict[str, Any] = {}
    for rule in rules_of(config).values():
        if rule.name in leave_out:
            continue
        shown_rule = replace(rule, default=(defaults or {}).get(rule.name, rule.default))
        described = Field(default=None, description=shown_rule.sentences)
        fields[rule.name] = (_launchpad_type(rule) | None, described)
    model: type[Any] = create_model(name or f"{config.__name__}Run", __base__=base, **fields)
    model.__doc__ = _LAUNCHPAD_HELP  # the UI shows it beside the launchpad
    return model


def chosen_values(run: BaseModel) -> dict[str, Any]:
    """Returns the values that the run itself sets, by field."""
    return {name: _plain(value) for name, value in run.model_dump().items() if value is not None}


def _plain(value: Any) -> Any:
    """A value of the launchpad as files have it: choices are texts."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


def _launchpad_type(rule: FieldRule) -> Any:
    """The type that Dagster's config accepts for a field."""
    kind: Any = str if rule.kind is Path else rule.kind
    if rule.choices:
        # Dagster takes no `Literal` that may be left out and no list of them. Of an enum the UI
        # shows the name beside the field, completes the members' names and refuses all others.
        enum: Any = StrEnum
        kind = enum(" | ".join(rule.choices), {choice: choice for choice in rule.choices})
    return list[kind] if rule.many else kind
