"""What many small drops cost that land in an inbox at once, until all of them are built.

Run from the checkout: python -m bench.landing [--drops N]. It serves a copy of the checkout, moves
N drops of 2048 (default 300) into its inbox, and counts the CPU seconds of all processes of the
server until the packs and values are there. Status 1 where that takes more than half of the 1.05
CPU seconds a drop that it took when each drop had a run of its own.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from bench import kit
from bench.servers import Server, copy_checkout
from gristmill.macroxue.samples import write_drop

BOUND_SECONDS = 0.53
_TARGETS = ("packs", "values")
_RUNS = "{ runsOrError { ... on Runs { results { status } } } }"
_OVER = ("SUCCESS", "FAILURE", "CANCELED")
_PATIENCE_SECONDS = 3600.0


def cpu_seconds(server: Server) -> float:
    """Of all processes of a server, those included that have ended."""
    ticks = 0
    for process in server.processes():
        with suppress(OSError):  # it has ended, and its parent counts it
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def landed(scratch: Path, drops: Path, count: int) -> tuple[float, int]:
    """CPU seconds until all drops are built, and the number of runs; `drops` is moved."""
    copy_checkout(scratch / "ours")
    data = scratch / "data"
    (data / "drops").mkdir(parents=True)
    server = Server(scratch / "ours", "gristmill", {"GRISTMILL_DATA": str(data)})
    try:
        server.wait()
        before = cpu_seconds(server)
        drops.rename(data / "drops/macroxue")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not all(_built(data, target, count) for target in _TARGETS) or not _are_over(server):
            if time.monotonic() > deadline:
                raise SystemExit(f"not all of {count} drops are built")
            time.sleep(2)
        runs = server.ask(_RUNS)["runsOrError"]["results"]
        return cpu_seconds(server) - before, len(runs)
    finally:
        server.stop()


def _built(data: Path, target: str, count: int) -> bool:
    return len(list((data / f"macroxue/{target}").glob("d*/provenance.json"))) == count


def _are_over(server: Server) -> bool:
    return all(run["status"] in _OVER for run in server.ask(_RUNS)["runsOrError"]["results"])


def drops(given: kit.Given) -> None:
    one, count = given.scratch / "one", given.drops
    write_drop(one, seed=1, games=2, max_moves=20, depth=6)
    (one / ".done").touch()
    for number in range(count):
        shutil.copytree(one, given.scratch / f"drops/d{number:05}")
    seconds, runs = landed(given.scratch, given.scratch / "drops", count)
    what = f"{count} drops at once: {seconds:.0f} CPU s in {runs} runs, each"
    kit.bounded(what, seconds / count, most=BOUND_SECONDS)


if __name__ == "__main__":
    kit.main(__doc__, drops, drops=300)
