"""The declaration of an asset: what it is built from, how, where it goes, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gristmill import families
from gristmill.contract import Summary, Violation
from gristmill.families import Kind, Subject
from gristmill.settings.fields import NO_EFFECT, FieldRule, fields_with
from gristmill.settings.tables import Settings, Table, resolve

if TYPE_CHECKING:
    from gristmill.data_root import DataRoot
    from gristmill.inbox.listing import Account, ColumnState
    from gristmill.provenance import Input, Tokenizer
    from gristmill.publish.build import Attempt, Build, LeftOut
    from gristmill.publish.publish import Ranks

Config = TypeVar("Config")


@dataclass(frozen=True, kw_only=True)
class Asset(Kind):
    """An artifact that Gristmill builds: the one place that says what belongs to it.

    asset, laws, trace, source, rows, set_aside, counted, compared, across, code,
        file: see `Kind`.

    text: the description on its page. group: its group there, of `assets/family.py`.
    labels: what it is made with, shown beside its name.
    partitions: name of its partitions; "" for an asset without any (default).
    place: POSIX path, below the data root, of the folder that holds its artifacts.
    build: takes a `Wanted` and returns the build of that partition.
    inputs: keys of the assets of which it takes the partition of the same key.
    all_of: keys of the assets of which it takes any partition, or the only one.
    version: code version of a builder without a config; default: that of the table's config.

    table: its table of `gristmill.toml`; default: its builds have nothing to choose.
    given: takes the data root and a partition, and returns what files give for it; raises
        GristmillError where a file is refused or gone. Default: the table of the data root.
    filled_in: fields that the asset sets itself, which no run gives.
    left_out: fields that this asset does not take from the table.
    recorded: names of fields in records, by key of the table, where they differ.
    resource: key of the Dagster resource that has the values of a run; default: its own config.
    place_of: takes the data root, a partition, a key and what files give; returns what gives the
        value, and where a person writes another one. Default: the file of the settings.

    sample: takes the folder of an artifact, and returns the number of the row of its main table
        that its page draws; default: the first.
    notes: takes the folder of an artifact, and yields what is unusual and breaks no law.
    blocking: whether assets after it in a run wait for its laws (default False).
    batch: how many partitions one run of a backfill builds; default: one.
    pool: runs of assets with one pool wait for each other; default: none.
    follows: build again after the inputs, where `all` of them are there or `any`; default: never.

    available: takes the data root, and returns the partitions whose inputs are there. Default:
        the drops of its inbox, else the published partitions of its first input.
    is_asked: takes the data root and a partition, and returns whether a command without names of
        partitions builds it. Default: it does.
    ranks: takes a `Wanted`, and returns its parts by rank; default: it has no ranks.
    """

    text: str
    group: str
    labels: Collection[str]
    place: str
    build: Callable[[Wanted], Build]
    partitions: str = ""
    inputs: Sequence[str] = ()
    all_of: Sequence[str] = ()
    version: str = ""

    table: Table | None = None
    given: Callable[[DataRoot, str], Settings] | None = None
    filled_in: Collection[str] = ()
    left_out: Collection[str] = ()
    recorded: Mapping[str, str] = field(default_factory=dict)
    resource: str = ""
    place_of: Callable[[DataRoot, str, str, Settings], tuple[str, str]] | None = None

    sample: Callable[[Path], int] = lambda _: 0
    notes: Callable[[Path], Iterable[Violation]] | None = None
    blocking: bool = False
    batch: int = 1
    pool: str = ""
    follows: Literal["", "all", "any"] = ""

    available: Callable[[DataRoot], Sequence[str]] | None = None
    is_asked: Callable[[DataRoot, str], bool] = lambda _root, _partition: True
    ranks: Callable[[Wanted], Ranks] | None = None

    @property
    def settings_table(self) -> Table:
        """Its table of `gristmill.toml`. Raises TypeError for an asset without settings."""
        if self.table is None:
            raise TypeError(f"{self.asset}: has no settings")
        return self.table

    @property
    def code_version(self) -> str:
        """The version of its builder, as a person raises it."""
        return self.version or str(self.settings_table.config.CODE_VERSION)

    def settings(self, root: DataRoot, partition: str) -> Settings:
        """Returns what files give for a partition.

        root: the data root.

        Raises GristmillError where a file is refused or gone.
        """
        if self.given is not None:
            return self.given(root, partition)
        return root.settings(self.settings_table.name)

    def ready(self, root: DataRoot) -> list[str]:
        """Returns the partitions that are asked for, and whose inputs are there; [""] of none.

        root: the data root.
        """
        if self.available is not None:
            keys = self.available(root)
        elif not self.partitions:
            keys = [""]
        else:
            first = self.inputs[0]
            sources = (source for each in families.catalogs() for source in each.sources)
            inbox = next((source.inbox for source in sources if source.asset == first), None)
            if inbox is not None:
                keys = root.taken(inbox)
            else:
                keys = root.partitions_of(first, declared()[first].place)
        return [key for key in keys if self.is_asked(root, key)]

    def choices(self) -> Iterator[tuple[str, str, FieldRule]]:
        """Yields key of the table, field of the record, and rule of what can change the output."""
        skipped = {*fields_with(self.settings_table.config, NO_EFFECT), *self.left_out}
        for key, rule in self.settings_table.rules(in_root=False).items():
            if key not in skipped:
                yield key, self.recorded.get(key, key), rule

    def place_of_choice(
        self, root: DataRoot, partition: str, key: str, given: Settings
    ) -> tuple[str, str]:
        """Returns what gives a value, and where a person writes another one.

        root: the data root. key: of the table. given: what files give.
        """
        if self.place_of is not None:
            return self.place_of(root, partition, key, given)
        source = str(given.file) if key in given else "the default"
        return source, f"{self.settings_table.header} in {given.file}"


@dataclass(frozen=True)
class Wanted:
    """A partition that somebody wants built.

    chosen: values of the config for this build alone, by field; they come before those of files.
    run: id of the Dagster run; default "": there is none.
    is_comparison: whether it is built to be compared with what is published, which also a report
        of a day that is over can be; default False.
    """

    asset: Asset
    root: DataRoot
    partition: str
    chosen: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    is_comparison: bool = False

    def config(
        self,
        config: type[Config],
        given: Settings | None = None,
        filled_in: Mapping[str, Any] | None = None,
    ) -> Config:
        """Returns the builder's config: chosen values, else those of files, else the defaults.

        config: the config dataclass of the asset's table.
        given: what files give; default: `Asset.settings`.
        filled_in: values that the asset sets itself; chosen ones come before them. Default none.

        Raises BadInput where the config refuses a value, naming the file if all come from it.
        """
        return resolve(
            config,
            self.asset.settings(self.root, self.partition) if given is None else given,
            self.chosen,
            defaults=self.asset.settings_table.defaults,
            filled_in=filled_in,
        )

    def build(
        self,
        artifact: str,
        config: object,
        inputs: Sequence[Input],
        make: Callable[[Attempt], Summary],
        *,
        shared: str = "",
        sampled: bool = False,
        noted: list[Violation] | None = None,
        outer: str | None = None,
        tokenizer: Tokenizer | None = None,
        space: int = 0,
        rows: int = 0,
        deletes: Sequence[str] = (),
        account: Account | None = None,
        split: str = "",
        fetches: bool = False,
        remarks: Sequence[str] = (),
        left: LeftOut | None = None,
    ) -> Build:
        """Returns the build of the partition; the laws are those of its asset.

        left: what of its drops is left out; default: nothing. The others that are not here: as of
            `Build`. shared: name of its record in a folder that several partitions share; default:
            it has a folder of its own. split: of the files of `account`, where that has one alone;
            default: it says it. sampled: whether laws that take long look at a sample.
        """
        from gristmill import provenance  # looking at declarations loads no records
        from gristmill.publish.build import Build

        folders = [self.root.root / str(item.path) for item in inputs if item.data_version]
        fields = provenance.config_fields(config)
        return Build(
            root=self.root.root,
            artifact=artifact,
            asset=self.asset.asset,
            partition=shared or self.partition or None,
            code_version=self.asset.code_version,
            config=config,
            inputs=[*inputs, *left.inputs] if left else inputs,
            make=make,
            laws=lambda out: families.check(
                self.asset.asset,
                Subject(out, shared or None, folders, config=fields, sampled=sampled, noted=noted),
            ),
            notes=self.asset.notes or (lambda _: ()),
            noted=noted,
            shared=bool(shared),
            outer=outer,
            tokenizer=tokenizer,
            space=space,
            rows=rows,
            deletes=deletes,
            account=account,
            columns=lambda counts: self._columns(inputs, account, split, counts),
            fetches=fetches,
            remarks=remarks,
            forgotten=left.by_date if left else {},
        )

    def _columns(
        self,
        inputs: Sequence[Input],
        account: Account | None,
        split: str,
        counts: Mapping[str, int | float],
    ) -> Iterator[ColumnState]:
        """Yields what became of the columns of the drops among the inputs."""
        from gristmill.provenance.raw_inputs import drop_of

        root = self.root.root
        raw = (root / str(item.path) for item in inputs if item.is_of_drop)
        drops = dict.fromkeys(drop for path in raw if (drop := drop_of(root, path)) is not None)
        if account is None:
            return
        if split:
            account = replace(account, taken={split: account.taken.get("", ())})
        for drop in drops:
            yield from self.root.columns(drop, account, counts)


@cache
def declared() -> Mapping[str, Asset]:
    """The declarations of all families by the key of the asset, in the order of the families."""
    kinds = (kind for each in families.catalogs() for kind in each.kinds)
    return {kind.asset: kind for kind in kinds if isinstance(kind, Asset)}
