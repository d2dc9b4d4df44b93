"""Runs whose process is killed end by themselves, so that they do not fill the queue."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.worker import TAG
from bench.servers import STATUS, plain_environment
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import CHECKS, PACK, until
from tests.e2e.test_ui import Ui, is_gone

pytestmark = pytest.mark.slow
NOTICED_SECONDS = 60.0
"""Run monitoring looks every five seconds; the rest is for a busy machine."""
RUNS = """{ runsOrError(filter: {statuses: [STARTED]}) { ... on Runs { results { runId } } } }"""


class Served(Ui):
    """`gristmill ui` with a large drop and a small one, and what a test kills in it."""

    def __init__(self, folder: Path) -> None:
        self.drops, self.slots = folder / "data/drops/macroxue", folder / "data/macroxue/packs"
        write_drop(self.drops / "small", seed=1, games=1, max_moves=30, depth=6)
        super().__init__(folder)
        self.stop_sensors()
        self.add_partition("macroxue_drops", "small")

    def again_on_port(self) -> list[str]:
        """Start the command once more; the lines that it prints first."""
        self._process = subprocess.Popen(
            ["env", "--default-signal=INT,TERM", *self.words(str(self._port))],
            cwd=self.checkout,
            env=plain_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        lines = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            lines.append(line)
            if line.startswith("open http"):
                break
        self.wait()
        return lines

    def status(self, run: str) -> str:
        return str(self.ask(STATUS, id=run)["runOrError"]["status"])

    def worker(self, run: str) -> int:
        """The process of a run that has signed it."""
        # Pages and their queries do not show the tag.
        value = f"run.tags.get({TAG!r}, '')"
        return int(until("the run is signed", lambda: self.recorded(run, value)).split(":")[1])

    def typed(self, partition: str) -> subprocess.Popen[bytes]:
        """`gristmill materialize` of a pack in a terminal beside the server."""
        words = ["materialize", "macroxue/pack", "--partition", partition]
        return subprocess.Popen(
            [sys.executable, "-m", "gristmill.cli", *words, "--data-root", str(self._data)],
            cwd=self.checkout,
            env=plain_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait_until_failed(self, run: str) -> None:
        until(f"{run} has failed", lambda: self.status(run) == "FAILURE", NOTICED_SECONDS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    serving = Served(tmp_path_factory.mktemp("dead_workers").resolve())
    yield serving
    serving.stop()


def test_a_killed_worker_is_noticed_while_the_instance_is_served(served: Served) -> None:
    run = served.under_way()
    os.kill(served.worker(run), signal.SIGKILL)
    served.wait_until_failed(run)


def test_a_killed_command_is_noticed_while_the_instance_is_served(served: Served) -> None:
    """No code server started its process: the launcher alone can tell."""
    slot = served.slots / ".gristmill/slots/big"
    until("the killed build has ended", lambda: not served.ask(RUNS)["runsOrError"]["results"])
    with served.typed("big") as command:
        found = until("the run is there", lambda: served.ask(RUNS)["runsOrError"]["results"])
        run = found[0]["runId"]
        until("the run builds", lambda: any(slot.glob("staging*")))
        assert served.worker(run) == command.pid
        command.kill()
    served.wait_until_failed(run)


def test_dead_runs_do_not_fill_the_queue_after_a_crash(served: Served) -> None:
    """Two runs fill the queue, and all is killed: the run that waited for them is done next."""
    first = served.under_way()
    with served.typed("big") as command:
        second = until(
            "both are there",
            lambda: [
                found["runId"]
                for found in served.ask(RUNS)["runsOrError"]["results"]
                if found["runId"] != first
            ],
        )[0]
        waiting = served.launch(PACK, "small", CHECKS)
        processes = served.processes()
        command.kill()
        served.kill()
    until("all are gone", lambda: all(map(is_gone, processes)))
    lines = served.again_on_port()
    assert "a daemon worked on this instance" in lines[0]
    closed = [line.split()[2] for line in lines if line.startswith("closed run")]
    assert {first[:8]} <= set(closed) <= {first[:8], second[:8]}
    assert served.status(first) == "FAILURE"
    assert served.finished(waiting)["status"] == "SUCCESS"
