"""`gristmill ui` on an instance on which a daemon works that was left behind."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bench.servers import Server, copy_checkout, plain_environment
from tests.e2e.live_instance import until

pytestmark = pytest.mark.slow
BEATS = """{ instance { daemonHealth { allDaemonStatuses { lastHeartbeatTime } } } }"""


def test_a_daemon_whose_parent_was_killed_is_refused_by_name(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    copy_checkout(checkout)
    # The daemon of `dagster dev` imports the launcher from this checkout.
    left = Server(checkout, "gristmill", {"PYTHONPATH": str(checkout)})
    try:
        left.wait()

        def beats() -> bool:
            health = left.ask(BEATS)["instance"]["daemonHealth"]["allDaemonStatuses"]
            return any(daemon["lastHeartbeatTime"] for daemon in health)

        until("the daemon writes heartbeats", beats)
        processes = left.processes()
        os.kill(processes[0], signal.SIGKILL)
        (tmp_path / "data").mkdir()
        words = ["ui", "--port", "3998", "--data-root", str(tmp_path / "data")]
        done = subprocess.run(
            [sys.executable, "-m", "gristmill.cli", *words],
            cwd=checkout,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 1, done.stderr
        assert "a daemon worked on this instance" in done.stdout
        assert "another Dagster daemon works on this instance" in done.stderr
        assert any(f"process {process}:" in done.stderr for process in processes)
    finally:
        for process in left.processes() if "processes" not in locals() else processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
