"""The commands `show` and `trace`: one sample of an artifact, and where it came from.

Each family's `family.py` says which functions answer, and which options there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gristmill.contract import GristmillError
from gristmill.dispatch import kinds_at
from gristmill.families import Misuse, Option, Request, options
from gristmill.printable import printable

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class _FamilyOptions(click.Command):
    """A command that also takes the options of all families."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        return [*own[:-1], *(_click_option(option) for option in options()), own[-1]]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Misuse as error:
            raise click.UsageError(str(error)) from error


def _click_option(option: Option) -> click.Option:
    kind: Any = option.type
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.least is not None:
        kind = click.IntRange(min=option.least)
    return click.Option(
        [f"--{option.name}"],
        type=kind,
        default=option.default,
        show_default=option.default is not None,
        help=option.help,
    )


@click.command(cls=_FamilyOptions)
@click.argument("path", type=_FOLDER)
@click.argument("sample", default="0")
def show(path: Path, sample: str, **chosen: Any) -> None:
    """Show SAMPLE of the artifact at PATH; samples count from 0.

    A step of a 2048 pack or pool as a board, a conversation of a Harmony shard or a Megatron
    dataset as coloured tokens, a game or a splice of a chess folder on a board.
    """
    from rich.console import Console

    kind = next((kind for kind in kinds_at(path) if kind.show is not None), None)
    if kind is None or kind.show is None:
        raise Misuse(f"{path}: artifacts of {_named(path)} have no samples to show")
    console = Console(highlight=False)
    for shown in kind.show(Request(path, sample, chosen)):
        console.print(shown, soft_wrap=True)


@click.command(cls=_FamilyOptions)
@click.argument("path", type=_FOLDER)
@click.argument("sample")
def trace(path: Path, sample: str, **chosen: Any) -> None:
    """Say where SAMPLE of the artifact at PATH came from; samples count from 0.

    A run of a 2048 pack or pool: its raw files with their sha256. A document of a Megatron
    dataset: the Harmony shard, row and synth_id. A chess game, by row or by game id: the PGN
    file and the game's byte offset.
    """
    kind = next((kind for kind in kinds_at(path) if kind.trace is not None), None)
    if kind is None or kind.trace is None:
        raise Misuse(f"{path}: artifacts of {_named(path)} have no samples to trace")
    found = list(kind.trace(Request(path, sample, chosen)))
    if not found:
        raise GristmillError(f"{path} has no sample {sample}")
    for each in found:
        for name, value in each.facts().items():
            click.echo(f"{name}: {printable(str(value))}")


def _named(path: Path) -> str:
    return ", ".join(kind.asset for kind in kinds_at(path))
