"""The commands `log` and `diff`: the versions of an artifact, and what differs between two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gristmill.cli import data_root_option
from gristmill.printable import printable

if TYPE_CHECKING:
    from gristmill.provenance.inventory import Entry

_partition = click.option("--partition", help="The partition, where there are several.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("artifact")
@click.argument("others", metavar="", nargs=-1)
@_partition
@_json
@data_root_option
def log(
    artifact: str, others: tuple[str, ...], partition: str | None, as_json: bool, data_root: Path
) -> None:
    """List the versions of ARTIFACT, the newest first: when, why, and how many rows.

    ARTIFACT is a folder, a path in the data root, PATH@PARTITION, or an asset. What a build
    replaced is kept without its contents: see docs/history.md.
    """
    from gristmill.history.versions import lines_of

    if others:
        raise click.UsageError(f"name PATH@PARTITION: {printable('@'.join([artifact, *others]))}")
    root, entry = _named(artifact, partition, data_root)
    listed, wrong = lines_of(root, entry)
    if as_json:
        click.echo(json.dumps({"artifact": entry.name, "versions": listed, "damaged": wrong}))
        return
    for each in listed:
        rows = "" if each["rows"] is None else f"  {each['rows']:,} rows"
        is_now = "  published" if each["published"] else ""
        line = f"{each['data_version'][:12]}  {each['created'][:19]}{rows}{is_now}"
        for text in (line, *(f"    {reason}" for reason in each["why"])):
            click.echo(printable(text))
    for reason in wrong:
        click.echo(printable(reason), err=True)


@click.command()
@click.argument("artifact")
@click.argument("versions", metavar="[A [B]]", nargs=-1)
@_partition
@click.option(
    "--examples",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help="Rows of each kind to show.",
)
@_json
@data_root_option
def diff(
    artifact: str,
    versions: tuple[str, ...],
    partition: str | None,
    examples: int,
    as_json: bool,
    data_root: Path,
) -> None:
    """Say which rows of ARTIFACT were added, removed, changed or moved to another split.

    A and B are data versions, or their first digits, as `gristmill log` prints them; B is the
    published one where it is left out, and without both the last two are compared. A row is a
    record, a conversation, a game, a puzzle with its augmentations, or a log of 2048.
    """
    from gristmill.history.diff import between, chosen, lines

    if len(versions) > 2:
        raise click.UsageError("two versions are compared: A and B")
    root, entry = _named(artifact, partition, data_root)
    old, new = chosen(root, entry, versions)
    found = between(old, new, examples)
    ends = {"old": old.record.data_version, "new": new.record.data_version}
    if as_json:
        click.echo(json.dumps({"artifact": entry.name, **ends, **found}))
        return
    rows, *kinds = lines(found)
    head = f"{entry.name}: {ends['old'][:12]} -> {ends['new'][:12]}: {rows}"
    for line in (head, *kinds):
        click.echo(printable(line))


def _named(artifact: str, partition: str | None, data_root: Path) -> tuple[Path, Entry]:
    """The data root and the artifact that a person names; also one that was removed."""
    from gristmill.history.versions import found
    from gristmill.layout import refuse_missing_root
    from gristmill.provenance.find_artifacts import recorded_root

    place, _, own = artifact.rpartition("@")
    if not place or "/" in own or Path(artifact).is_dir():  # of a folder above it
        place, own = artifact, ""
    folder = Path(place).absolute()
    if folder.is_dir() and (root := recorded_root(folder)) is not None:
        data_root, artifact = root, folder.relative_to(root).as_posix()
    refuse_missing_root(data_root)
    return data_root.absolute(), found(data_root.absolute(), artifact, partition or own)
