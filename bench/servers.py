"""A `dagster dev` of a copy of the checkout, asked through GraphQL as the UI asks it.

For benchmarks and for the tests of the whole; both start and stop it themselves.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
STATUS = """query($id: ID!) { runOrError(runId: $id) {
  ... on Run { status creationTime startTime endTime } } }"""
ADD = """mutation($repo: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: $repo, partitionsDefName: $name, partitionKey: $key) {
    __typename } }"""


class Server:
    """A `dagster dev` on a port of its own, asked through GraphQL as the UI does."""

    def __init__(self, folder: Path, location: str, environment: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._selector = {
            "repositoryLocationName": location,
            "repositoryName": "__repository__",
        }
        self._process = subprocess.Popen(
            [
                *("env", "--default-signal=INT,TERM", str(Path(sys.executable).parent / "dagster")),
                *("dev", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(self._port)),
            ],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"]

    def wait(self) -> None:
        for _ in range(240):
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
        self.ask(ADD, repo=self._selector, name=name, key=key)

    def stop_sensors(self) -> None:
        """Turn all sensors off: a round's drop is to be run by that round alone."""
        found = self.ask(
            "query($repo: RepositorySelector!) { sensorsOrError(repositorySelector: $repo) {"
            " ... on Sensors { results { sensorState { id } } } } }",
            repo=self._selector,
        )
        for sensor in found["sensorsOrError"]["results"]:
            self.ask(
                "mutation($id: String!) { stopSensor(id: $id) { __typename } }",
                id=sensor["sensorState"]["id"],
            )

    def run(self, asset: list[str], partition: str, checks: list[str]) -> float:
        """Launch one partition and wait for it; seconds from the click to the end."""
        started = time.time()
        launched = self.ask(
            LAUNCH,
            params={
                "selector": {
                    **self._selector,
                    "jobName": "__ASSET_JOB",
                    "assetSelection": [{"path": asset}],
                    "assetCheckSelection": [
                        {"assetKey": {"path": asset}, "name": name} for name in checks
                    ],
                },
                "mode": "default",
                "runConfigData": {},
                "executionMetadata": {"tags": [{"key": "dagster/partition", "value": partition}]},
            },
        )["launchRun"]
        run_id = launched["run"]["runId"]
        while True:
            run = self.ask(STATUS, id=run_id)["runOrError"]
            if run["status"] == "SUCCESS":
                return float(run["endTime"]) - started
            if run["status"] in ("FAILURE", "CANCELED"):
                raise RuntimeError(f"run {run_id} ended as {run['status']}")
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=60)


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
