"""The command `browse`: the pages over an artifact or a data root, without Dagster."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

import click

from gristmill.contract import GristmillError
from gristmill.layout import WORK
from gristmill.provenance import find_artifacts

ADDRESS: Final = "127.0.0.1"
PORT: Final = 3100
KEEP: Final = f"{WORK}/browse"
"""Where a data root keeps the places of lines."""


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    show_default=True,
    help="Port on 127.0.0.1. The pages have no login.",
)
def browse(path: Path, port: int) -> None:
    """Show the rows of the artifact at PATH, or of all below it, in a browser.

    Rows are paged through, searched, filtered and sorted, each with its picture, its raw bytes and
    the way back to the raw file. Ctrl-C ends it. Nothing is written but places of lines and counts,
    below .gristmill/ of the data root. `gristmill ui` serves the same pages under /browse/.
    """
    try:
        from gristmill.browse.web.app import serve
    except ModuleNotFoundError as error:
        raise GristmillError(
            f"the pages need the extra `browse`: pip install 'gristmill[browse]' ({error})"
        ) from error

    root = path.absolute()
    above = find_artifacts.recorded_root(root) or root
    keep = above / KEEP if (above / WORK).is_dir() else None
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((ADDRESS, port))
        except OSError as error:
            raise GristmillError(
                f"port {port} cannot be used ({error.strerror}): give another one with --port"
            ) from error
        serve(root, keep, listening, lambda: click.echo(f"open http://{ADDRESS}:{port}/browse/"))
