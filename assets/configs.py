"""Builder configs in the launchpad; `gristmill/settings/tables.py` looks their values up."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import dagster as dg
from pydantic import BaseModel, Field, create_model

from gristmill.asset import Asset
from gristmill.printable import printable
from gristmill.settings.fields import FieldRule, rules_of

_LAUNCHPAD_HELP = (
    "A field that is left out here gets its value from gristmill.toml, else the default named "
    "beside it. A value that is chosen here lasts one run: write it into gristmill.toml to keep it."
)

_PASTE: Final = (
    "Paste the block into the launchpad. Keep the lines that this run shall choose, and delete the "
    "others: a field that is left out gets its value from gristmill.toml, else the default."
)
_COMMENT: Final = "      # "


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
    for rule in _offered(config, leave_out, defaults or {}):
        described = Field(default=None, description=rule.sentences)
        fields[rule.name] = (_launchpad_type(rule) | None, described)
    model: type[Any] = create_model(name or f"{config.__name__}Run", __base__=base, **fields)
    model.__doc__ = _LAUNCHPAD_HELP  # the UI shows it beside the launchpad
    return model


def launchpad_text(asset: Asset) -> str:
    """Returns what the launchpad of an asset may hold, as YAML to paste: all fields, as Markdown.

    Each field has its default, below its sentence. Dagster fills a launchpad with the defaults of
    its schema, without sentences, and gives them to the runs of sensors, too: `gristmill.toml`
    would never be read. So the schema has none, and the page of the asset has this.
    """
    table = asset.settings_table
    kind, name = place_in_run(asset)
    lines = [f"{kind}:", f"  {name}:", "    config:"]
    for rule in _offered(table.config, asset.filled_in, table.defaults):
        sentences = " ".join(printable(rule.sentences).split())
        lines += wrap(sentences, 92, initial_indent=_COMMENT, subsequent_indent=_COMMENT)
        default = str(rule.default) if isinstance(rule.default, Path) else rule.default
        # JSON is YAML.
        lines.append(f"      {rule.name}: {json.dumps(default, ensure_ascii=False)}")
    block = "\n".join(lines)
    return f"{_PASTE}\n\n```yaml\n{block}\n```\n"


def place_in_run(asset: Asset) -> tuple[str, str]:
    """Where the config of a run has the values: `ops` or `resources`, and a name."""
    if asset.resource:
        return "resources", asset.resource
    return "ops", asset.asset.replace("/", "__")


def _offered(
    config: type[Any], leave_out: Collection[str], defaults: Mapping[str, Any]
) -> Iterator[FieldRule]:
    """The fields that a launchpad has, with the defaults of the asset."""
    for rule in rules_of(config).values():
        if rule.name not in leave_out:
            yield replace(rule, default=defaults.get(rule.name, rule.default))


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
