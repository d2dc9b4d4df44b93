"""The commands `push` and `pull`: published artifacts to a mirror, and from one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from gristmill.cli import data_root_option
from gristmill.printable import printable

_parallel = click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Files that are on their way at once.",
)
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def _sha256(_: click.Context, __: click.Parameter, value: str) -> str:
    if value and not _HEX.fullmatch(value):
        raise click.BadParameter(f"{value} is no sha256, which has 64 digits of 0-9 and a-f")
    return value


@click.command()
@click.argument("url")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--parquet", is_flag=True, help="hf://: the rows as Parquet, too.")
@_parallel
@data_root_option
def push(url: str, names: tuple[str, ...], data_root: Path, **options: Any) -> None:
    """Add what is published to the mirror at URL, as new versions.

    URL is a folder, s3://bucket/prefix, gs://bucket/prefix or az://account/container/prefix; or a
    dataset repository, hf://datasets/OWNER/NAME, which gets commits. NAME is an artifact's path in
    the data root, a folder above some, PATH@PARTITION, or an asset; without one all artifacts are
    pushed. Each file is compared with its record while it is sent.
    What the mirror has is not sent again, so a push that was stopped continues.
    """
    from gristmill.mirror import transfers
    from gristmill.run.progress import shown_on_stderr

    with shown_on_stderr() as progress:
        done = transfers.push(data_root, url, names, progress=progress, **options)
    _say(done)
    if not done:
        click.echo(f"{data_root}: no artifact is published here")
    if any(each.error for each in done):
        raise SystemExit(1)


@click.command()
@click.argument("url")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--version", default="", metavar="HEX", help="This data version of the one NAME.")
@click.option(
    "--sha256",
    default="",
    callback=_sha256,
    metavar="HEX",
    help="The version of the one NAME that has it.",
)
@click.option("--replace", is_flag=True, help="Replace what is no version of the mirror.")
@click.option("--list", "only_list", is_flag=True, help="List the versions; pull nothing.")
@_parallel
@data_root_option
def pull(
    url: str, names: tuple[str, ...], only_list: bool, data_root: Path, **options: Any
) -> None:
    """Publish versions of the mirror at URL in the data root: the newest of each artifact.

    URL and NAME are as for `gristmill push`, which prints the sha256 of each version. Each file is
    compared with its record; then one rename publishes the artifact. A pull that was stopped goes
    on.
    """
    from gristmill.mirror import transfers, versions
    from gristmill.run.progress import shown_on_stderr

    with shown_on_stderr() as progress:
        if only_list:
            return _say(list(versions.lines(url, names)))
        done = transfers.pull(data_root, url, names, progress=progress, **options)
    _say(done)
    if absent := sum(each.absent for each in done):
        click.echo(
            f"{absent:,} inputs that these were made from are not here: "
            f"gristmill verify --no-inputs {data_root}"
        )
    if any(each.error for each in done):
        raise SystemExit(1)
    return None


def _say(lines: Iterable[object]) -> None:
    for line in lines:
        click.echo(printable(str(line)))
