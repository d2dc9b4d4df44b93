"""`gristmill ui`: serve the project's Dagster instance in a browser."""

from __future__ import annotations

import os
import socket
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
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            # Dagster would start a second daemon on the same instance before it sees this.
            raise click.ClickException(
                f"port {port} of {ADDRESS} cannot be used ({error.strerror}): choose another "
                "with --port, or stop the server that has it"
            ) from error
    arguments = ["dev", "-w", "workspace.yaml", "-h", ADDRESS, "-p", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "dagster", *arguments])
