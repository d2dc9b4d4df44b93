"""`gristmill build`: partitions without a Dagster run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

import definitions
from assets import choices
from assets.inbox import Inbox
from assets.publishing import STATUS, cure, pushed
from commands.checkout import NO_WAIT, SET, CheckoutCommand, say, settings_of, shown
from gristmill.asset import Asset, Wanted, declared
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.inbox import REFUSED, Standing, present_drops
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.inventory import Entry
from gristmill.publish.build import Build, Published
from gristmill.publish.publish import build_rank, publish
from gristmill.run import interrupts
from gristmill.run.progress import Progress, reporter, shown_on_stderr
from gristmill.settings.fields import nearest
from resources import Lake


@click.command(cls=CheckoutCommand)
@click.argument("asset")
@click.argument("partition", required=False)
@click.option(
    "--rank", type=click.IntRange(min=0), help="Make the parts of this rank alone, from 0."
)
@click.option(
    "--world-size",
    type=click.IntRange(min=1),
    help="Number of ranks; it comes before that of gristmill.toml.",
)
@click.option("--set", "words", multiple=True, metavar="FIELD=VALUE", help=SET)
@click.option("--no-wait", is_flag=True, help=NO_WAIT)
def build(
    asset: str,
    partition: str | None,
    rank: int | None,
    world_size: int | None,
    words: tuple[str, ...],
    no_wait: bool,
) -> None:
    """Build and publish PARTITION of ASSET in this process, without a Dagster run.

    A path in place of ASSET is a file or folder of your own: it is looked at, copied into a drop
    with the recipe that the look proposes, and built. It takes --name, --replace and --data-root.

    Without PARTITION it takes every partition whose inputs are there, continues after one that
    fails, and names each drop of the asset that nothing is built from.

    With --rank and --world-size it makes the parts of one rank, for array jobs on one file system.
    Ranks may run at once, in any order, and again. The one that finds the parts of all ranks
    publishes. The UI shows the artifact after the next `gristmill materialize`, which builds
    nothing again. What is published is pushed to the mirror that gristmill.toml names.
    """
    if (rank is None) != (world_size is None):
        raise click.UsageError("--rank and --world-size belong together")
    known = dict(sorted(declared().items()))
    if asset not in known:
        close = nearest(asset, known)
        hint = f"no asset: did you mean {close}?" if close else f"none of {', '.join(known)}"
        raise click.UsageError(f"{asset!r} is {hint}")
    wanted, lake = known[asset], Lake()
    values = settings_of(asset, words)
    if refused := choices.refused_files(lake, [asset]):
        raise GristmillError("\n".join(refused))
    if rank is not None and world_size is not None:
        _check_rank(wanted, rank, world_size)
        if "world_size" in values:
            raise click.UsageError("--set world_size: leave it out, --world-size gives it")
    if partition == "":
        raise click.UsageError(f"{asset}: the partition is empty: name one, or leave it out")
    # An asset without partitions is named as a whole, asked for by a drop or not.
    is_named = partition is not None or not wanted.partitions
    keys = [partition or ""] if is_named else wanted.ready(lake)
    idle = [] if is_named else list(_idle_drops(lake, asset))
    for drop in idle:
        say(f"{drop.state} {shown(drop.key)}: {shown(drop.reason)}")
    is_refused = any(drop.state == REFUSED for drop in idle)
    if not keys and not is_refused:
        raise GristmillError(f"{asset}: no partition can be built: {_first(lake, wanted)}")
    work = _Work(wanted, lake, rank, world_size, values, not no_wait)
    failed = work.build(keys, is_named)
    problems = [f"not built: {line}" for line in failed]
    if missed := work.missed:
        problems.append(
            f"published, but {STATUS}: {', '.join(missed)}\n"
            f"What to do: {cure(lake.mirror(), missed)}"
        )
    if problems:
        raise GristmillError("\n".join(problems))
    if is_refused:
        raise SystemExit(1)


class _Work:
    """One call of the command: builds partitions one after the other."""

    def __init__(
        self,
        asset: Asset,
        lake: Lake,
        rank: int | None,
        world_size: int | None,
        values: Mapping[str, Any],
        wait: bool,
    ) -> None:
        self._asset, self._lake = asset, lake
        self._rank, self._wait = rank, wait
        self._values = {**values} if world_size is None else {**values, "world_size": world_size}
        self._is_chosen = bool(values)
        self._mirror = lake.mirror()
        self._noted: set[str] = set()
        self.missed: list[str] = []

    def build(self, keys: Sequence[str], is_named: bool) -> list[str]:
        """Build partitions; returns those that failed, with the reason.

        If named, any reason is an error.
        """
        failed = []
        with shown_on_stderr():
            for key in keys:
                interrupts.raise_again()
                try:
                    self._build(key)
                except NothingToBuild as reason:
                    if is_named:
                        raise
                    say(f"{shown(key or self._asset.asset)}: not built: {shown(str(reason))}")
                except GristmillError as error:
                    if is_named:
                        raise
                    failed.append(f"{key or self._asset.asset}: {error}")
        return failed

    def _build(self, key: str) -> None:
        progress = reporter(work=f"{self._asset.asset} {key}".rstrip())
        with progress.working() as lines, self._lake.engine():
            done: Artifact | None
            if self._rank is None:
                described = _described(self._wanted(key, self._values))
                self._say(publish(described, wait=self._wait, progress=progress))
                done = Artifact(described.folder, described.record_path)
            else:
                done = self._build_rank(key, self._rank, progress)
            if self._mirror.takes(self._asset.asset) and done is not None:
                for result in pushed(self._lake.root, self._mirror, [done], progress):
                    say(shown(str(result)))
                    if result.error is not None:
                        self.missed.append(Entry.of(self._lake.root, done).name)
            lines.append("parts made" if done is None else "done")

    def _build_rank(self, key: str, rank: int, progress: Progress) -> Artifact | None:
        """Make the parts of a rank; the artifact if it is published then."""
        assert self._asset.ranks is not None
        described = _described(self._wanted(key, self._values))
        by_files = {name: value for name, value in self._values.items() if name != "world_size"}
        world_size = self._values["world_size"]
        configured = self._asset.ranks(self._wanted(key, by_files)).world_size
        if configured != world_size:
            self._note(_world_size_note(self._lake, self._asset, key, configured, world_size))
        ranks = self._asset.ranks(self._wanted(key, self._values))
        built = build_rank(described, ranks, rank, progress, wait=self._wait)
        say(f"{shown(described.title)}: rank {rank}: {built.made} parts made")
        if built.published is None:
            missing = ", ".join(map(str, built.missing))
            say(f"{shown(described.title)}: not published yet: parts are missing of rank {missing}")
            return None
        self._say(built.published)
        return Artifact(described.folder, described.record_path)

    def _wanted(self, key: str, values: Mapping[str, Any]) -> Wanted:
        return Wanted(self._asset, self._lake, key, values)

    def _say(self, published: Published) -> None:
        record = published.record
        what = "published" if published.rebuilt else "unchanged"
        say(f"{shown(str(published.folder))}: {what}, data version {record.data_version[:12]}")
        for note in [published.account, published.not_checked, *published.notes]:
            if note:
                say(shown(note))
        for differing in choices.config_notes(self._lake, record) if self._is_chosen else ():
            self._note(f"note: {differing.found}")

    def _note(self, note: str) -> None:
        """Print a note, which may be that of another partition, once."""
        if note not in self._noted:
            say(shown(note))
        self._noted.add(note)


def _first(lake: Lake, asset: Asset) -> str:
    """What to do before any partition of an asset can be built."""
    if keys := replace(asset, is_asked=lambda *_: True).ready(lake):
        table = (
            "" if asset.table is None else f", or give {asset.table.header} a key in gristmill.toml"
        )
        return f"it is built on request: name one of {', '.join(keys)}{table}"
    inboxes = [lake.inbox(name) for name in _inboxes_of(asset.asset)]
    if inboxes and not any(path.is_dir() and any(path.iterdir()) for path in inboxes):
        return f"copy a drop into {' or '.join(map(str, inboxes))}"
    built = [name for name in asset.inputs if name in declared()]
    return f"build its inputs first{': ' if built else ''}{', '.join(built)}"


def _inboxes_of(asset: str) -> dict[str, Inbox]:
    """The inboxes whose drops an asset is built from, by their folders."""
    inboxes = (each for family in definitions.families() for each in family.inboxes)
    return {
        inbox.folder: inbox
        for inbox in inboxes
        if any(target.key.to_user_string() == asset for target in inbox.targets)
    }


def _idle_drops(lake: Lake, asset: str) -> Iterator[Standing]:
    """Yields the drops of the inboxes of an asset that nothing is built from."""
    for name, inbox in _inboxes_of(asset).items():
        found = present_drops(lake.inbox(name), lake.asked(name), inbox.shape)
        for drop in found.out_of_order:
            yield replace(drop, key=f"drops/{name}/{drop.key}")


def _check_rank(asset: Asset, rank: int, world_size: int) -> None:
    """Raise UsageError for ranks that do not fit."""
    if asset.ranks is None:
        raise click.UsageError(f"{asset.asset} has no ranks: leave out --rank")
    if rank >= world_size:
        raise click.UsageError(f"--rank {rank}: must be below --world-size {world_size}")


def _world_size_note(
    lake: Lake, asset: Asset, partition: str, configured: int, world_size: int
) -> str:
    """What the next build by a run does: the number is part of the fingerprint."""
    given = asset.settings(lake, partition)
    source, target = asset.place_of_choice(lake, partition, "world_size", given)
    return (
        f"note: {source} gives world_size = {configured}, with which the next "
        f"`gristmill materialize` builds again: write world_size = {world_size} under {target}"
    )


def _described(wanted: Wanted) -> Build:
    """The build of a partition. Raises UsageError for an unknown one."""
    try:
        return wanted.asset.build(wanted)
    except ValueError as error:
        raise click.UsageError(f"partition {error}") from error
