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
@click.option(
    "--to",
    type=click.Choice(["parquet", "llm.c", "litdata", "nanochat"]),
    default="parquet",
    show_default=True,
)
@click.option(
    "--tokens",
    type=click.IntRange(1, 5 * 10**8),
    help="llm.c, litdata: after so many a file ends, with a whole document.  [default: 100 "
    "million of llm.c, 16,777,216 of litdata]",
)
def project(place: Path, out: Path, to: str, tokens: int | None) -> None:
    """Write the rows of the artifact at PATH for other programs into the new folder OUT.

    As Parquet: `load_dataset` of the hub opens OUT as it stands, and so does what reads Parquet.
    For llm.c and modded-nanogpt, or as chunks of litdata for litgpt: documents of tokens, of
    reasoning/gpt2_shards, reasoning/tokens or synth/kd_shards. For nanochat: texts, of
    reasoning/normalized.
    """
    from gristmill.exports import project as projecting

    found = projecting.project(place, out, to, tokens)
    unit = {"parquet": "rows", "nanochat": "texts"}.get(to, "tokens")
    for name, count in found.items():
        click.echo(printable(f"{out / name}  {count:,} {unit}"))


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
