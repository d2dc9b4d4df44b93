"""Parts as tasks of Ray: two nodes of one CPU against one, and against two plain processes.

`python -m bench.ray_parts [PARTS [SECONDS]]`: parts of about SECONDS of one CPU each. Seconds are
by the clock, since the nodes work at once; keep the machine free. It needs the extra `ray`, root
and `unshare`: Ray looks for a cloud at each start, so the cluster is on a network of its own.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gristmill.run.parts import PartStore, run_parts
from gristmill.run.ray_parts import RayParts
from gristmill.run.workers import on_other_machines
from tests.clusters.alone import alone, short_folder
from tests.clusters.parts import nodes

_ROUNDS_IN_SECOND = 1_500_000
_PROGRAM = "import sys; from bench import ray_parts; ray_parts.measure(*sys.argv[1:])"


def make(rounds: int, path: Path) -> dict[str, Any]:
    """A part that takes one CPU and little memory."""
    path.write_bytes(hashlib.pbkdf2_hmac("sha256", b"gristmill", b"bench", rounds))
    return {}


def build(folder: Path, parts: int, rounds: int, workers: int) -> float:
    """Seconds to make all parts in a new store."""
    folder.mkdir()
    named = [(f"part-{index}", rounds) for index in range(parts)]
    began = time.perf_counter()
    for _ in run_parts(make, named, PartStore(folder), workers, scratch=folder):
        pass
    return time.perf_counter() - began


def measure(parts: str, seconds: str, folder: str) -> None:
    """Print the seconds of all three, and what they are of each other."""
    count, rounds = int(parts), int(float(seconds) * _ROUNDS_IN_SECOND)
    taken = {}
    for number in (1, 2):
        with nodes(number) as (cluster, _), on_other_machines(RayParts(cluster.address)):
            build(Path(folder, f"first {number}"), 2 * number, 1000, 2)  # its workers start
            taken[f"{number} Ray nodes"] = build(Path(folder, str(number)), count, rounds, 2)
    words = [sys.executable, "-c", "import bench.ray_parts as b, sys, pathlib; print(b.build("]
    words[-1] += "pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), 1))"
    plain = [
        subprocess.Popen(
            [*words, str(Path(folder, f"plain {each}")), str(count // 2), str(rounds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in range(2)
    ]
    taken["2 plain processes"] = max(float(each.communicate()[0]) for each in plain)
    for name, seconds_taken in taken.items():
        print(f"{name:18} {count} parts {seconds_taken:7.2f} s")
    one, two = taken["1 Ray nodes"], taken["2 Ray nodes"]
    print(f"two nodes are {one / two:.2f} times as fast as one")
    print(f"and {taken['2 plain processes'] / two:.2f} times as two plain processes")


def main() -> None:
    """Measure in namespaces of network and processes."""
    parts, seconds = [*sys.argv[1:], *("24", "1")[len(sys.argv) - 1 :]][:2]
    with short_folder() as folder:
        words = ["-c", _PROGRAM, parts, seconds, str(folder)]
        print(alone(words, folder, {"HOME": str(folder)}), end="")


if __name__ == "__main__":
    main()
