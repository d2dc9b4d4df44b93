"""`gristmill fetch`: download raw files of a corpus into a drop."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

import definitions
from commands.checkout import CheckoutCommand
from commands.terminal import say
from resources.lake import Lake

_HUBS = {corpus: hub for family in definitions.families() for corpus, hub in family.hubs.items()}


@click.command(cls=CheckoutCommand)
@click.argument("corpus", type=click.Choice(sorted(_HUBS)))
@click.option("--files", type=int, help="How many, from the first on; all by default.")
@click.option("--repo", help="The dataset's repository, if not the pinned one.")
@click.option("--revision", help="A commit's 40 digits, if not the pinned one.")
@click.option("--endpoint", help="Address of the hub, if not the public one.")
def fetch(corpus: str, **chosen: Any) -> None:
    """Download the raw files of CORPUS from its hub into a drop, which the sensor builds.

    A fetch that was interrupted continues where it stopped. HF_TOKEN is sent if it is set.
    """
    given = {name: value for name, value in chosen.items() if value is not None}
    try:
        hub = type(_HUBS[corpus])(**{**_HUBS[corpus].model_dump(), **given})
        inbox = Lake().inbox(corpus)
        where = f"{escape(hub.repo)} at {escape(hub.revision[:8])}"
        say(f"{where}, {hub.files} files to {escape(str(inbox))}")
        fetched = hub.fetch(inbox)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    kept = len(fetched.files) - fetched.downloaded
    say(
        f"{escape(str(inbox / hub.drop))}: {fetched.downloaded} files downloaded "
        f"({fetched.bytes:,} bytes), {kept} kept; "
        "`gristmill materialize --all` builds from it"
    )
