"""A `dagster dev` of a copy of the checkout, asked through GraphQL as the UI asks it.

For benchmarks and for the tests of the whole; both start and stop it themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.kit import CHECKOUT

LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
STATUS = """query($id: ID!) { runOrError(runId: $id) {
  ... on Run { status creationTime startTime endTime } } }"""
FAILURES = """query($id: ID!) { runOrError(runId: $id) { ... on Run { eventConnection { events {
  ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } }
  ... on RunFailureEvent { message } } } } } }"""
ADD = """mutation($repo: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: $repo, partitionsDefName: $name, partitionKey: $key) {
    __typename } }"""
_SENSORS = """query($repo: RepositorySelector!) { sensorsOrError(repositorySelector: $repo) {
  ... on Sensors { results { sensorState { id status ticks(limit: 1, statuses: [STARTED]) {
    id } } } } } }"""
_STOP_SENSOR = "mutation($id: String!) { stopSensor(id: $id) { __typename } }"
_QUIET_LOOKS = 4


class Server:
    """A `dagster dev` on a port of its own, asked through GraphQL as the UI does."""

    def __init__(self, folder: Path, location: str, environment: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.selector = {
            "repositoryLocationName": location,
            "repositoryName": "__repository__",
        }
        self._process = subprocess.Popen(
            # Where a shell started this in the background, SIGINT would be ignored.
            ["env", "--default-signal=INT,TERM", *self.words(str(self._port))],
            cwd=folder,
            env={**plain_environment(), **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def place(self) -> str:
        """Host and port of the web server."""
        return f"127.0.0.1:{self._port}"

    def words(self, port: str) -> list[str]:
        """The command line that serves on a port."""
        dagster = str(Path(sys.executable).parent / "dagster")
        return [dagster, "dev", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", port]

    def ask(self, query: str, headers: Mapping[str, str] = {}, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://{self.place}/graphql", body, {"Content-Type": "application/json", **headers}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            said = json.load(answer)
        if said.get("errors"):
            raise RuntimeError(f"GraphQL: {said['errors'][0]['message']}")
        return said["data"]

    def wait(self) -> None:
        for _ in range(720):
            try:
                nodes = self.ask(
                    "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
                )["repositoriesOrError"]["nodes"]
                if nodes:
                    return
            except OSError:
                pass
            time.sleep(0.25)
        raise RuntimeError("dagster dev did not come up")

    def add_partition(self, name: str, key: str) -> None:
        self.ask(ADD, repo=self.selector, name=name, key=key)

    def stop_sensors(self) -> None:
        """Turn all sensors off: a round's drop is to be run by that round alone.

        A tick that the daemon has under way writes the state that it read before, so that its
        sensor is on again. Returns once all were off, without a tick, at several looks in a row.
        """
        quiet = 0
        while quiet < _QUIET_LOOKS:
            found = self.ask(_SENSORS, repo=self.selector)["sensorsOrError"]["results"]
            states = [sensor["sensorState"] for sensor in found]
            on = [state["id"] for state in states if state["status"] == "RUNNING"]
            for id_ in on:
                self.ask(_STOP_SENSOR, id=id_)
            quiet = 0 if on or any(state["ticks"] for state in states) else quiet + 1
            time.sleep(0.5)

    def run(self, asset: list[str], partition: str, checks: list[str]) -> float:
        """Launch one partition and wait for it; seconds from the click to the end."""
        started = time.time()
        run_id = self.launch(asset, partition, checks)
        run = self.finished(run_id)
        if run["status"] != "SUCCESS":
            raise RuntimeError(f"run {run_id} ended as {run['status']}: {self.failure(run_id)}")
        return float(run["endTime"]) - started

    def launch(
        self,
        asset: list[str],
        partition: str,
        checks: list[str],
        config: dict[str, Any] | None = None,
    ) -> str:
        """Launch one partition as the UI does, with values of the launchpad; the id of the run."""
        launched = self.ask(
            LAUNCH,
            params={
                "selector": {
                    **self.selector,
                    "jobName": "__ASSET_JOB",
                    "assetSelection": [{"path": asset}],
                    "assetCheckSelection": [
                        {"assetKey": {"path": asset}, "name": name} for name in checks
                    ],
                },
                "mode": "default",
                "runConfigData": config or {},
                "executionMetadata": {"tags": [{"key": "dagster/partition", "value": partition}]},
            },
        )["launchRun"]
        if "run" not in launched:
            raise RuntimeError(f"not launched: {launched}")
        return str(launched["run"]["runId"])

    def finished(self, run_id: str, seconds: float = 300.0) -> Any:
        """Wait for the end of a run: its status and times."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = self.ask(STATUS, id=run_id)["runOrError"]
            if run["status"] in ("SUCCESS", "FAILURE", "CANCELED"):
                return run
            time.sleep(0.05)
        raise RuntimeError(f"run {run_id} is {run['status']} after {seconds} s")

    def failure(self, run_id: str) -> str:
        """All that the events of a run say about why it failed."""
        events = self.ask(FAILURES, id=run_id)["runOrError"]["eventConnection"]["events"]
        said = [
            text
            for event in events
            for text in (
                event.get("message"),
                (event.get("error") or {}).get("message"),
                (event.get("failureMetadata") or {}).get("description"),
            )
            if text
        ]
        return "\n".join(said)

    def processes(self) -> list[int]:
        """The ids of the command and of all that it started, run workers included."""
        parents: dict[int, list[int]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
        found = [self._process.pid]
        for process in found:
            found.extend(parents.get(process, []))
        return found

    def kill(self) -> None:
        """SIGKILL to all of it at once, as a power loss would."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait(timeout=120)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop by a signal; its status."""
        self._process.send_signal(number)
        return self._process.wait(timeout=300)


def write_home(home: Path) -> None:
    """A DAGSTER_HOME with the settings of the checkout, and a state of its own."""
    home.mkdir(parents=True)
    text = (CHECKOUT / "dagster.yaml").read_text()
    (home / "dagster.yaml").write_text(text.replace(": .dagster/", f": {home}/"))


def plain_environment() -> dict[str, str]:
    """The environment without what would point Dagster or Python at another checkout.

    Nor may a container's setting keep a copy of the checkout from being compiled once:
    each process would compile it again. Processes of pytest-xdist have a size of a terminal
    without having one.
    """
    strange = (
        *("DAGSTER_HOME", "PYTHONPATH", "GRISTMILL_DATA", "PYTHONDONTWRITEBYTECODE"),
        *("COLUMNS", "LINES"),
    )
    return {name: value for name, value in os.environ.items() if name not in strange}


def copy_checkout(target: Path) -> None:
    """The files of the checkout, as git would take them, in a folder without state."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for name in listed:
        if (CHECKOUT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, target / name)
