"""`gristmill fetch`: download raw files of a corpus into a drop."""

from __future__ import annotations

import click
from rich.markup import escape

from commands.checkout import CheckoutCommand
from commands.terminal import say
from gristmill.synth.raw import files as raw
from resources import CorporaHub
from resources.lake import Lake


@click.command(cls=CheckoutCommand)
@click.argument("corpus", type=click.Choice(["synth"]))
@click.option("--files", default=raw.FILES, show_default=True, help="How many, from the first on.")
@click.option("--repo", default=raw.DATASET, show_default=True, help="The dataset's repository.")
@click.option("--revision", default=raw.REVISION, show_default=True, help="A commit's 40 digits.")
@click.option("--endpoint", default="", help="Address of the hub, if not the public one.")
def fetch(corpus: str, files: int, repo: str, revision: str, endpoint: str) -> None:
    """Download the raw files of CORPUS from its hub into a drop, which the sensor builds.

    A fetch that was interrupted continues where it stopped. HF_TOKEN is sent if it is set.
    """
    try:
        hub = CorporaHub(repo=repo, revision=revision, files=files, endpoint=endpoint)
        inbox = Lake().inbox(corpus)
        say(f"{escape(repo)} at {escape(revision[:8])}, {files} files to {escape(str(inbox))}")
        fetched = hub.fetch(inbox)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    kept = len(fetched.files) - fetched.downloaded
    say(
        f"{escape(str(inbox / hub.drop))}: {fetched.downloaded} files downloaded "
        f"({fetched.bytes:,} bytes), {kept} kept; "
        "`gristmill materialize --all` builds from it"
    )
