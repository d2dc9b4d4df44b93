"""The commands `project` and `card`: artifacts for programs that do not know Gristmill."""

from __future__ import annotations

from pathlib import Path

import click

from gristmill.printable import printable

_place = click.argument(
    "place", metavar="PATH", type=click.Path(exists=True, file_okay=False, path_type=Path)
)


@click.command()
@_place
@click.argument("out", type=click.Path(path_type=Path))
def project(place: Path, out: Path) -> None:
    """Write the rows of the artifact at PATH as Parquet into the new folder OUT.

    `load_dataset` of the hub opens OUT as it stands, and so does what reads Parquet.
    """
    from gristmill.exports import project as projecting

    for name, rows in projecting.project(place, out).items():
        click.echo(printable(f"{out / name}  {rows:,} rows"))


@click.command()
@_place
@click.option("--readme", type=click.Path(dir_okay=False, path_type=Path), help="Complete this.")
def card(place: Path, readme: Path | None) -> None:
    """Print the README.md of the artifact at PATH, by which `load_dataset` opens its files.

    With --readme the head of that file gets the keys that it lacks; what it has stays.
    """
    from gristmill.exports.card import card as text_of

    before = readme.read_text() if readme is not None and readme.exists() else ""
    text = text_of(place, before)
    if readme is None:
        click.echo(text, nl=False)
    else:
        readme.write_text(text)
