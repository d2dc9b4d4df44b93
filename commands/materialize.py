"""`gristmill materialize`: build assets in this terminal, as the UI's buttons do.

What stands is said without Dagster, whose import takes longer than all else: see `outcomes.Call`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from commands import outcomes as table
from commands.checkout import NO_WAIT, SET, CheckoutCommand, say
from commands.outcomes import Call


@click.command(cls=CheckoutCommand)
@click.argument("selection", nargs=-1, metavar="[ASSET]...")
@click.option("--partition", "partitions", multiple=True, help="Only this partition; repeatable.")
@click.option(
    "--list",
    "listed",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="Only the partitions in this file: one a line, or a link to its drop.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Every asset, every partition that has a drop."
)
@click.option("--rebuild", is_flag=True, help="Build unchanged artifacts, too.")
@click.option(
    "--replace-differing",
    is_flag=True,
    help="With --rebuild: publish contents that differ from the published ones, though inputs, "
    "config and code are the same. The record names the version that was replaced.",
)
@click.option("--dry-run", is_flag=True, help="Build nothing; say what would be built, and why.")
@click.option("--set", "words", multiple=True, metavar="FIELD=VALUE", help=SET)
@click.option("--no-wait", is_flag=True, help=NO_WAIT)
@click.pass_obj
def materialize(
    started_in: Path,
    selection: tuple[str, ...],
    partitions: tuple[str, ...],
    listed: Path | None,
    everything: bool,
    rebuild: bool,
    replace_differing: bool,
    dry_run: bool,
    words: tuple[str, ...],
    no_wait: bool,
) -> None:
    """Build assets, as in `macroxue/pack --partition d6_v1`, or `--all`.

    First, the drops in the inboxes become partitions. What is current needs no run. The command
    ends with a list of what was built and where, a line for each drop of these assets from which
    nothing is built, and with status 1 if a build or a check failed, if a drop is refused, or if a
    partition that was named is not built.
    """
    for is_wrong, rule in (
        (bool(selection) == everything, "give either the names of assets, or --all"),
        (partitions and everything, "--partition goes with the name of an asset, not with --all"),
        (listed and everything, "--list goes with the name of an asset, not with --all"),
        (replace_differing and not rebuild, "--replace-differing goes with --rebuild"),
        (words and len(selection) != 1, "--set goes with the name of one asset"),
        (words and dry_run, "--dry-run says what is built without --set: give one of them"),
    ):
        if is_wrong:
            raise click.UsageError(rule)
    started = time.monotonic()
    call = Call(
        selection, partitions, listed, words, rebuild, replace_differing, dry_run, not no_wait
    )
    if (answer := call.standing_answer()) is None:
        from commands.selection import answer_of

        answer = answer_of(call)
    if answer.outcomes:
        seconds = time.monotonic() - started
        table.show(answer.outcomes, seconds, started_in, named=answer.is_named)
    for line in answer.lines:
        say(line)
    if answer.is_failure:
        sys.exit(1)
