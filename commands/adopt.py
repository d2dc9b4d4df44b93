"""`gristmill adopt`: tell an instance of what is published, by the records on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import dagster as dg

from assets import versions
from assets.checking.verdicts import opened
from assets.events import event_metadata
from assets.inbox import add_partitions
from commands.checkout import CheckoutCommand, open_instance, say, shown
from commands.graph import INBOXES, Graph, register
from gristmill import keys, provenance
from gristmill.contract import GristmillError
from gristmill.provenance import Record, find_artifacts, inventory
from gristmill.publish.build import Published
from resources import Lake

_NO_KEY = ""  # versions.input_tagger wants a text for an asset without partitions
_BEFORE_ALL = "-1"  # the number of an event that is older than all events of an instance


@click.command(cls=CheckoutCommand)
@click.argument("selection", nargs=-1, metavar="[ASSET]...")
@click.option("--all", "everything", is_flag=True, help="Every asset.")
@click.option("--dry-run", is_flag=True, help="Only say what would be reported.")
def adopt(selection: tuple[str, ...], everything: bool, dry_run: bool) -> None:
    """Tell a new instance what is published; removes nothing.

    ASSET as `macroxue/pack`, or `--all`. For an instance that does not know them: a new one on
    Postgres, or one whose `.dagster/` was deleted. Each artifact gets the event of a build, from
    its record; nothing is built or changed on disk. What the instance knows with the same data
    version is left. Runs, their logs, pictures and samples on the pages, and the verdicts of checks
    are not in the records: they do not come back.
    """
    if bool(selection) == everything:
        raise click.UsageError("give either the names of assets, or --all")
    lake = Lake()
    with open_instance() as instance:
        work = Reports(instance, lake)
        chosen = work.graph.select(selection)
        for line in () if dry_run else work.arrivals():
            say(shown(line))
        for line in work.read():
            say(f"[yellow]left[/] {shown(line)}")
        count = known = 0
        for asset in chosen:
            new, old = work.report(asset, dry_run)
            for line in work.left:
                say(f"[yellow]left[/] {shown(line)}")
            count, known = count + len(new), known + old
            if new:
                verb = "would be reported" if dry_run else "reported"
                say(f"{asset.to_user_string()}: {len(new):,} {verb}, {old:,} known")
    verb = "would be adopted" if dry_run else "adopted"
    say(f"{count:,} artifacts {verb}, {known:,} known already")


class Reports:
    """The published artifacts of a data root, and the instance that they are reported to.

    graph: the assets. left: after `report`, a line for each artifact that is no partition.
    """

    def __init__(self, instance: dg.DagsterInstance, lake: Lake) -> None:
        self._instance, self._lake = instance, lake
        self.graph = Graph(instance, lake)
        self.left: list[str] = []
        self._found: dict[str, dict[str, Published]] = defaultdict(dict)

    def arrivals(self) -> Iterator[str]:
        """Report the drops of all inboxes; yield a line for each that nothing is built from."""
        for inbox in INBOXES:
            for drop in register(self._instance, self._lake, inbox):
                named = f"{inbox.folder}/{drop.key}: " if drop.key else ""
                yield f"{drop.state} {named}{drop.reason}"

    def read(self) -> Iterator[str]:
        """Read all records, and yield a line for each that cannot be taken, with the reason."""
        if not self._lake.root.is_dir():
            return
        assets = {asset.to_user_string() for asset in self.graph.select(())}
        for gone in inventory.missing(self._lake.root.absolute()):
            yield f"{gone.where}: {gone.found}"
        for item in find_artifacts.artifacts(self._lake.root):
            try:
                record = provenance.read_record(item.record_path)
            except (GristmillError, ValueError) as error:
                yield str(error)
                continue
            key = record.partition or _NO_KEY
            if item.data_root(record) != self._lake.root:
                yield f"{item.folder}: its record says {record.artifact}: it was moved or copied"
            elif record.asset not in assets:
                yield f"{item.record_path}: its asset {record.asset} is none of this version"
            elif key and (refusal := keys.refusal(key)):
                yield f"{item.record_path}: its partition {refusal}"
            elif missing := _missing(item.folder, record):
                yield f"{item.folder}: {missing}, which its record lists, is not there as recorded"
            else:
                self._found[record.asset][key] = Published(item.folder, record, rebuilt=False)

    def report(self, asset: dg.AssetKey, dry_run: bool = False) -> tuple[list[str], int]:
        """Report the artifacts of an asset; those that it is built from come first."""
        name = asset.to_user_string()
        found, definition = self._found[name], self.graph.partitions(asset)
        if definition is None:
            # Its record may name a partition, as the vocabulary of a tokenizer.
            partitions = set(list(found)[:1])
        elif isinstance(definition, dg.DynamicPartitionsDefinition):
            partitions = {key for key in found if key}
            if not dry_run and definition.name is not None and partitions:
                add_partitions(self._instance, definition.name, [key for key in found if key])
        else:
            partitions = set(self.graph.known(asset))
        why = "is not the one artifact of" if definition is None else "is no partition of"
        self.left = [
            f"{found[key].folder}: {key!r} {why} {name}" for key in found if key not in partitions
        ]
        some = sorted(key for key in found if key in partitions)
        if definition is None:
            known = dict.fromkeys(some, versions.newest_version(self._instance, asset) or ("", 0))
        else:
            known = versions.latest(self._instance, asset, some)
        new = [key for key in some if known.get(key, ("",))[0] != found[key].record.data_version]
        if not dry_run:
            deps = self.graph.parents(asset)
            whole = deps - set(self.graph.inputs(asset))
            tags_of = versions.input_tagger(self._instance, sorted(deps), new, whole)
            for key in new:
                self._event(asset, key if definition else None, found[key], tags_of(key))
        return new, len(some) - len(new)

    def _event(
        self, asset: dg.AssetKey, key: str | None, published: Published, inputs: dict[str, str]
    ) -> None:
        """Report one artifact, with the version of each input that its record names."""
        record = published.record
        used_of: dict[str, set[str]] = defaultdict(set)
        for item in record.inputs:
            if item.asset and item.data_version:
                used_of[item.asset].add(item.data_version)
        for name, used in used_of.items():
            now = {each.record.data_version for each in self._found[name].values()}
            # Dagster compares partitions of an input by their events, not by their versions.
            event = _BEFORE_ALL if now and not used <= now else ""
            version = next(iter(used)) if len(used) == 1 else ""
            tags = versions.input_tags(dg.AssetKey.from_user_string(name), version, event)
            inputs |= {tag: value for tag, value in tags.items() if value and tag in inputs}
        self._instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=asset,
                partition=key,
                description="adopted: reported by its record",
                metadata=event_metadata(published),
                tags=versions.version_tags(record.data_version, record.code_version) | inputs,
            )
        )
        with opened(self._lake.root) as verdicts:
            verdicts.reported(record.asset, {key or "": (record.data_version, "")})


def _missing(folder: Path, record: Record) -> str | None:
    """The first file of a record that is gone or has another size; None if all are there."""
    for output in record.outputs:
        path = folder / output.path
        if not path.is_file() or path.stat().st_size != output.bytes:
            return output.path
    return None
