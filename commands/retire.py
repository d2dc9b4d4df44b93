"""`gristmill retire`: forget the partition of a drop that is gone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click
from rich.markup import escape

from assets.inbox import Inbox
from commands.checkout import CheckoutCommand, open_instance
from commands.graph import INBOXES, Graph
from commands.terminal import say
from gristmill import keys, provenance
from gristmill.publish import remove
from resources.lake import Lake


@click.command(cls=CheckoutCommand)
@click.argument("key")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@click.option("--artifacts", is_flag=True, help="Remove what was built from the drop, too.")
def retire(key: str, dry_run: bool, artifacts: bool) -> None:
    """Forget the partition KEY of a drop that is gone.

    Refused while the drop is still there: the sensor would add the partition again. Artifacts
    that were built from the drop stay, unless --artifacts is given.
    """
    lake = Lake()
    with open_instance() as instance:
        inboxes = [
            inbox
            for inbox in INBOXES
            if inbox.dynamic and instance.has_dynamic_partition(inbox.dynamic, key)
        ]
        if not inboxes:
            raise click.UsageError(
                f"no drop or pool has the partition {key!r}: the UI lists the partitions"
            )
        for inbox in inboxes:
            if (drop := _drop_of(lake, inbox, key)) is not None and drop.exists():
                raise click.UsageError(f"{drop} is still there: move the drop away first")
            assets = Graph(instance, lake).partitioned_by(inbox.partitions)
            for folder in _built_from(lake, assets, key):
                say(f"{'remove' if artifacts else 'stays'}: {escape(str(folder))}")
                if artifacts and not dry_run:
                    remove.remove_artifact(folder)
            # Last, so that the command can be repeated after a kill.
            say(f"{inbox.dynamic}: forget {escape(key)}")
            if not dry_run:
                instance.delete_dynamic_partition(str(inbox.dynamic), key)


def _drop_of(lake: Lake, inbox: Inbox, key: str) -> Path | None:
    """The path of a partition's drop; None for a key that no drop can have."""
    # The instance accepts any text as a key, also `..` and `*`.
    if keys.refusal(key):
        return None
    return lake.inbox(inbox.folder) / (key + "".join(inbox.shape.endings[:1]))


def _built_from(lake: Lake, assets: Collection[str], key: str) -> list[Path]:
    """The published folders of partition `key` of any of `assets`, according to their records."""
    if keys.refusal(key):
        return []
    folders = []
    for path in sorted(lake.root.glob(f"*/*/{key}/{provenance.RECORD}")):
        record = provenance.read_record(path)
        if record.asset in assets and record.partition == key:
            folders.append(path.parent)
    return folders
