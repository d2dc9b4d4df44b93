"""`gristmill parts`: one share of the parts of a partition, for an array job; see `build.py`."""

from __future__ import annotations

import click
import dagster as dg

from assets import choices
from commands.checkout import CheckoutCommand, open_instance
from commands.terminal import say, shown
from gristmill.asset import Asset, Wanted, declared
from gristmill.contract import GristmillError
from gristmill.publish.build import Build
from gristmill.publish.by_rank import ShareBuilt, build_share
from gristmill.run.progress import reporter, shown_on_stderr
from resources.lake import Lake


@click.command(cls=CheckoutCommand)
@click.argument("share", type=click.IntRange(min=1))
@click.argument("of", type=click.IntRange(min=1))
@click.argument("asset")
@click.argument("partition", required=False)
def parts(share: int, of: int, asset: str, partition: str | None) -> None:
    """Make share SHARE, from 1, of OF shares of the parts of PARTITION of ASSET; publish nothing.

    For array jobs on one file system: shares may run at once, in any order, and again; what is
    finished is not made again. `gristmill materialize` or `gristmill build` then takes over the
    parts, makes those that are missing, and publishes.
    """
    if share > of:
        raise click.UsageError(f"share {share}: must be at most {of}")
    lake = Lake()
    if not partition and asset in in_parts():
        raise click.UsageError(f"{asset} needs a partition; its partitions: {_known(lake, asset)}")
    build = described(lake, asset, partition)
    if reason := _indivisible(build):
        say(f"{shown(build.title)}: no share: {reason}; it is built in one process")
        return
    with shown_on_stderr():
        progress = reporter(work=f"{asset} {partition or ''}".rstrip())
        with progress.working() as lines, lake.engine():
            built = build_share(build, share, of, progress)
            lines.append("done")
    say(f"{shown(build.title)}: share {share} of {of}: {_outcome(built)}")


def described(lake: Lake, asset: str, partition: str | None) -> Build:
    """The build of a partition, as a run without a config makes it.

    Raises UsageError for an asset that is not made in parts and for an unknown partition,
    GristmillError for a file of settings that is refused.
    """
    known = in_parts()
    if asset not in known:
        raise click.UsageError(f"{asset!r} is none of {', '.join(known)}")
    if refused := choices.refused_files(lake, [asset]):
        raise GristmillError("\n".join(refused))
    try:
        return known[asset].build(Wanted(known[asset], lake, partition or ""))
    except ValueError as error:
        raise click.UsageError(f"partition {error}") from error


def in_parts() -> dict[str, Asset]:
    """The assets that are made in parts; of the others a share would make the whole."""
    return {name: asset for name, asset in declared().items() if asset.in_parts}


def _known(lake: Lake, asset: str) -> str:
    """The partitions that there are without a drop or that the instance knows, for a message."""
    # A share that is right needs neither.
    from commands.graph import Graph, first_and_last

    with open_instance() as instance:
        return first_and_last(Graph(instance, lake).possible(dg.AssetKey.from_user_string(asset)))


def _indivisible(build: Build) -> str | None:
    """Why the tasks of a build depend on parts before them; None if they do not."""
    if getattr(build.config, "capped", False):
        return "under a cap on rows or tokens each part depends on those before"
    if build.asset == "synth/harmony" and getattr(build.config, "workers", 0) <= 1:
        return "with one worker each part depends on those before (set workers = 2 or more)"
    return None


def _outcome(built: ShareBuilt) -> str:
    if built.published:
        return "nothing to do: the partition is published"
    return f"{built.made} parts made, {built.taken_over} were there; {built.parts} in all shares"
