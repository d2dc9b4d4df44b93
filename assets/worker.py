"""The process of a run: its identity in the run's tags, and its garbage collector.

Dagster's launcher on one machine has no health check: a run whose process was killed
together with the machine stays STARTED. `gristmill reap` compares the tag with the
processes that live.
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
def freeze_imports() -> None:
    """Exclude all objects that exist at the first call from garbage collection.

    The objects that Dagster imported and set up for a run live as long as its process, and
    walking over them costs a small run as much as its own work. Later calls do nothing, since
    freezing also keeps what is garbage at that moment.
    """
    gc.freeze()


def sign(context: dg.AssetExecutionContext) -> None:
    """Write the identity of this process into the tags of the run, unless it is there already.

    context: the context of a step of the run.
    """
    signature = identity(os.getpid())
    if signature is not None and context.run.tags.get(TAG) != signature:
        context.instance.add_run_tags(context.run.run_id, {TAG: signature})


def identity(process: int) -> str | None:
    """Returns boot id, process id and start time of a living process; None if there is none.

    The start time, in clock ticks since the boot, distinguishes a process from a later one with
    the same id. The boot id is cut to eight digits, since the UI shows the tag of every run.

    process: the process id.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        # The command name in parentheses may contain spaces; the fields follow it.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state == "Z" else f"{boot}:{process}:{started}"


def is_alive(signature: str) -> bool:
    """Returns whether the process of a signature still runs on this machine.

    signature: the value of the tag, as `identity` returned it.
    """
    _, process, _ = signature.split(":")
    return identity(int(process)) == signature


def answers(server: str) -> bool:
    """Returns whether a code server accepts connections.

    server: the value of a run's tag `.dagster/grpc_info`, a JSON object.
    """
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
