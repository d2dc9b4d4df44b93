"""What a family can say of one kind of artifact: laws, views, traces, options, columns.

See also `gristmill/asset.py`: the declaration of a kind that Gristmill builds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill import keys
from gristmill.code.digest import Code
from gristmill.contract import GristmillError, Trace, Violation
from gristmill.inbox.kind import DropKind
from gristmill.layout import DROPS
from gristmill.settings.tables import Table

if TYPE_CHECKING:
    from rich.console import RenderableType


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
    table: its table of `gristmill.toml`; default: its builds have nothing to choose.
    """

    asset: str
    laws: Sequence[Law] = ()
    show: Callable[[Request], Iterable[RenderableType]] | None = None
    trace: Callable[[Request], Iterable[Trace]] | None = None
    rows: Sequence[str] = ("rows",)
    set_aside: Mapping[str, str] = field(default_factory=dict)
    code: Code = Code()  # noqa: RUF009  it is frozen
    partitions: str | bool = True
    file: PartitionFile | None = None
    table: Table | None = None

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
class Source:
    """What arrives in an inbox: an asset that Gristmill does not build.

    asset: its key, as `macroxue/raw_drop`.
    inbox: its name, a folder below `drops/`, as `macroxue` or `puzzles/recipes`.
    drop: what its drops are.
    text: the description on its page. group, labels: see `gristmill.asset.Asset`.
    partitions: name of its partitions.
    targets: keys of the assets that a drop's runs build.
    """

    asset: str
    inbox: str
    drop: DropKind
    text: str
    group: str
    labels: Collection[str]
    partitions: str
    targets: Sequence[str]


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
