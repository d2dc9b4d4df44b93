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
    default="parquet",
    show_default=True,
    metavar="FORM",
    help="parquet, messages, llm.c, litdata, datatrove, nanochat or disk, as far as the artifact "
    "can become it.",
)
@click.option(
    "--tokens",
    type=click.IntRange(1, 5 * 10**8),
    help="llm.c, litdata, datatrove: after so many a file ends, with a whole document.  [default: "
    "100 million, 16,777,216 of litdata]",
)
@click.option(
    "--thoughts",
    type=click.Choice(["field", "tags"]),
    default="field",
    show_default=True,
    help="messages: a thought is the field `thinking` of its message, or in <think> before "
    "the content.",
)
def project(place: Path, out: Path, to: str, tokens: int | None, thoughts: str) -> None:
    """Write the rows of the artifact at PATH for other programs into the new folder OUT.

    As Parquet: `load_dataset` of the hub opens OUT as it stands, and so does what reads Parquet.
    As messages: conversations in JSON Lines and Parquet, for trainers of chats.
    For llm.c and modded-nanogpt, as chunks of litdata for litgpt, or as streams of datatrove:
    documents of tokens. For nanochat: texts, of reasoning/normalized. As disk: a folder that
    `load_from_disk` opens, whose files stay where they are, of synth/distill or chat/distill.
    Of a folder above several artifacts, as data/distill/synth, all of them are taken.
    """
    from gristmill.exports import project as projecting

    notes: list[str] = []
    found = projecting.project(place, out, to, tokens, is_tagged=thoughts == "tags", notes=notes)
    counts = (f"{out / name}  {n:,} {projecting.FORMS[to][0]}" for name, n in found.items())
    for line in (*counts, *notes):
        click.echo(printable(line))


@click.command()
@_place
@click.option("--readme", type=click.Path(dir_okay=False, path_type=Path), help="Complete this.")
def card(place: Path, readme: Path | None) -> None:
    """Print the README.md of the artifact at PATH, by which `load_dataset` opens its files.

    Of a folder above several artifacts, as data/chess/dataset, it names the files of all. With
    --readme the head of that file gets the keys that it lacks; what it has stays.
    """
    from gristmill.exports.card import card as text_of

    before = readme.read_text() if readme is not None and readme.exists() else ""
    text = text_of(place, before)
    if readme is None:
        click.echo(text, nl=False)
    else:
        readme.write_text(text)
