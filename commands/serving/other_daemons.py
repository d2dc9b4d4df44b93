"""Whether another daemon works on the instance: by the heartbeats that daemons leave in it.

The lock of `services.py` keeps a second `gristmill ui` away. A `dagster dev` does not take it, and
its daemon outlives it where somebody kills it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import dagster as dg

# A daemon writes one every 30 seconds.
RECENT_SECONDS = 60.0
WAIT_SECONDS = 35.0
_POLL_SECONDS = 0.5


def refuse_other_daemons(
    instance: dg.DagsterInstance,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait, where heartbeats are recent, whether one is renewed."""
    before = _heartbeats(instance)
    newest = max(before.values(), default=0.0)
    if time.time() - newest > RECENT_SECONDS:
        return
    say(
        f"a daemon worked on this instance {time.time() - newest:.0f} seconds ago and did not end "
        f"in order: waiting up to {WAIT_SECONDS:.0f} seconds to see that it is gone"
    )
    for _ in range(round(WAIT_SECONDS / _POLL_SECONDS)):
        if any(at > before.get(name, 0.0) for name, at in _heartbeats(instance).items()):
            named = "; ".join(daemons()) or "`ps aux | grep dagster` lists candidates"
            raise click.ClickException(
                "another Dagster daemon works on this instance, as one of `dagster dev` or of "
                f"`dagster-daemon`: stop it first ({named})"
            )
        sleep(_POLL_SECONDS)


def forget_heartbeats(instance: dg.DagsterInstance) -> None:
    """Remove the heartbeats of daemons that have ended, so that the next start need not wait."""
    instance.wipe_daemon_heartbeats()


def daemons(processes: Path = Path("/proc")) -> Iterator[str]:
    """Yields the processes of this machine that look like a Dagster daemon, as `process 12: …`."""
    for folder in sorted(processes.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        line = " ".join(filter(None, words))
        is_daemon = "dagster-daemon" in line or "dagster._daemon" in line
        if (is_daemon or "dagster dev" in line) and int(folder.name) != os.getpid():
            yield f"process {folder.name}: {line[:80]}"


def _heartbeats(instance: dg.DagsterInstance) -> dict[str, float]:
    """When each daemon of the instance last said that it works, in seconds since 1970."""
    found = instance.get_daemon_heartbeats().values()
    return {f"{one.daemon_type} {one.daemon_id}": one.timestamp for one in found}
