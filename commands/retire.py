"""`gristmill retire`: forget the partition of a drop that is gone."""

from __future__ import annotations

from collections.abc import Sequence

import click
import dagster as dg
from rich.markup import escape

from assets.checking import arrivals
from assets.inbox import Inbox
from commands.checkout import CheckoutCommand, open_instance, say
from commands.graph import INBOXES, Graph
from gristmill.asset import declared
from gristmill.inbox.listing import list_inbox
from gristmill.provenance.find_artifacts import artifacts_of
from gristmill.provenance.inventory import Entry
from gristmill.publish import remove
from resources import Lake


@click.command(cls=CheckoutCommand)
@click.argument("key")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@click.option("--artifacts", is_flag=True, help="Remove what was built from the drop, too.")
@click.option(
    "--with-dependents",
    is_flag=True,
    help="With --artifacts: remove what was made from these, too, as a pool.",
)
def retire(key: str, dry_run: bool, artifacts: bool, with_dependents: bool) -> None:
    """Forget the drop KEY whose raw files are gone, and its partition.

    Refused while the drop is still there: the sensor would add the partition again. Artifacts
    that were built from the drop stay, unless --artifacts is given. That is refused where others
    were made from them, unless --with-dependents is given. Months and shards stay partitions; their
    artifacts are removed with `gristmill remove`.
    """
    if with_dependents and not artifacts:
        raise click.UsageError("--with-dependents goes with --artifacts")
    lake, names, is_known = Lake(), list[str](), False
    with open_instance() as instance:
        for inbox in INBOXES:
            fixed = []
            if inbox.dynamic is None or key in inbox.built_in_keys:
                fixed = arrivals.taken(instance, inbox).get(key, [])
            known = [
                name for name in inbox.named_by_drops if instance.has_dynamic_partition(name, key)
            ]
            if not fixed and not known:
                continue
            is_known = True
            entries, _ = list_inbox(lake.inbox(inbox.folder), inbox.shape, lake.link_rule())
            if found := entries.get(key):
                raise click.UsageError(f"{found[0].path} is still there: move the drop away first")
            if fixed and artifacts:
                raise click.UsageError(
                    "--artifacts: what was built may be from other drops, too: "
                    "name each folder to `gristmill remove`"
                )
            if fixed:
                _forget(instance, inbox, key, fixed, dry_run)
                continue
            for name in known:
                if key in inbox.built_in().get(name, ()):
                    say(f"{name}: keep {escape(key)}, which is there without a drop")
                else:
                    names.append(name)
        if not is_known:
            raise click.UsageError(
                f"no drop or pool has the partition {key!r}: the UI lists the partitions; "
                "`gristmill adopt --all` tells a new instance what is published"
            )
        if names:
            _retire(instance, lake, names, key, (artifacts, with_dependents), dry_run)


def _forget(
    instance: dg.DagsterInstance, inbox: Inbox, key: str, partitions: Sequence[str], dry_run: bool
) -> None:
    """Say that a drop without a partition of its own is gone; forget those that it added."""
    added = [(name, each) for name, keys in inbox.added(partitions).items() for each in keys]
    for name, each in [(inbox.folder, key), *added]:
        say(f"{name}: forget {escape(each)}")
    if not dry_run:
        arrivals.retire(instance, inbox, key, partitions)
        for name, each in added:
            instance.delete_dynamic_partition(name, each)


def _retire(
    instance: dg.DagsterInstance,
    lake: Lake,
    names: Sequence[str],
    key: str,
    removes: tuple[bool, bool],
    dry_run: bool,
) -> None:
    """Forget a key of some dynamic partitions, and list or remove what was built from it."""
    graph, (artifacts, with_dependents) = Graph(instance, lake), removes
    definitions = [dg.DynamicPartitionsDefinition(name=name) for name in names]
    assets = set[str]().union(*(graph.partitioned_by(each) for each in definitions))
    places = {
        item.folder
        for asset in assets
        for item in artifacts_of(lake.root / declared()[asset].place, asset, [key])
    }
    folders = [folder for folder in sorted(places) if not set(folder.parents) & places]
    if artifacts:
        entries = [Entry(folder.relative_to(lake.root).as_posix()) for folder in folders]
        made = remove.dependents(lake.root, entries)
        if not with_dependents:
            remove.refuse_dependents(entries, made)
        for entry in made:
            say(f"remove: {escape(entry.title)}, made from it")
            if not dry_run:
                remove.remove_published(lake.root, entry)
    for folder in folders:
        say(f"{'remove' if artifacts else 'stays'}: {escape(str(folder))}")
        if artifacts and not dry_run:
            remove.remove_artifact(folder)
    # Last, so that the command can be repeated after a kill.
    for name in names:
        say(f"{name}: forget {escape(key)}")
        if not dry_run:
            instance.delete_dynamic_partition(name, key)
