"""A build whose parts are tasks of a Ray cluster of two nodes; something is killed meanwhile.

`python -c PROGRAM KILLED SEED FOLDER` in namespaces of its own, as `chain.py`. It prints the hash
of each part, whether that stayed, how many parts a killed driver had finished and the next one
took over, how often each was begun, and what the log said.
"""

import hashlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets import worker
from gristmill.families import tables
from gristmill.run.parts import PartStore, run_parts
from gristmill.run.ray_parts import RayParts
from gristmill.run.workers import on_other_machines

# By the module's name, since workers of Ray must find `make`.
PROGRAM = "import sys; from tests.clusters import parts; parts.main(*sys.argv[1:])"
PARTS = 14
KILLED = ("nothing", "worker", "node", "raylet", "driver")
_STEPS = 30
_NODE = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
_HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}


@dataclass(frozen=True)
class Work:
    """One part: some slow steps. begun: a file that each attempt adds its process to."""

    index: int
    begun: Path
    seconds: float = 0.02

    @property
    def name(self) -> str:
        return f"part-{self.index}"


def make(work: Work, path: Path) -> dict[str, Any]:
    """Write a part slowly, after this process has said so."""
    with work.begun.open("a") as file:
        file.write(f"{work.index} {os.getpid()}\n")
    with path.open("xb", buffering=0) as file:
        for step in range(_STEPS):
            file.write(hashlib.sha256(f"{work.index}:{step}".encode()).digest())
            time.sleep(work.seconds)
    return {"index": work.index}


def built(folder: Path) -> dict[str, Any]:
    """Make all parts with the engine that is set, and give their hashes and what was there."""
    store = PartStore(folder)
    works = [Work(index, folder.parent / "begun") for index in range(PARTS)]
    named = [(work.name, work) for work in works]
    parts = {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path, _ in run_parts(make, named, store, 2, scratch=folder)
    }
    return {"parts": parts, "taken_over": store.use.taken_over}


@contextmanager
def nodes(count: int) -> Iterator[tuple[Any, list[Any]]]:
    """A cluster on loopback: a head that runs nothing, and nodes of one CPU each."""
    import ray
    from ray.cluster_utils import Cluster

    head = _NODE | {"num_cpus": 0, "include_dashboard": False, "_system_config": _HEALTH}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster, [cluster.add_node(num_cpus=1, **_NODE) for _ in range(count)]
    finally:
        ray.shutdown()
        cluster.shutdown()


def begun(folder: Path) -> list[tuple[int, int]]:
    """Part and process of all attempts so far."""
    lines = (folder / "begun").read_text().splitlines() if (folder / "begun").exists() else []
    return [(int(index), int(pid)) for index, pid in map(str.split, lines)]


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, "not within 300 s"
        time.sleep(0.01)


def _killer(killed: str, cluster: Any, added: list[Any], folder: Path, after: int) -> None:
    """Kill once some attempts have begun."""
    until(lambda: len(begun(folder)) >= after)
    if killed == "worker":
        os.kill(begun(folder)[-1][1], signal.SIGKILL)
    elif killed == "node":
        cluster.remove_node(added[0], allow_graceful=False)
    else:
        (raylet,) = added[0].all_processes["raylet"]
        os.kill(raylet.process.pid, signal.SIGKILL)


def run(killed: str, seed: str, folder: Path) -> dict[str, Any]:
    """Build on two nodes with one kill, until all parts are there."""
    store = folder / "store"
    store.mkdir()
    after = random.Random(f"{seed} {killed}").randrange(2, PARTS - 2)
    lines: list[str] = []
    finished = 0
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("gristmill").addHandler(handler)
    with nodes(2) as (cluster, added):
        words = [sys.executable, "-c", PROGRAM, "build", cluster.address, str(store)]
        if killed == "driver":
            driver = subprocess.Popen(words)
            until(lambda: len(begun(folder)) >= after)
            driver.kill()
            driver.wait()
            until(lambda: not any(worker.identity(pid) for _, pid in begun(folder)))
            finished = len(list(store.glob("*.json")))
        elif killed != "nothing":
            arguments = (killed, cluster, added, folder, after)
            threading.Thread(target=_killer, args=arguments, daemon=True).start()
        with on_other_machines(RayParts(cluster.address)):
            said = built(store)
        if killed == "raylet":
            time.sleep(_STEPS * 0.02 * 3)  # its worker writes on to the end of its part
    # What the worker of a dead raylet did at the end changed nothing.
    whole = [name for name in said["parts"] if PartStore(store).finished(name) is not None]
    found = {name: hashlib.sha256(PartStore(store).data(name).read_bytes()) for name in whole}
    return said | {
        "stayed": {name: digest.hexdigest() for name, digest in found.items()} == said["parts"],
        "finished": finished,
        "begun": Counter(index for index, _ in begun(folder)),
        "log": lines,
    }


def families(data: Path, home: Path) -> dict[str, Any]:
    """Build all assets of a data root with parts on Ray, two workers wherever there is a choice."""
    from gristmill.cli import main as gristmill
    from gristmill.run import ray_parts

    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    sent: list[int] = []
    send = ray_parts._Flight._send

    def counted(self: Any, one: Any) -> None:
        sent.append(one.index)
        send(self, one)

    ray_parts._Flight._send = counted  # type: ignore[method-assign]
    with nodes(2) as (cluster, _):
        given = (data / "gristmill.toml").read_text()
        lines = [given, "[run]", 'engine = "ray"', f'ray_address = "{cluster.address}"']
        for name, table in tables().items():
            head = f"[{name.replace('/', '.')}]"
            if "workers" in table.rules() and head not in given:
                lines += [head, "workers = 2"]
        (data / "gristmill.toml").write_text("\n".join(lines))
        gristmill(["materialize", "--all"], standalone_mode=False)
    return {"tasks": len(sent)}


def main(killed: str, *words: str) -> None:
    if killed == "families":
        data, home = words
        print(json.dumps(families(Path(data), Path(home))))  # noqa: T201
        return
    if killed == "build":
        address, store = words
        with on_other_machines(RayParts(address)):
            built(Path(store))
        return
    seed, folder = words
    print(json.dumps(run(killed, seed, Path(folder))))  # noqa: T201
