"""`gristmill ui`: serve the project's Dagster instance in a browser."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from commands.checkout import CheckoutCommand

ADDRESS = "127.0.0.1"
PORT = 3000
LOCK = "ui.lock"


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

    Ctrl-C ends all of it, runs under way included. What pages of other sites send is refused.
    """
    from commands import services

    checkout = Path.cwd()
    with services.instance_lock(_lock_file(checkout)) as lock:
        _probe(port)
        # The services find the instance as the other commands do: see `open_instance`.
        os.environ["DAGSTER_HOME"] = os.environ.get("DAGSTER_HOME") or str(checkout)
        services.serve(checkout, ADDRESS, port, lock)


def _lock_file(checkout: Path) -> Path:
    home = os.environ.get("DAGSTER_HOME")
    return (Path(home) if home else checkout / ".dagster") / LOCK


def _probe(port: int) -> None:
    """Raises click.ClickException where the port cannot be used, before anything starts."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            raise click.ClickException(
                f"port {port} of {ADDRESS} cannot be used ({error.strerror}): choose another "
                "with --port, or stop the server that has it"
            ) from error
