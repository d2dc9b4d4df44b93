"""`gristmill look`: what is in files, before anything is built."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from gristmill.cli import data_root_option
from gristmill.printable import plain


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--all", "is_all", is_flag=True, help="Read every row; else heads, tails, footers.")
@click.option("--write", "is_written", is_flag=True, help="Write the recipe where it is read.")
@data_root_option
def look(path: Path, is_all: bool, is_written: bool, data_root: Path) -> None:
    """Say what is in PATH, a folder or a file, before anything is built.

    Files and splits, columns with types, what the columns mean, damage, licence, and the recipe
    that it proposes or the family that reads the files as they are. It is a guess: look at it.
    Nothing is built; --write puts the recipe beside the files, and that of puzzles below DATA_ROOT.
    """
    from gristmill.leaks import commands as leaks
    from gristmill.look import finding, report

    found = finding.look(path, is_all=is_all)
    with TemporaryDirectory() as scratch:
        finding.alone(found, Path(scratch))
    for line in report.lines(found, data_root, is_written=is_written):
        click.echo(line)
    for line in leaks.lines(data_root, path, is_all=is_all):
        click.echo(plain(f"note: {line}"))
    if is_written:
        click.echo(plain(f"written: {finding.write(found, data_root)}"))
