"""The process of a run: what it keeps, and the signature that it leaves.

Dagster's launcher on one machine has no health check: a run whose process went
down with the machine stays STARTED. `gristmill reap` reads the signature.
"""

from __future__ import annotations

import gc
import json
import os
import socket
from functools import cache
from pathlib import Path

import dagster as dg

TAG = "gristmill/worker"


@cache
def settle() -> None:
    """At a process's first step: take all that is there out of the garbage collector's sight.

    What Dagster imported and set up for a run lives as long as its process, and
    walking it costs a small run as much as its own work. Once, since what is
    garbage at that moment stays too.
    """
    gc.freeze()


def sign(context: dg.AssetExecutionContext) -> None:
    """Write this process's identity into the tags of the run, once a process."""
    mine = identity(os.getpid())
    if mine is not None and context.run.tags.get(TAG) != mine:
        context.instance.add_run_tags(context.run.run_id, {TAG: mine})


def identity(process: int) -> str | None:
    """Boot, id and start of a living process, None where there is none.

    The start, in clock ticks since the boot, tells a process from a later one
    with the same id. Eight digits of the boot do: the UI shows the tag of every run.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        # The command name, in parentheses, may hold spaces; fields follow it.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state == "Z" else f"{boot}:{process}:{started}"


def is_alive(signature: str) -> bool:
    """Whether the process that left `signature` still runs on this machine."""
    _, process, _ = signature.split(":")
    return identity(int(process)) == signature


def answers(server: str) -> bool:
    """Whether the code server of a run's `.dagster/grpc_info` tag takes connections."""
    info = json.loads(server)
    try:
        if path := info.get("socket"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
        else:
            socket.create_connection((info["host"], info["port"]), timeout=2).close()
    except OSError:
        return False
    return True
