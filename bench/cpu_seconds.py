"""CPU seconds of this process with all its children, those that still run included.

A build reads Parquet in a child process that stays for the next file, which
`time.process_time` does not count.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """CPU seconds so far: of this process, its dead children, and its living ones."""
    times = os.times()
    below = {os.getpid()}
    processes = sorted(_processes())
    for _ in range(4):  # a grandchild may have a smaller number than its parent
        below |= {number for number, parent, _ in processes if parent in below}
    living = sum(seconds for number, _, seconds in processes if number in below - {os.getpid()})
    return time.process_time() + times.children_user + times.children_system + living


def _processes() -> list[tuple[int, int, float]]:
    """Number, parent and CPU seconds of every process, those of dead threads included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            threads = [
                int((task / "schedstat").read_text().split()[0]) / 1e9
                for task in (stat.parent / "task").iterdir()
            ]
        except OSError:
            continue  # it has ended since
        # The second counts dead threads, too, in steps of a hundredth of a second.
        seconds = max(sum(threads), (int(fields[11]) + int(fields[12])) * _TICK)
        found.append((int(stat.parent.name), int(fields[1]), seconds))
    return found
