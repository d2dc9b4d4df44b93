"""`gristmill ui` as a person has it: served to its own pages alone, and ended as a whole."""

import json
import signal
import subprocess
import sys
import urllib.error
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from assets import worker
from bench.servers import Server, copy_checkout, plain_environment
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import CHECKS, PACK, enlarge, until

pytestmark = pytest.mark.slow
LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name updatedTimestamp
  locationOrLoadError { __typename } } } } }"""
RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "gristmill") {
  __typename } }"""
TERMINATE = "mutation($id: String!) { terminateRun(runId: $id) { __typename } }"
SUBSCRIBE = """subscription($id: ID!) { pipelineRunLogs(runId: $id) { __typename
  ... on PipelineRunLogsSubscriptionSuccess { messages { __typename
    ... on MessageEvent { runId eventType } } } } }"""


class Ui(Server):
    """`gristmill ui` of a copy of the checkout, with a drop that takes a while to build."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self._data = folder / "checkout", folder / "data"
        copy_checkout(self.checkout)
        drop = self._data / "drops/macroxue/big"
        write_drop(drop, seed=500, games=6, max_moves=1200, depth=6)
        enlarge(drop, 1000)
        super().__init__(self.checkout, "gristmill", {})
        self.wait()

    def words(self, port: str) -> list[str]:
        command = [sys.executable, "-m", "gristmill.cli", "ui", "--port", port]
        return [*command, "--data-root", str(self._data)]

    def again(self) -> subprocess.CompletedProcess[str]:
        """A second `gristmill ui` on another port."""
        return subprocess.run(
            self.words("3999"),
            cwd=self.checkout,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def refused(self, headers: Mapping[str, str], query: str = RELOAD) -> int:
        with pytest.raises(urllib.error.HTTPError) as refusal:
            self.ask(query, headers)
        return refusal.value.code

    def loaded(self) -> float:
        """When the code location was loaded."""
        (entry,) = self.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
        assert entry["name"] == "gristmill"
        assert entry["locationOrLoadError"]["__typename"] == "RepositoryLocation"
        return float(entry["updatedTimestamp"])

    def socket(self, origin: str) -> ClientConnection:
        words: dict[str, Any] = {"subprotocols": ["graphql-ws"], "origin": origin}
        return connect(f"ws://{self.place}/graphql", **words)

    def recorded(self, run: str, value: str = "run.status.value") -> str:
        """A value of a run in the instance, which nothing needs to serve."""
        code = (
            "import sys, dagster as dg\n"
            "run = dg.DagsterInstance.from_config('.').get_run_by_id(sys.argv[1])\n"
            f"print({value})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, run],
            cwd=self.checkout,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def under_way(self) -> str:
        """The id of a run of the large drop."""
        self.add_partition("macroxue_drops", "big")
        run = self.launch(PACK, "big", CHECKS)
        slot = self._data / "macroxue/packs/.gristmill/slots/big"
        until("the run builds", lambda: any(slot.glob("staging*")))
        return run


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[Ui]:
    serving = Ui(tmp_path.resolve())
    yield serving
    serving.stop()


def is_gone(process: int) -> bool:
    """Whether a process ended; one that nobody waited for yet ended, too."""
    return worker.identity(process) is None


def test_it_serves_its_own_pages_and_ends_in_order(ui: Ui) -> None:
    second = ui.again()
    assert second.returncode == 1
    assert "serves this instance already" in second.stderr

    before = ui.loaded()
    assert ui.refused({"Host": "evil.example"}) == 400
    assert ui.refused({"Origin": "http://evil.example"}) == 403
    assert ui.refused({"Sec-Fetch-Site": "cross-site"}) == 403
    assert ui.refused({"Content-Type": "text/plain"}) == 415
    assert ui.loaded() == before
    own_page = f"http://{ui.place}"
    reloaded = ui.ask(RELOAD, {"Origin": own_page})["reloadRepositoryLocation"]
    assert reloaded["__typename"] == "WorkspaceLocationEntry"
    assert ui.loaded() > before

    run = ui.under_way()
    with pytest.raises(InvalidStatus, match="403"), ui.socket("http://evil.example"):
        pass
    with ui.socket(own_page) as opened:
        opened.send(json.dumps({"type": "connection_init"}))
        question = {"query": SUBSCRIBE, "variables": {"id": run}}
        opened.send(json.dumps({"type": "start", "id": "1", "payload": question}))
        until("the run's events arrive", lambda: run in str(opened.recv(timeout=300)))

    processes = ui.processes()
    # The command, its keeper, code server and its child, web server, daemon, and the run.
    assert len(processes) >= 7
    assert ui.stop(signal.SIGINT) == 0
    assert all(map(is_gone, processes))
    assert ui.recorded(run) in ("CANCELED", "FAILURE")


def test_a_run_that_a_person_terminates_is_cancelled(ui: Ui) -> None:
    run = ui.under_way()
    ended = ui.ask(TERMINATE, id=run)["terminateRun"]
    assert ended["__typename"] == "TerminateRunSuccess"
    assert ui.finished(run)["status"] == "CANCELED"
    # What it had under way is gone with it, and the drop can be built again.
    again = ui.launch(PACK, "big", CHECKS)
    assert ui.finished(again, 900)["status"] == "SUCCESS"


def test_kill_9_leaves_no_process(ui: Ui) -> None:
    ui.under_way()
    processes = ui.processes()
    assert len(processes) >= 7
    ui.stop(signal.SIGKILL)
    until("all are gone", lambda: all(map(is_gone, processes)))
