"""What is chosen for an asset: by files, for one run in the launchpad, and in what stands."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import dagster as dg
from pydantic import BaseModel, Field, create_model

from gristmill.asset import Asset, declared
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.printable import cut, printable
from gristmill.provenance import Record
from gristmill.settings import tables
from gristmill.settings.fields import FieldRule, equal, rules_of, shown, toml_value
from gristmill.settings.tables import OPTION, Settings, Table
from resources import Lake

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
        kind: Any = str if rule.kind is Path else rule.kind
        if rule.choices:
            # Dagster takes no `Literal` that may be left out and no list of them. Of an enum the UI
            # shows the name beside the field, completes the members' names and refuses all others.
            enum: Any = StrEnum
            kind = enum(" | ".join(rule.choices), {choice: choice for choice in rule.choices})
        fields[rule.name] = ((list[kind] if rule.many else kind) | None, described)
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


_MOST_SHOWN: Final = 120
_LONGEST_LINE: Final = 1000


def config_notes(lake: Lake, record: Record) -> Iterator[Violation]:
    """Yields where what stands differs from what files would choose for the next build."""
    asset, partition = _known().get(record.asset), record.partition or ""
    if asset is None:
        return
    try:
        given = asset.settings(lake, partition)
    except (GristmillError, OSError) as error:
        yield Violation("config", record.artifact, str(error))
        return
    for key, name, rule in asset.choices():
        chosen = given.get(key, rule.default)
        if name not in record.config or equal(record.config[name], chosen):
            continue
        built = record.config[name]
        source, target = asset.place_of_choice(lake, partition, key, given)
        # An empty text is how a file says that a text is not there.
        line = f"{key} = {toml_value('' if built is None else built)}"
        keeps = f"write `{line}` under {target}"
        if built is None and rule.default is None:
            keeps = f"leave {key} out of {target}"
        text = (
            f"built with {key} = {shown(built)}, and {source} gives {shown(chosen)}, which the "
            f"next build takes. To keep {shown(built)}, {keeps}"
        )
        yield Violation("config", record.artifact, cut(printable(text), _LONGEST_LINE))


def config_rows(record: Record) -> dict[str, str]:
    """Returns the config that matters, as text by `config/<key>`, for an event."""
    choices = _known().get(record.asset)
    rows = {}
    for key, name, rule in choices.choices() if choices else ():
        if name not in record.config:
            continue
        value = record.config[name]
        if rule.in_event or not equal(value, rule.default):
            text = "not set" if value is None else _text(value)
            rows[f"config/{key}"] = cut(printable(text), _MOST_SHOWN)
    return rows


def refused_values(run_config: Mapping[str, Any]) -> list[str]:
    """Returns what the launchpad's values of a run break, of all its assets; empty if nothing."""
    refused = []
    for asset, choices in _known().items():
        kind, name = place_in_run(choices)
        values = ((run_config.get(kind) or {}).get(name) or {}).get("config") or {}
        rules = rules_of(choices.settings_table.config) if values else {}
        for key, value in values.items():
            reason = rules[key].refusal(value) if key in rules and value is not None else None
            if reason is not None:
                refused.append(f"{choices.resource or asset}: {key} = {shown(value)}: {reason}")
    return list(dict.fromkeys(refused))


def given_values(asset: str, words: Sequence[str]) -> dict[str, Any]:
    """Returns the settings that a command gives to an asset, checked as those of a file.

    Raises BadInput for a value that is refused, a field that the asset does not have, and an asset
    without settings.
    """
    if not words:
        return {}
    choices = _known().get(asset)
    if choices is None:
        raise BadInput(OPTION, f"{asset} has no settings: leave {OPTION} out")
    table = choices.settings_table
    elsewhere = dict.fromkeys(choices.left_out, f"{asset} takes it from what it is built from")
    not_set = {**table.not_set, **elsewhere}
    return tables.given_values(replace(table, not_set=not_set), words)


def run_config(asset: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the config of a run that has these values, as the launchpad writes it."""
    if not values:
        return {}
    kind, name = place_in_run(_known()[asset])
    listed = {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }
    return {kind: {name: {"config": listed}}}


def refused_files(lake: Lake, assets: Iterable[str]) -> list[str]:
    """Returns why `gristmill.toml` of a data root is refused for some assets; empty if not."""
    refused = []
    for asset in assets:
        if (choices := _known().get(asset)) is None:
            continue
        try:
            table = choices.settings_table
            _check_together(table, lake.settings(table.name))
        except GristmillError as error:
            refused.append(str(error))
    return list(dict.fromkeys(refused))


def _check_together(table: Table, settings: Settings) -> None:
    """Raise BadInput if values that are right by themselves do not fit together."""
    # A field without a default is filled in by the asset.
    needed = {rule.name: rule.kind() for rule in rules_of(table.config).values() if rule.needed}
    known = {name: value for name, value in settings.items() if name in rules_of(table.config)}
    try:
        table.config(**{**needed, **table.defaults, **known})
    except ValueError as error:
        raise BadInput(settings.file, f"{table.header} {error}") from error


@cache
def _known() -> Mapping[str, Asset]:
    """The assets that have a config, by key."""
    return {name: asset for name, asset in declared().items() if asset.table is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else toml_value(value)
