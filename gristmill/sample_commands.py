"""The commands `show` and `trace`: one sample of an artifact, and where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gristmill.contract import GristmillError, Trace
from gristmill.dispatch import kinds_at, recorded_assets
from gristmill.families import (
    Misuse,
    Option,
    Request,
    kind_of_asset,
    options,
    options_of,
)
from gristmill.printable import printable

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class _FamilyOptions(click.Command):
    """A command that also takes the options of all families."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, then those of the families, then `--help`."""
        own = super().get_params(ctx)
        families = (_click_option(option) for option in options(str(self.name)))
        return [*own[:-1], *families, own[-1]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a Misuse ends it with status 2."""
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


def _request(asset: str, path: Path, sample: str, chosen: Mapping[str, Any]) -> Request:
    """The request for an artifact's family. Raises Misuse for an option that it does not take."""
    known = options_of(asset, str(click.get_current_context().command.name))
    for name in _typed(chosen):
        if name not in known:
            raise Misuse(f"--{name} does not apply to artifacts of {asset}")
        if known[name].choices and chosen[name] not in known[name].choices:
            allowed = ", ".join(known[name].choices)
            raise Misuse(f"--{name} {chosen[name]}: artifacts of {asset} take one of {allowed}")
    return Request(path, sample, {name: chosen[name] for name in known})


@click.command(cls=_FamilyOptions)
@click.argument("path", type=_FOLDER)
@click.argument("sample", default="")
@click.option("--table", help="A table of the artifact, by its name; by default the first one.")
def show(path: Path, sample: str, table: str | None, **chosen: Any) -> None:
    """Show row SAMPLE of the artifact at PATH: columns, a board or tokens in colours, origin.

    SAMPLE is a number from 0, an id, or COLUMN=VALUE, which is the first row that fits; or the name
    of a table or partition. Options choose a table of the artifact, or a row. What a row is depends
    on the asset: a step on a board, a conversation, a game. The page of each family in docs/ says
    so.
    """
    from rich.console import Console

    from gristmill.browse import shown

    typed = {"table": table, **chosen}
    request = Request(path, sample, {name: typed[name] for name in _typed(typed)})
    console = Console(highlight=False, markup=False, emoji=False)
    for each in shown.show(request):
        console.print(each, soft_wrap=True)


@click.command(cls=_FamilyOptions)
@click.argument("path", type=_FOLDER)
@click.argument("sample", default="0")
def trace(path: Path, sample: str, **chosen: Any) -> None:
    """Say where SAMPLE of the artifact at PATH came from; samples count from 0.

    The answer goes back to the raw file: its path in the data root, its sha256, the row, the bytes.
    What a sample is depends on the asset: a run, a row, a document, a game by row or by id. For an
    artifact without samples, such as a manifest or a vocabulary, the answer lists its inputs;
    SAMPLE is then a partition of the folder, as `manifest`, or a file in it. Status 1 for a SAMPLE
    that is not there.
    """
    printed = False
    for each in _traced(path, sample, chosen):
        printed = True
        for name, value in each.facts().items():
            click.echo(f"{name}: {printable(str(value))}")
    if not printed:
        raise GristmillError(f"{path} has no sample {sample}")


def _traced(path: Path, sample: str, chosen: Mapping[str, Any]) -> Iterable[Trace]:
    from gristmill.provenance.trace_inputs import inputs_of

    assets = recorded_assets(path)
    own = assets.get(sample)
    asked = kind_of_asset(own) if own is not None else None
    if own is not None and (asked is None or asked.trace is None):
        _refuse_options(own, chosen)
        return inputs_of(path, sample)
    if assets and all(kind_of_asset(asset) is None for asset in assets.values()):
        _refuse_options(next(iter(assets.values())), chosen)
        return inputs_of(path, sample=sample)
    kinds = [asked] if asked is not None else kinds_at(path)
    kind = next((kind for kind in kinds if kind.trace is not None), None)
    if kind is None or kind.trace is None:
        _refuse_options(kinds[0].asset, chosen)
        return inputs_of(path, sample=sample)
    return list(kind.trace(_request(kind.asset, path, sample, chosen)))


def _refuse_options(asset: str, chosen: Mapping[str, Any]) -> None:
    """Raise Misuse for an option, where the answer lists inputs."""
    for name in _typed(chosen):
        raise Misuse(f"--{name} does not apply: artifacts of {asset} have no samples")


def _typed(chosen: Iterable[str]) -> list[str]:
    """The options that a person typed."""
    source = click.get_current_context().get_parameter_source
    return [name for name in chosen if source(name) is ParameterSource.COMMANDLINE]
