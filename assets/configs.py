"""Builder configs in the launchpad, and the order in which their values are looked up."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import dagster as dg
from pydantic import BaseModel, Field, create_model

from gristmill.contract import BadInput
from gristmill.settings.fields import rules_of, shown
from gristmill.settings.tables import Settings

Config = TypeVar("Config")


_LAUNCHPAD_HELP = (
    "A field that is left out here gets its value from gristmill.toml, else the default named "
    "beside it."
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
    `defaults`, else from the builder's default. The field's description names the default.

    config: the builder's config dataclass.
    base: class to derive from; `dg.ConfigurableResource` for choices that several assets of a
        run share. Default `dg.Config`.
    leave_out: names of fields that the asset fills in itself; default none.
    defaults: values of the asset that replace the builder's defaults, by field; default none.
    name: name of the returned class; default the name of `config` with `Run` after it. Needed
        where several assets use the same builder.
    """
    hints = get_type_hints(config)
    fields: dict[str, Any] = {}
    for spec in dataclasses.fields(config):
        if spec.name in leave_out:
            continue
        default = (defaults or {}).get(spec.name, spec.default)
        described = Field(default=None, description=_described(spec, hints[spec.name], default))
        fields[spec.name] = (_launchpad_type(hints[spec.name]) | None, described)
    model: type[Any] = create_model(name or f"{config.__name__}Run", __base__=base, **fields)
    model.__doc__ = _LAUNCHPAD_HELP  # the UI shows it beside the launchpad
    return model


def _described(spec: dataclasses.Field[Any], hint: Any, default: object) -> str:
    """The description of a field in the launchpad: its help, its choices, its default."""
    sentences = [str(spec.metadata["help"])] if "help" in spec.metadata else []
    choices = get_args(hint) if get_origin(hint) is Literal else spec.metadata.get("choices", ())
    if choices:
        sentences.append(f"One of {', '.join(map(repr, choices))}.")
    return " ".join([*sentences, f"default: {default!r}"])


def resolve(
    config: type[Config],
    settings: Settings,
    run: BaseModel,
    *,
    defaults: Mapping[str, Any] | None = None,
    filled_in: Mapping[str, Any] | None = None,
) -> Config:
    """Returns the builder's config: values of the run, else of the settings, else the defaults.

    config: the builder's config dataclass.
    settings: values from `gristmill.toml`, by field. Keys that are no fields of `config` belong
        to the asset, and are left out.
    run: the launchpad's config; a field that is None counts as left out.
    defaults: values of the asset that replace the builder's defaults, by field; default none.
    filled_in: values that the asset fills in itself; the run's come before them. Default none.

    Raises BadInput if the config refuses a value, naming the file if all values come from it.
    """
    rules = rules_of(config)
    chosen = chosen_values(run)
    given = {**settings, **(filled_in or {}), **chosen}
    values = {**(defaults or {}), **given}
    values = {name: rules[name].normal(value) for name, value in values.items() if name in rules}
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        listed = ", ".join(f"{name} = {shown(value)}" for name, value in given.items())
        place = settings.file if settings and not chosen else "configuration"
        raise BadInput(place, f"{error} (given: {listed})") from error


def chosen_values(run: BaseModel) -> dict[str, Any]:
    """Returns the values that the run itself sets, by field."""
    return {name: value for name, value in run.model_dump().items() if value is not None}


def _launchpad_type(hint: Any) -> Any:
    """The type that Dagster's config accepts for a field with this type hint."""
    if get_origin(hint) is Literal:
        return type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return _launchpad_type(next(item for item in get_args(hint) if item is not NoneType))
    if get_origin(hint) is tuple:
        return list[get_args(hint)[0]]  # type: ignore[misc]
    return hint
