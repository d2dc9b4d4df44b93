"""The families, and what each of them can say about its artifacts.

`FAMILIES` is the one list of families. `gristmill/<family>/family.py` holds a `Catalog`: which
laws, views, traces and sample drops belong to which asset. It is imported when it is asked for,
and it imports what a family needs when that is called.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill import keys
from gristmill.code.digest import Code
from gristmill.contract import GristmillError, Trace, Violation
from gristmill.inbox.kind import DropKind
from gristmill.layout import DROPS
from gristmill.run.progress import current_progress
from gristmill.settings.alerts import ALERTS
from gristmill.settings.engines import RUN
from gristmill.settings.inboxes import INBOX, inbox_table
from gristmill.settings.mirrors import MIRROR
from gristmill.settings.tables import Table

if TYPE_CHECKING:
    from rich.console import RenderableType

FAMILIES: Final = ("macroxue", "synth", "chess", "reasoning", "puzzles")


class Misuse(GristmillError):
    """A command was called with options that do not fit the artifact; the text says which do."""


@dataclass(frozen=True)
class Subject:
    """A folder, published or staged, that laws are asked about.

    folder: the artifact's folder.
    partition: of a folder that several partitions share; else None.
    inputs: folders of the artifacts that it was made from.
    config: the builder's config by field name.
    sampled: a law that takes long may look at a sample, drawn by a fixed seed (default False).
    opened: what the laws of the subject share, such as files that they have opened; a law fills it.
    noted: takes what is unusual and breaks no law, of laws that find it in the same pass; None
        (default) where nobody asks for it.
    has_record: False for a folder that another program may have made: a rule on a file that only
        Gristmill writes is left out where the file is missing (default True).
    left_out: takes the rules that nobody looked at, each with the reason; laws fill it, too.
    """

    folder: Path
    partition: str | None = None
    inputs: Sequence[Path] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    sampled: bool = False
    opened: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    noted: list[Violation] | None = field(default=None, compare=False, repr=False)
    has_record: bool = True
    left_out: list[str] = field(default_factory=list, compare=False, repr=False)

    def missing(self, rules: Mapping[str, str]) -> list[str]:
        """Files that a folder without a record lacks; their rules are left out.

        rules: path of a file in the folder -> the rules that need it, in words.

        Returns none for an artifact with a record: there the laws miss the files.
        """
        missing = [name for name in rules if not (self.folder / name).exists()]
        if self.has_record:
            return []
        self.left_out.extend(f"{rules[name]}: there is no {name}" for name in missing)
        return missing

    def leaves(self, name: str, kind: str) -> None:
        """Say of a file in a folder without a record that it is left to the laws of another kind.

        name: of the file, which need not be there. kind: key of the other kind.
        """
        if not self.has_record and (self.folder / name).is_file():
            self.left_out.append(f"{name}: it is of the kind {kind}, which --kind names")


@dataclass(frozen=True)
class Law:
    """One rule for the contents of an asset's artifacts.

    name: as reports give it.
    check: yields what a subject breaks; `where` is a path in its folder or a place in its contents.
    needs_inputs: the law compares with the inputs, and is left out where one of them is gone.
    needs_record: the law compares with records, and is left out where the folder has none.
    excused_by: a config field and the value with which a person leaves the law to the readers.
    rules_excused_by: the same for single rules of the law, by their names.
    """

    name: str
    check: Callable[[Subject], Iterable[Violation]]
    needs_inputs: bool = False
    needs_record: bool = False
    excused_by: tuple[str, Any] | None = None
    rules_excused_by: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    def left_out(self, subject: Subject) -> str | None:
        """Why the law is not asked about `subject`, None where it is."""
        if self.needs_record and not subject.has_record:
            return "the folder has no record"
        if self.excused_by is not None and _is_set(self.excused_by, subject.config):
            return _shown(self.excused_by)
        if not self.needs_inputs:
            return None
        if not subject.inputs:
            return "what it was made from is not known"
        gone = [path for path in subject.inputs if not path.exists()]
        return f"{gone[0]} is gone" if gone else None

    def excused(self, config: Mapping[str, Any]) -> list[str]:
        """What a config leaves to the readers, each with the setting: the law, or some rules."""
        if self.excused_by is not None and _is_set(self.excused_by, config):
            return [f"{self.name}: {_shown(self.excused_by)}"]
        return [
            f"{rule}: {_shown(setting)}"
            for rule, setting in self.rules_excused_by.items()
            if _is_set(setting, config)
        ]


def _is_set(setting: tuple[str, Any], config: Mapping[str, Any]) -> bool:
    return bool(config.get(setting[0]) == setting[1])


def _shown(setting: tuple[str, Any]) -> str:
    return f"{setting[0]} = {json.dumps(setting[1])}"


@dataclass(frozen=True)
class Option:
    """An option of `gristmill show` or `gristmill trace` that a family understands.

    name: without dashes. type: of the value. help: one sentence.
    default: None where the family has no use for one. least: smallest number allowed.
    choices: the values allowed, empty for any.
    commands: the commands that take it (default: both).
    """

    name: str
    type: type
    help: str
    default: Any = None
    least: int | None = None
    choices: tuple[str, ...] = ()
    commands: tuple[str, ...] = ("show", "trace")


@dataclass(frozen=True)
class Request:
    """What a person asks to see.

    path: the artifact's folder. sample: number from 0, or an id, as it was typed.
    options: by `Option.name`; a missing one has its default.
    """

    path: Path
    sample: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """`sample` as a number. Raises Misuse where it is none."""
        if not (self.sample.isascii() and self.sample.isdigit() and len(self.sample) < 20):
            raise Misuse(f"{self.sample!r} is not a sample number; samples count from 0")
        return int(self.sample)


@dataclass(frozen=True)
class PartitionFile:
    """A file that says what a partition is built from and how: `<partition>.toml` in an inbox.

    inbox: its name.
    change: takes the file, the data root, and config and paths of raw files of the record that
        stands; returns what the next build takes in place of these, empty where nothing. Raises
        GristmillError or OSError where it cannot be read.
    built_in: the partitions that need no file; default: none.
    """

    inbox: str
    change: Callable[[Path, Path, Mapping[str, Any], Sequence[str]], str]
    built_in: Collection[str] = ()


@dataclass(frozen=True)
class Kind:
    """The artifacts of one asset.

    asset: its key, as `macroxue/pack`.
    laws: what must hold of the contents.
    show: renders a sample for a terminal.
    trace: finds where a sample came from; several results where an id occurs more than once.
    rows: the counts of the record whose sum is the number of rows (default: the count `rows`).
    set_aside: the counts of the record that have the number of rows that are not in the artifact,
        by reason, and what was done with these: {"rejected_by": "refused"}; default: none is.
    code: the modules and libraries that decide the output; the fingerprint has their digest.
    partitions: whether the asset has partitions (default True).
    file: the file that says how a partition is built; default: there is none.
    """

    asset: str
    laws: Sequence[Law] = ()
    show: Callable[[Request], Iterable[RenderableType]] | None = None
    trace: Callable[[Request], Iterable[Trace]] | None = None
    rows: Sequence[str] = ("rows",)
    set_aside: Mapping[str, str] = field(default_factory=dict)
    code: Code = Code()  # noqa: RUF009  it is frozen
    partitions: bool = True
    file: PartitionFile | None = None

    def file_of(self, root: Path, partition: str | None) -> Path | None:
        """The file that says how a partition is built, None where there is none for it.

        root: the data root. partition: as a record has it, which may be any text.
        """
        if self.file is None or partition is None or keys.refusal(partition) is not None:
            return None
        path = root.absolute() / DROPS / self.file.inbox / f"{partition}.toml"
        return None if partition in self.file.built_in and not os.path.lexists(path) else path

    def change_of(
        self, file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]
    ) -> str:
        """What a file says that a partition was not built with, empty where nothing.

        file: as `file_of` returns it. root: the data root.
        config: of the record. raw: paths of the raw files in the record.
        """
        assert self.file is not None
        try:
            found = self.file.change(file, root, config, raw)
        except (GristmillError, OSError) as error:
            return str(error)
        return found and f"{file.relative_to(root.absolute())}: {found}"

    def rows_of(self, counts: Mapping[str, int | float]) -> int | None:
        """The number of rows by the counts of a record, None where it has none of them."""
        found = [counts[name] for name in self.rows if name in counts]
        return int(sum(found)) if found else None

    def set_aside_of(self, counts: Mapping[str, int | float]) -> dict[str, dict[str, int]]:
        """The number of rows by reason, by what was done with them; none that are 0."""
        found: dict[str, dict[str, int]] = {}
        for name, count in counts.items():
            field_name, _, reason = name.partition("/")
            if count and reason and field_name in self.set_aside:
                found.setdefault(self.set_aside[field_name], {})[reason] = int(count)
        return found


@dataclass(frozen=True)
class Column:
    """One field of the tables or arrays in an artifact.

    name: as in the file; with the table's name and a dot where the artifact has several.
    type: as the file's format calls it.
    text: half a sentence: what it holds.
    """

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Catalog:
    """What one family can say about its artifacts.

    kinds: one for each asset.
    asset_of: the asset of a folder that has no provenance record, None for a folder of no asset
        of the family; by the files in it.
    options: of `gristmill show` and `gristmill trace`.
    samples: path below `drops/` -> function that writes the sample drop to a path.
    earlier_samples: path below `drops/` -> sha256 of a sample's file as an earlier version wrote
        it, where it differs: `gristmill samples` writes it again.
    place_of: takes the path of what is in an inbox, or will be, and returns its place. Of several
        drops with one place only one can be used, so that no sample is written beside another drop
        of its place. Default: the path.
    settings: the tables of `gristmill.toml` that the family's assets read.
    commands: name -> line of help of the family's own commands, which are click commands
        of the same name in `gristmill/<family>/commands.py` and need no Dagster.
    columns: takes the key of one of its assets and returns the columns of its artifacts.
    inboxes: what its drops are, by the name of the inbox, a folder below `drops/`, as `macroxue` or
        `puzzles/recipes`.
    others: kinds of folders that no asset makes, but that the family can show. `asset_of` may
        return their keys.
    facts: takes the key of a kind and a folder, and yields what is in the folder, a line each:
        files, numbers of rows, shapes, types, ranges, splits.
    """

    kinds: Sequence[Kind]
    asset_of: Callable[[Path], str | None]
    options: Sequence[Option] = ()
    samples: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    earlier_samples: Mapping[str, str] = field(default_factory=dict)
    place_of: Callable[[Path], str] = str
    settings: Sequence[Table] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    columns: Callable[[str], Sequence[Column]] = lambda _: ()
    inboxes: Mapping[str, DropKind] = field(default_factory=dict)
    others: Sequence[Kind] = ()
    facts: Callable[[str, Path], Iterable[str]] = lambda *_: ()


@cache
def catalog(family: str) -> Catalog:
    """The catalog of a family of `FAMILIES`. Raises TypeError where its module has none."""
    found = import_module(f"gristmill.{family}.family").CATALOG
    if not isinstance(found, Catalog):
        raise TypeError(f"gristmill/{family}/family.py: CATALOG must be a Catalog, not {found!r}")
    return found


def catalogs() -> Iterator[Catalog]:
    """The catalogs of all families, in the order of `FAMILIES`."""
    return map(catalog, FAMILIES)


def tables() -> dict[str, Table]:
    """The tables of `gristmill.toml` by name: those of no family, then the families'."""
    of_inboxes = (inbox_table(inbox) for each in catalogs() for inbox in each.inboxes)
    of_families = (table for each in catalogs() for table in each.settings)
    of_none = (RUN, MIRROR, INBOX, *of_inboxes, ALERTS)
    return {table.name: table for table in (*of_none, *of_families)}


@cache
def inboxes() -> Mapping[str, DropKind]:
    """What the drops of each inbox are, by its name."""
    return {name: kind for each in catalogs() for name, kind in each.inboxes.items()}


def drop_kind(inbox: str) -> DropKind:
    """What the drops of an inbox are. Raises KeyError where no family has it."""
    return inboxes()[inbox]


def commands() -> dict[str, tuple[str, str]]:
    """The families' own commands by name: the module that holds each, and its line of help."""
    return {
        name: (f"gristmill.{family}.commands", line)
        for family in FAMILIES
        for name, line in catalog(family).commands.items()
    }


def kind_of_asset(asset: str) -> Kind | None:
    """The kind of an asset's artifacts, None where no family knows the asset."""
    return next((kind for each in catalogs() for kind in each.kinds if kind.asset == asset), None)


def has_partitions(asset: str) -> bool:
    """Whether a command that builds an asset names a partition. Vocabularies are of no family."""
    kind = kind_of_asset(asset)
    return not asset.startswith("tokenizers/") if kind is None else kind.partitions


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
    """Yield what `subject`, an artifact of `asset`, breaks; nothing where no laws are known.

    The current progress gets the stage "laws".
    """
    kind = kind_of_asset(asset) or other_kind(asset)
    laws = []
    for law in kind.laws if kind else ():
        if (reason := law.left_out(subject)) is None:
            laws.append(law)
        else:
            subject.left_out.append(f"{law.name}: {reason}")
    with current_progress().stage("laws", "laws", len(laws)) as stage:
        for law in laws:
            yield from law.check(subject)
            stage.advance(1)


def facts_of(asset: str, folder: Path) -> Iterator[str]:
    """Yield what is in a folder of an asset's kind, a line each; nothing for an unknown asset."""
    for each in catalogs():
        if any(kind.asset == asset for kind in (*each.kinds, *each.others)):
            yield from each.facts(asset, folder)


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
        choices=tuple(dict.fromkeys((*one.choices, *other.choices))),
    )
