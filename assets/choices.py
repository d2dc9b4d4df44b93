"""What is chosen for an asset: by files, for one run in the launchpad, and in what stands.

`assets/<family>/choices.py` says for each asset which table of `gristmill.toml` it reads, and
which file has it. See also `configs.py`: how a value is looked up for a build.
Source: docs/configuration.md#a-choice-lasts-one-run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from gristmill import families
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.printable import cut, printable
from gristmill.provenance import Record
from gristmill.publish.build import Published
from gristmill.settings import given
from gristmill.settings.fields import FieldRule, equal, rules_of, shown, toml_value, without_effect
from gristmill.settings.tables import Settings, Table
from resources import Lake

_MOST_SHOWN: Final = 120
_LONGEST_LINE: Final = 1000


@dataclass(frozen=True)
class Choices:
    """Where the config of an asset's partitions is chosen.

    table: name of the table in `gristmill.toml`, as `macroxue/pack`.
    settings: takes the data root and a partition; returns what files give for it. Raises
        GristmillError if a file is refused or gone.
    fields: names of fields in records, by key of the table, where they differ; default none.
    left_out: keys that this asset does not take from files; default none.
    resource: key of the resource that has the launchpad's values; default none, the asset's own.
    place: takes the data root, a partition, a key and what files give; returns what gives the
        value, and where a person writes another one. Default: the file of the settings.
    """

    table: str
    settings: Callable[[Lake, str], Settings]
    fields: Mapping[str, str] = field(default_factory=dict)
    left_out: Collection[str] = ()
    resource: str = ""
    place: Callable[[Lake, str, str, Settings], tuple[str, str]] | None = None

    def rules(self) -> Iterator[tuple[str, str, FieldRule]]:
        """Yields key of the table, field of the record, and rule of what can change the output."""
        table = families.tables()[self.table]
        skipped = {*without_effect(table.config), *self.left_out}
        for key, rule in table.rules(in_root=False).items():
            if key not in skipped:
                yield key, self.fields.get(key, key), rule

    def launchpad(self, asset: str) -> tuple[str, str]:
        """Returns where the config of a run has the values: `ops` or `resources`, and a name."""
        return ("resources", self.resource) if self.resource else ("ops", asset.replace("/", "__"))

    def places(self, lake: Lake, partition: str, key: str, given: Settings) -> tuple[str, str]:
        """Returns what gives a value, and where a person writes another one.

        lake: the data root.
        partition: of the artifact.
        key: of the table.
        given: what files give.
        """
        if self.place is not None:
            return self.place(lake, partition, key, given)
        source = str(given.file) if key in given else "the default"
        return source, f"{families.tables()[self.table].header} in {given.file}"


@dataclass(frozen=True)
class _Difference:
    """One field of a record that differs from another record or from what files give."""

    key: str
    rule: FieldRule
    recorded: Any
    other: Any

    def advice(self, value: Any, target: str) -> str:
        """How a file is changed so that the field has a value."""
        if value is None and self.rule.default is None:
            return f"leave {self.key} out of {target}"
        # An empty text is how a file says that a text is not there.
        line = f"{self.key} = {toml_value('' if value is None else value)}"
        return f"write `{line}` under {target}"


def configured() -> frozenset[str]:
    """Returns the keys of the assets that have a config."""
    return frozenset(_known())


def data_root(published: Published) -> Path:
    """Returns the data root that an artifact is published in.

    published: the published artifact.
    """
    return published.folder.absolute().parents[len(Path(published.record.artifact).parts) - 1]


def change_lines(published: Published) -> list[str]:
    """Returns what changed in the config against the record that stood, one line for each field.

    published: the published artifact; a partition that was not built again has no lines.

    A line names the line of `gristmill.toml` that keeps what was chosen for one run: the new value
    if files give another one, else the value that stood.
    """
    record, choices = published.record, _known().get(published.record.asset)
    if published.before is None or choices is None:
        return []
    changed = list(_differences(choices, published.before.config, record.config))
    if not changed:
        return []
    lake, partition = Lake(data_root=str(data_root(published))), record.partition or ""
    given = _given(lake, choices, record)
    lines = []
    for item in changed:
        was, now = shown(item.recorded), shown(item.other)
        line = f"{item.key} was {was}, now {now}: "
        if isinstance(given, str):
            lines.append(
                cut(
                    printable(f"{line}the files that choose it cannot be read: {given}"),
                    _LONGEST_LINE,
                )
            )
            continue
        source, target = choices.places(lake, partition, item.key, given)
        if equal(item.other, given.get(item.key, item.rule.default)):
            again = item.advice(item.recorded, target)
            line += f"{source} gives {now}. To have {was} again, {again}, and build again"
        else:
            stay = item.advice(item.other, target)
            line += f"chosen for this run alone. To make it stay, {stay}"
        lines.append(cut(printable(line), _LONGEST_LINE))
    return lines


def config_notes(lake: Lake, record: Record) -> Iterator[Violation]:
    """Yields where what stands differs from what files would choose for the next build.

    lake: the data root.
    record: a published record, of any asset.
    """
    choices = _known().get(record.asset)
    if choices is None:
        return
    given = _given(lake, choices, record)
    if isinstance(given, str):
        yield Violation("config", record.artifact, given)
        return
    values = {name: given.get(key, rule.default) for key, name, rule in choices.rules()}
    for item in _differences(choices, record.config, values):
        built, chosen = shown(item.recorded), shown(item.other)
        source, target = choices.places(lake, record.partition or "", item.key, given)
        text = (
            f"built with {item.key} = {built}, and {source} gives {chosen}, which the next build "
            f"takes. To keep {built}, {item.advice(item.recorded, target)}"
        )
        yield Violation("config", record.artifact, cut(printable(text), _LONGEST_LINE))


def config_rows(record: Record) -> dict[str, str]:
    """Returns the config that matters, as text by `config/<key>`, for an event.

    These are the fields that events always show (`in_event`), and those that are not at their
    default. Numbers are texts, so that the UI plots no constant.
    """
    choices = _known().get(record.asset)
    rows = {}
    for key, name, rule in choices.rules() if choices else ():
        if name not in record.config:
            continue
        value = record.config[name]
        if rule.in_event or not equal(value, rule.default):
            text = "not set" if value is None else _text(value)
            rows[f"config/{key}"] = cut(printable(text), _MOST_SHOWN)
    return rows


def refused_values(run_config: Mapping[str, Any]) -> list[str]:
    """Returns what the launchpad's values of a run break, of all its assets; empty if nothing.

    Dagster has compared types and choices before the run starts, but knows no ranges.
    """
    refused = []
    for asset, choices in _known().items():
        kind, name = choices.launchpad(asset)
        values = ((run_config.get(kind) or {}).get(name) or {}).get("config") or {}
        rules = rules_of(families.tables()[choices.table].config) if values else {}
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
        raise BadInput(given.OPTION, f"{asset} has no settings: leave {given.OPTION} out")
    table = families.tables()[choices.table]
    elsewhere = dict.fromkeys(choices.left_out, f"{asset} takes it from what it is built from")
    not_set = {**table.not_set, **elsewhere}
    return given.given_values(replace(table, not_set=not_set), words)


def run_config(asset: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the config of a run that has these values, as the launchpad writes it.

    asset: key of the asset.
    values: as `given_values` returns them; none for a run that chooses nothing.
    """
    if not values:
        return {}
    kind, name = _known()[asset].launchpad(asset)
    listed = {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }
    return {kind: {name: {"config": listed}}}


def refused_files(lake: Lake, assets: Iterable[str]) -> list[str]:
    """Returns why `gristmill.toml` of the data root is refused for some assets; empty if it is not.

    lake: the data root.
    assets: keys of the assets whose tables are read.
    """
    refused = []
    for asset in assets:
        if (choices := _known().get(asset)) is None:
            continue
        try:
            settings = lake.settings(choices.table)
            _check_together(families.tables()[choices.table], settings)
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
def _known() -> Mapping[str, Choices]:
    """The choices of all families, by the key of the asset."""
    found: dict[str, Choices] = {}
    for name in families.FAMILIES:
        # By name: the assets of a family import the modules that import this one.
        found.update(import_module(f"assets.{name}").FAMILY.choices)
    return found


def _given(lake: Lake, choices: Choices, record: Record) -> Settings | str:
    """What files give for a partition, or why they are refused."""
    try:
        return choices.settings(lake, record.partition or "")
    except (GristmillError, OSError) as error:
        return str(error)


def _differences(
    choices: Choices, recorded: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[_Difference]:
    for key, name, rule in choices.rules():
        if name in recorded and name in other and not equal(recorded[name], other[name]):
            yield _Difference(key, rule, recorded[name], other[name])


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else toml_value(value)
