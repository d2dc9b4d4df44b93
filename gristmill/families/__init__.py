"""The families, and what each of them can say about its artifacts.

`FAMILIES` is the one list of families. `gristmill/<family>/family.py` holds a `Catalog`: which
laws, tables, traces and sample drops belong to which asset. It is imported when it is asked for,
and it imports what a family needs when that is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.code.digest import Code
from gristmill.contract import Violation
from gristmill.families.kinds import (
    Column,
    Forgets,
    Kind,
    Misuse,
    Option,
    PartitionFile,
    Request,
    Source,
    TestsSeen,
    Unit,
)
from gristmill.inbox.listing import DropKind
from gristmill.laws import Law, Subject, run
from gristmill.settings.tables import (
    ALERTS,
    HISTORY_TABLE,
    INBOX,
    LEAKS,
    MIRROR,
    RUN,
    Table,
    inbox_table,
)

FAMILIES: Final = ("macroxue", "synth", "chess", "reasoning", "puzzles")
_SHARED: Final = "tokenizers"
"""The package whose catalog several families use."""


@dataclass(frozen=True)
class Catalog:
    """What one family can say about its artifacts.

    kinds: one for each asset.
    asset_of: the asset of a folder that has no provenance record, None for a folder of no asset
        of the family; by the files in it.
    options: of `gristmill show` and `gristmill trace`.
    samples: path below `drops/` -> function that writes the sample drop to a path.
    place_of: takes the path of what is in an inbox, or will be, and returns its place. Of several
        drops with one place only one can be used, so that no sample is written beside another drop
        of its place. Default: the path.
    settings: the tables of `gristmill.toml` beside those of its assets.
    commands: name -> group (`cli.GROUPS`) and line of help of the family's own commands,
        which are click commands of the same name in `gristmill/<family>/commands.py` and need no
        Dagster.
    columns: takes the key of one of its assets and returns the columns of its artifacts.
    sources: what arrives in each of its inboxes.
    others: kinds of folders that no asset makes, but that the family can show. `asset_of` may
        return their keys.
    facts: takes the key of a kind and a folder, and yields what is in the folder, a line each:
        files, numbers of rows, shapes, types, ranges, splits.
    tables: takes the key of a kind, a folder, and what is known of its files; yields the tables of
        rows in it, each a `gristmill.browse.source.Stored`, the main one first.
    splits: takes the key of an asset and a folder; yields its rows as other programs read them,
        each a `gristmill.exports.table.Split`.
    talks: the same of its conversations, each a `gristmill.exports.messages.Talks`.
    forgets: how rows of drops are forgotten, made when it is asked for, by the inbox.
    """

    kinds: Sequence[Kind]
    asset_of: Callable[[Path], str | None]
    options: Sequence[Option] = ()
    samples: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    place_of: Callable[[Path], str] = str
    settings: Sequence[Table] = ()
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    columns: Callable[[str], Sequence[Column]] = lambda _: ()
    sources: Sequence[Source] = ()
    others: Sequence[Kind] = ()
    facts: Callable[[str, Path], Iterable[str]] = lambda *_: ()
    tables: Callable[[str, Path, Any], Iterable[Any]] = lambda *_: ()
    splits: Callable[[str, Path], Iterable[Any]] = lambda *_: ()
    talks: Callable[[str, Path], Iterable[Any]] = lambda *_: ()
    forgets: Mapping[str, Callable[[], Forgets]] = field(default_factory=dict)

    def drops(self) -> dict[str, DropKind]:
        """What its drops are, by the name of the inbox."""
        return {source.inbox: source.drop for source in self.sources}


@cache
def catalog(family: str) -> Catalog:
    """The catalog of a family, or of the tokenizers. Raises TypeError where its module has none."""
    found = import_module(f"gristmill.{family}.family").CATALOG
    if not isinstance(found, Catalog):
        raise TypeError(f"gristmill/{family}/family.py: CATALOG must be a Catalog, not {found!r}")
    return found


def catalogs() -> Iterator[Catalog]:
    """The catalogs of all families, in the order of `FAMILIES`, and that of the tokenizers."""
    return map(catalog, (*FAMILIES, _SHARED))


def _catalogs_for(name: str) -> Iterator[Catalog]:
    """All catalogs, each imported when it is asked for; that which a name begins with comes first.

    name: of an asset or an inbox.
    """
    if (first := name.partition("/")[0]) in FAMILIES:
        yield catalog(first)
    yield from catalogs()


@cache
def tables() -> Mapping[str, Table]:
    """The tables of `gristmill.toml` by name: those of no family, then the families'."""
    of_inboxes = map(inbox_table, inboxes())
    of_families = (
        table
        for each in catalogs()
        for table in (*each.settings, *(kind.table for kind in each.kinds))
        if table is not None
    )
    of_none = (RUN, MIRROR, HISTORY_TABLE, INBOX, *of_inboxes, ALERTS, LEAKS)
    return {table.name: table for table in (*of_none, *of_families)}


@cache
def inboxes() -> Mapping[str, DropKind]:
    """What the drops of each inbox are, by its name."""
    return {name: kind for each in catalogs() for name, kind in each.drops().items()}


def inboxes_of(family: str) -> Mapping[str, DropKind]:
    """What the drops of each inbox of a family are; empty for another name."""
    return catalog(family).drops() if family in FAMILIES else {}


def forgets(inbox: str) -> Forgets | None:
    """How rows of the drops of an inbox are forgotten; None where they cannot be."""
    made = next((each.forgets[inbox] for each in catalogs() if inbox in each.forgets), None)
    return made() if made else None


def drop_kind(inbox: str) -> DropKind:
    """What the drops of an inbox are. Raises KeyError where no family has it."""
    drops = next((each.drops() for each in _catalogs_for(inbox) if inbox in each.drops()), {})
    return drops[inbox]


class OwnCommand(NamedTuple):
    """A command of a family: its module, its group in the help, and its line there."""

    module: str
    group: str
    line: str


def commands() -> dict[str, OwnCommand]:
    """The families' own commands by name."""
    return {
        name: OwnCommand(f"gristmill.{family}.commands", group, line)
        for family in FAMILIES
        for name, (group, line) in catalog(family).commands.items()
    }


def kind_of_asset(asset: str) -> Kind | None:
    """The kind of an asset's artifacts, None where no family knows the asset."""
    every = (kind for each in _catalogs_for(asset) for kind in each.kinds)
    return next((kind for kind in every if kind.asset == asset), None)


def has_partitions(asset: str) -> bool:
    """Whether a command that builds an asset names a partition; True for an unknown asset."""
    kind = kind_of_asset(asset)
    return kind is None or bool(kind.partitions)


def other_kind(asset: str) -> Kind | None:
    """The kind of folders that no asset makes, by its key; None where no family has it."""
    return next((kind for each in catalogs() for kind in each.others if kind.asset == asset), None)


def columns_of(asset: str) -> Sequence[Column]:
    """The columns of an asset's artifacts, none where they are no tables or no family knows it."""
    for each in catalogs():
        if any(kind.asset == asset for kind in each.kinds):
            return each.columns(asset)
    return ()


def code_of_asset(asset: str) -> Code:
    """The code of an asset's builder; no modules where no family knows the asset."""
    kind = kind_of_asset(asset)
    return kind.code if kind else Code()


def excused(asset: str, config: Mapping[str, Any]) -> list[str]:
    """The laws and rules of an asset that a config leaves to the readers, each with the setting."""
    kind = kind_of_asset(asset)
    return [line for law in (kind.laws if kind else ()) for line in law.excused(config)]


def check(asset: str, subject: Subject) -> Iterator[Violation]:
    """Yield what `subject`, an artifact of `asset`, breaks; nothing where no laws are known."""
    kind = kind_of_asset(asset) or other_kind(asset)
    return run(kind.laws if kind else (), subject)


def facts_of(asset: str, folder: Path) -> Iterator[str]:
    """Yield what is in a folder of an asset's kind, a line each; nothing for an unknown asset."""
    for each in catalogs():
        if any(kind.asset == asset for kind in (*each.kinds, *each.others)):
            yield from each.facts(asset, folder)


def splits_of(asset: str, folder: Path) -> Iterator[Any]:
    """Yield the rows in a folder of an asset's artifacts as `Catalog.splits`; none for others."""
    for each in catalogs():
        if any(kind.asset == asset for kind in each.kinds):
            yield from each.splits(asset, folder)


def talks_of(asset: str, folder: Path) -> Iterator[Any]:
    """Yield the conversations in a folder as `Catalog.talks`; none for other assets."""
    for each in catalogs():
        if any(kind.asset == asset for kind in each.kinds):
            yield from each.talks(asset, folder)


def options_of(asset: str, command: str) -> dict[str, Option]:
    """The options of `gristmill <command>` that the family of an asset takes, by name."""
    return {
        option.name: option
        for each in catalogs()
        if any(kind.asset == asset for kind in (*each.kinds, *each.others))
        for option in each.options
        if command in option.commands
    }


def options(command: str) -> list[Option]:
    """The options of all families for `gristmill <command>`; equal names are one option."""
    merged: dict[str, Option] = {}
    for option in (option for each in catalogs() for option in each.options):
        if command in option.commands:
            known = merged.get(option.name)
            merged[option.name] = option if known is None else _joined(known, option)
    return list(merged.values())


def _joined(one: Option, other: Option) -> Option:
    if (one.type, one.default, one.least) != (other.type, other.default, other.least):
        raise ValueError(f"two families define the option --{one.name} differently")
    return replace(
        one,
        help=" ".join(dict.fromkeys((one.help, other.help))),
        # Where one family takes any value, the command cannot know the values.
        choices=tuple(dict.fromkeys((*one.choices, *other.choices)))
        if one.choices and other.choices
        else (),
    )
