"""The sample chain of a family as runs on a Ray cluster; one run is killed in the middle.

`python -m tests.clusters.chain FAMILY SEED FOLDER` in namespaces of its own: Ray asks a cloud's
service for the machine at each start, and the processes of a killed program must end with it.
DAGSTER_HOME has a `dagster.yaml` with the launcher, GRISTMILL_DATA the drops. FOLDER is for Ray.
"""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext
from dagster._daemon.monitoring.run_monitoring import monitor_started_run

import definitions
from assets import versions, worker
from commands.dagster_private import gone
from commands.graph import INBOXES, Graph, register
from commands.prune import why_dead
from gristmill.layout import WORK
from resources import CHECKOUT, Lake

_PORT = 8265


def start_head(folder: Path) -> None:
    """Start the head of a cluster on loopback; it ends with the namespace."""
    words = ["start", "--head", "--node-ip-address", "127.0.0.1", "--port", "6399"]
    words += ["--dashboard-host", "127.0.0.1", "--dashboard-port", str(_PORT), "--num-cpus", "2"]
    words += ["--object-store-memory", str(80 * 2**20), "--disable-usage-stats"]
    words += ["--include-dashboard", "true", "--temp-dir", str(folder)]
    ray = Path(sys.executable).parent / "ray"
    done = subprocess.run([ray, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def until(what: str, holds: Callable[[], Any], pause: float = 0.2) -> Any:
    """Wait until `holds` gives something true, and give it."""
    deadline = time.monotonic() + 900
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within 900 s: {what}"
        time.sleep(pause)
    return found


def process_of(run_id: str) -> int | None:
    """The Python process of a run, which Ray has started."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"execute_run" in words and run_id.encode() in b" ".join(words):
            return int(entry.name)
    return None


class Chain:
    """The assets of a family with all that they are built from, and their runs."""

    def __init__(self, instance: dg.DagsterInstance, family: str) -> None:
        self.instance, self.lake = instance, Lake()
        self.graph = Graph(instance, self.lake)
        self.register()
        own = {key for key in self.graph.select(()) if key.path[0] == family}
        wanted = set(own)
        while more := {up for key in wanted for up in self.graph.parents(key)} - wanted:
            wanted |= more
        self.assets = [key for key in self.graph.select(()) if key in wanted]
        self.job = definitions.build_defs().resolve_implicit_global_asset_job_def()
        repository = ReconstructableRepository.for_module(
            "definitions", fn_name="defs", working_directory=str(CHECKOUT)
        )
        self.origin = repository.get_reconstructable_job(self.job.name).get_python_origin()

    def register(self) -> None:
        """Make partitions of the drops, some of which need what others are built to."""
        for inbox in INBOXES:
            print(*register(self.instance, self.lake, inbox), sep="\n", file=sys.stderr)  # noqa: T201
        self.graph.look_again()

    def runs(self, asset: dg.AssetKey) -> list[Sequence[str | None]]:
        return list(self.graph._runs(asset, self.graph.keys(asset, ()), True))

    def launch(self, asset: dg.AssetKey, keys: Sequence[str | None]) -> str:
        run = self.instance.create_run_for_job(
            job_def=self.job.get_subset(asset_selection=frozenset([asset])),
            tags=versions.run_tags(keys),
            asset_selection=frozenset([asset]),
            job_code_origin=self.origin,
            status=dg.DagsterRunStatus.STARTING,
        )
        self.instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))
        return run.run_id

    def status(self, run_id: str) -> str:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        if run.is_finished:
            return run.status.value
        if reason := gone(self.instance.run_launcher, run):
            # It may have ended between the two questions.
            again = self.instance.get_run_by_id(run_id)
            assert again is not None
            assert again.is_finished, f"{run.run_id}: {reason}"
        return ""

    def kill(self, run_id: str) -> bool:
        """SIGKILL a run while it builds; False if it ended before."""

        def is_over() -> bool:
            return bool(self.status(run_id))

        def at_work() -> list[Path]:
            return list(self.lake.root.glob(f"**/{WORK}/slots/*/staging*"))

        before = set(at_work())

        def begun() -> int | None:
            assert not is_over(), "the run ended before it was seen"
            return process_of(run_id)

        process = until("the run has a process", begun, 0.1)
        asked = time.monotonic()
        while not set(at_work()) - before:
            if time.monotonic() - asked > 1:
                asked = time.monotonic()
                if is_over():
                    return False
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            return False
        launcher = self.instance.run_launcher

        def is_noticed() -> bool:
            run = self.instance.get_run_by_id(run_id)
            assert run is not None
            return run.is_finished or gone(launcher, run) is not None

        until("the death is noticed", is_noticed)
        record = self.instance.get_run_record_by_id(run_id)
        assert record is not None
        if record.dagster_run.is_finished:  # it was faster than the signal
            return False
        assert worker.CLUSTER in record.dagster_run.tags
        assert why_dead(self.instance, record.dagster_run)
        monitor_started_run(self.instance, None, record, logging.getLogger())  # type: ignore[arg-type]
        ended = self.instance.get_run_by_id(run_id)
        assert ended is not None and ended.status == dg.DagsterRunStatus.FAILURE
        self.instance.event_log_storage.free_concurrency_slots_for_run(run_id)
        return True


def main(family: str, seed: str, folder: str) -> None:
    """Run the chain, and print what was done as JSON."""
    start_head(Path(folder))
    with dg.DagsterInstance.get() as instance:
        chain = Chain(instance, family)
        count = 0
        killed: list[str] = []
        first = random.Random(seed).randrange(len(chain.assets))
        for number, asset in enumerate(chain.assets):
            chain.register()
            wanted = chain.runs(asset)
            # From the chosen asset on, until a run was killed before its end.
            if number >= first and not killed and wanted:
                launched = chain.launch(asset, wanted[0])
                count += 1
                if chain.kill(launched):
                    killed.append(asset.to_user_string())
                else:
                    wanted = wanted[1:]
            launched_runs = [chain.launch(asset, keys) for keys in wanted]
            count += len(launched_runs)
            for run in launched_runs:
                ended = until(f"{asset} has ended", lambda run=run: chain.status(run))
                assert ended == "SUCCESS", (asset, run, ended)
    print(json.dumps({"runs": count, "killed": killed}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
