"""Builder configs as Dagster shows them, and where their values come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import dagster as dg
from pydantic import BaseModel, Field, create_model

from gristmill.contract import BadInput

Config = TypeVar("Config")


_TOLD = "What is left out here is taken from gristmill.toml, else from the default that is named."


def launchpad(
    config: type[Any],
    base: type[Any] = dg.Config,
    *,
    leave_out: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    name: str = "",
) -> type[Any]:
    """A Dagster config with the fields of a builder's config dataclass, all optional.

    base: `dg.ConfigurableResource` for choices that several assets of a run share.
    A field that is left out in the launchpad is taken from `gristmill.toml`,
    else from the asset's `defaults`, else from the builder's default; the field's
    description names which it is.

    leave_out: fields that the asset fills in itself. name: of the config's type,
        where several assets have one of the same builder.
    """
    hints = get_type_hints(config)
    fields: dict[str, Any] = {}
    for spec in dataclasses.fields(config):
        if spec.name in leave_out:
            continue
        default = (defaults or {}).get(spec.name, spec.default)
        described = Field(default=None, description=_described(spec, hints[spec.name], default))
        fields[spec.name] = (_plain(hints[spec.name]) | None, described)
    made: type[Any] = create_model(name or f"{config.__name__}Run", __base__=base, **fields)
    made.__doc__ = _TOLD  # shown beside the launchpad
    return made


def _described(spec: dataclasses.Field[Any], hint: Any, default: object) -> str:
    """What the launchpad says about a field: its help, its choices, its default."""
    sentences = [str(spec.metadata["help"])] if "help" in spec.metadata else []
    choices = get_args(hint) if get_origin(hint) is Literal else spec.metadata.get("choices", ())
    if choices:
        sentences.append(f"One of {', '.join(map(repr, choices))}.")
    return " ".join([*sentences, f"default: {default!r}"])


def resolve(config: type[Config], settings: Mapping[str, Any], run: BaseModel) -> Config:
    """The builder's config: what the run says, else the settings, else the defaults.

    Raises BadInput where the settings name a field that the config has not, or
    a value that it refuses.
    """
    known = {spec.name for spec in dataclasses.fields(config)}  # type: ignore[arg-type]
    if unknown := sorted(set(settings) - known):
        raise BadInput(
            "gristmill.toml", f"unknown setting {unknown[0]!r}, known are {sorted(known)}"
        )
    values = {**settings, **said(run)}
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        raise BadInput("configuration", f"{values}: {error}") from error


def said(run: BaseModel) -> dict[str, Any]:
    """What the run itself chose, by field."""
    return {name: value for name, value in run.model_dump().items() if value is not None}


def _plain(hint: Any) -> Any:
    """The type that Dagster's config can take in place of a field's type."""
    if get_origin(hint) is Literal:
        return type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return _plain(next(item for item in get_args(hint) if item is not NoneType))
    if get_origin(hint) is tuple:
        return list[get_args(hint)[0]]  # type: ignore[misc]
    return hint
