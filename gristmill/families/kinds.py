"""What a family can say of one kind of artifact: laws, traces, options, columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill import keys
from gristmill.code.digest import Code
from gristmill.contract import GristmillError, Trace, Violation
from gristmill.inbox.listing import DropKind
from gristmill.laws import Law
from gristmill.layout import DROPS
from gristmill.settings.tables import Table


class Misuse(GristmillError):
    """A command was called with options that do not fit the artifact; the text says which do."""


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


class TestsSeen(NamedTuple):
    """What the training split of one artifact has of a test split of another one.

    name: of the test split, as `mine__test`. trained, tested: examples of both, without
        augmentations. places: set and row in training, and set and row of the test example.
    """

    name: str
    trained: int
    tested: int
    places: Sequence[tuple[str, int, str, int]]

    @property
    def line(self) -> str:
        """In words, with the first place of both."""
        found = f"{len(self.places):,} of {self.trained:,} training examples are examples of"
        place, row, other, at = self.places[0]
        return f"{found} {self.name}, up to symmetry: {place} row {row} is {other} row {at}"


@dataclass(frozen=True)
class PartitionFile:
    """A file that says what a partition is built from and how.

    inbox: its name.
    name: of the file; 0 stands for the partition, 1 for the drop of a partition DROP__PART.
    change: takes the file, the data root, and config and paths of raw files of the record that
        stands; returns what the next build takes in place of these, empty where nothing. Raises
        GristmillError or OSError where it cannot be read.
    built_in: the partitions that need no file; default: none.
    """

    inbox: str
    change: Callable[[Path, Path, Mapping[str, Any], Sequence[str]], str]
    built_in: Collection[str] = ()
    name: str = "{0}.toml"


FORGOTTEN_BY: Final = "forgotten_by"
"""The counts of any record that have the number of rows with tombstones, by their dates."""


@dataclass(frozen=True)
class Kind:
    """The artifacts of one asset.

    asset: its key, as `macroxue/pack`.
    laws: what must hold of the contents.
    trace: finds where a sample came from; several results where an id occurs more than once.
    source: opens folders for the loader, with options of a mix file by keyword; default: it cannot.
    rows: the counts of the record whose sum is the number of rows (default: the count `rows`).
    set_aside: the counts of the record that have the number of rows that are not in the artifact,
        or not whole, by reason, and what was done with these: {"rejected_by": "refused"}; default:
        none is.
    counted: takes a record and its artifact's folder, and yields what is unusual by its counts, or
        a small file beside it, and breaks no law.
    compared: the same of what takes reading whole files; `ls`, which reads none, does not call it.
    tests_seen: takes the data root, the folder of an artifact and names of test splits, and yields
        what its training split has of those, of others of the kind; default: nobody looks.
    out_of: the count of those that its rows were chosen from, and why others were left out.
    across: whether a raw file that two partitions were built from is unusual (default False).
    listed: groups of counts, as `languages` of `languages/en`, whose names come from what was
        built from: the UI shows each group as one line, and plots none of them; default: none is.
    code: the modules and libraries that decide the output; the fingerprint has their digest.
    partitions: name of its partitions; "" for an asset without any.
    file: the file that says how a partition is built; default: there is none.
    table: its table of `gristmill.toml`; default: its builds have nothing to choose.
    history: takes an artifact's folder and its record, and yields its rows as a history names them,
        each a `gristmill.history.rows.Kept`; default: it has none.
    kept: small files that a history keeps as they are; default: none.
    past: takes a `gristmill.loading.past.Past` and options of a mix file by keyword, and
        returns the source that a loader had; default: the rows alone.
    """

    asset: str
    laws: Sequence[Law] = ()
    trace: Callable[[Request], Iterable[Trace]] | None = None
    source: Callable[..., Any] | None = None
    rows: Sequence[str] = ("rows",)
    set_aside: Mapping[str, str] = field(default_factory=dict)
    counted: Callable[[Any, Path], Iterable[Violation]] | None = None
    compared: Callable[[Any, Path], Iterable[Violation]] | None = None
    tests_seen: Callable[[Path, Path, Collection[str]], Iterable[TestsSeen]] | None = None
    out_of: tuple[str, str] = ("", "")
    across: bool = False
    listed: Collection[str] = ()
    code: Code = Code()  # noqa: RUF009  it is frozen
    partitions: str = "any"
    file: PartitionFile | None = None
    table: Table | None = None
    history: Callable[[Path, Any], Iterable[Any]] | None = None
    kept: Sequence[str] = ()
    past: Callable[..., Any] | None = None

    def file_of(self, root: Path, partition: str | None) -> Path | None:
        """The file that says how a partition is built, None where there is none for it.

        root: the data root. partition: as a record has it, which may be any text.
        """
        if self.file is None or partition is None or keys.refusal(partition) is not None:
            return None
        own = self.file.name.format(partition, partition.rpartition("__")[0])
        path = root / DROPS / self.file.inbox / own
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
        return found and f"{file.relative_to(root)}: {found}"

    def rows_of(self, counts: Mapping[str, int | float]) -> int | None:
        """The number of rows by the counts of a record, None where it has none of them."""
        found = [counts[name] for name in self.rows if name in counts]
        return int(sum(found)) if found else None

    def set_aside_of(self, counts: Mapping[str, int | float]) -> dict[str, dict[str, int]]:
        """The number of rows by reason, by what was done with them; none that are 0."""
        found, done = dict[str, dict[str, int]](), {**self.set_aside, FORGOTTEN_BY: "forgotten"}
        for name, count in counts.items():
            field_name, _, reason = name.partition("/")
            if count and reason and field_name in done:
                found.setdefault(done[field_name], {})[reason] = int(count)
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
    several: whether a drop has a partition for each of its parts, as a corpus for its splits, and
        not one with its key; default False.
    """

    asset: str
    inbox: str
    drop: DropKind
    text: str
    group: str
    labels: Collection[str]
    partitions: str
    targets: Sequence[str]
    several: bool = False


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


class Unit(NamedTuple):
    """A row of a drop that can be forgotten.

    file: its path in the drop. row: its number in the file, from 1; 0 for a file that goes whole.
    name: its own, as the id of a conversation; empty without one. values: by column.
    """

    file: str
    row: int
    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Forgets:
    """How rows of the drops of an inbox are named, and left out of builds.

    units: takes data root and drop, and yields its rows.
    tombstones: takes data root, drop, rows by file and number, reason and day; returns a
        `corpora.raw.forgotten.Tombstone` for each, and for those that a build reads as equal, or
        raises GristmillError. Default: one for each row that is equal in all values.
    places: takes a file, and returns begin and end of each of its rows in its unpacked text, None
        where they are the members of one JSON value; default: those of rows of text.
    """

    units: Callable[[Path, Path], Iterator[Unit]]
    tombstones: Callable[..., Sequence[Any]] | None = None
    places: Callable[[Path], Sequence[tuple[int, int]] | None] | None = None
