"""`gristmill prune`: bound the history that Dagster keeps of runs."""

from __future__ import annotations

import click

from commands.checkout import CheckoutCommand, open_instance
from commands.terminal import say, shown


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.option(
    "--keep-days",
    type=click.IntRange(min=1, max=36_500),
    default=30,
    show_default=True,
    help="Runs and ticks of so many days stay.",
)
@click.option(
    "--keep-runs",
    type=click.IntRange(min=0, max=10_000_000),
    default=1000,
    show_default=True,
    help="But no more than so many runs, the newest ones.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(keep_days: int, keep_runs: int, dry_run: bool) -> None:
    """Remove old runs, logs and ticks from the instance; artifacts and drops stay.

    Artifacts stay, and what the UI says of each partition: its newest run is kept, without its
    log unless it failed. Runs that have not ended are never touched. It may run while the
    instance is served, and may be stopped at any time.
    """
    from assets.history.retention import prune as prune_instance
    from assets.history.tables import OtherStorage

    with open_instance() as instance:
        try:
            pruned = prune_instance(instance, keep_days, keep_runs, dry_run=dry_run, report=say)
        except OtherStorage as reason:
            raise click.ClickException(str(reason)) from reason
    verb = "would be removed" if dry_run else "removed"
    say(
        f"{verb}: {pruned.runs:,} runs, the logs of {pruned.emptied:,} more, {pruned.ticks:,} "
        f"ticks, {pruned.events:,} events of arrivals; logs of {_megabytes(pruned.log_bytes)}"
    )
    say(f"{pruned.kept:,} runs stay")
    if dry_run:
        say(f"the instance has {_megabytes(pruned.before)}")
        return
    say(f"the instance had {_megabytes(pruned.before)}, now {_megabytes(pruned.after)}")
    if pruned.not_compacted and (pruned.after < pruned.before or pruned.runs or pruned.ticks):
        say(
            f"the databases keep their size for now ({shown(pruned.not_compacted)}): what was "
            "freed in them is used again"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
