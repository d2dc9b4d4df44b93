"""`gristmill ui`: serve the project's Dagster instance in a browser."""

from __future__ import annotations

import os
import sys

import click

from commands.checkout import CheckoutCommand

ADDRESS = "127.0.0.1"
PORT = 3000


@click.command(cls=CheckoutCommand)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    show_default=True,
    help="Port on 127.0.0.1. The web server has no login.",
)
def ui(port: int) -> None:
    """Serve the instance at http://127.0.0.1:PORT: the UI, the sensors and the schedules.

    This process becomes `dagster dev`, so that Ctrl-C and signals reach it.
    """
    arguments = ["dev", "-w", "workspace.yaml", "-h", ADDRESS, "-p", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "dagster", *arguments])
