"""`gristmill ui`: serve the project's Dagster instance in a browser."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from commands.checkout import CheckoutCommand, open_instance
from commands.instance import dagster_home

ADDRESS = "127.0.0.1"
PORT = 3000
LOCK = "ui.lock"


@click.command(cls=CheckoutCommand, interrupted="nothing is served")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    show_default=True,
    help="Port on 127.0.0.1. The web server has no login.",
)
@click.option(
    "--verbose", is_flag=True, help="Show all that Dagster logs: each tick and event of a run."
)
def ui(port: int, verbose: bool) -> None:
    """Serve the instance at http://127.0.0.1:PORT: the UI, the sensors and the schedules.

    Before it serves, it closes runs whose process is gone. It refuses a port that is taken, and
    an instance on which another daemon works. Ctrl-C ends all of it, runs under way included.
    What pages of other sites send is refused. The log has a line for each run that ended and for
    what the sensors find.
    """
    from commands.serving import services

    checkout = Path.cwd()
    with services.instance_lock((dagster_home() or checkout / ".dagster") / LOCK) as lock:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ADDRESS, port))
            except OSError as error:
                raise click.ClickException(
                    f"port {port} of {ADDRESS} cannot be used ({error.strerror}): choose another "
                    "with --port (PORT= of `make ui`), or stop the server that has it"
                ) from error
        _make_ready()
        # The services find the instance as the other commands do: see `open_instance`.
        os.environ["DAGSTER_HOME"] = os.environ.get("DAGSTER_HOME") or str(checkout)
        try:
            services.serve(checkout, ADDRESS, port, lock, is_verbose=verbose)
        finally:
            with open_instance() as instance:
                services.forget_heartbeats(instance)


def _make_ready() -> None:
    """Say what is served, and close runs whose process is gone."""
    from commands.checkout import say, shown
    from commands.prune import close_dead_runs
    from commands.serving import services
    from gristmill.provenance import find_artifacts
    from resources import Lake

    with open_instance() as instance:
        services.refuse_other_daemons(instance, say)
        for line in close_dead_runs(instance):
            say(f"closed {shown(line)}")
    root = Lake().root
    count = find_artifacts.count(root) if root.is_dir() else 0
    artifacts = "1 artifact" if count == 1 else f"{count:,} artifacts"
    say(f"serving the data root {shown(str(root))} with {artifacts}")
