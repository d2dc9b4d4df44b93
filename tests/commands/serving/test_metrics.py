"""`gristmill metrics`: what it counts, how it serves, and what it says where it cannot."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster._utils.error import SerializableErrorInfo

from bench.large_instance import PACK, add_run
from commands.serving.metrics import HOST
from resources.lake import CHECKOUT
from tests.commands.drops import Command
from tests.e2e.live_instance import until
from tests.free_port import free_port

pytestmark = [pytest.mark.slow, pytest.mark.engines]
STATUS = dg.DagsterRunStatus
_ERROR = SerializableErrorInfo("a sensor failed", [], "Error")


def numbers(text: str) -> dict[str, dict[str, float]]:
    """Values by label of each family, as Prometheus reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    return {
        family.name: {next(iter(each.labels.values())): each.value for each in family.samples}
        for family in text_string_to_metric_families(text)
    }


def printed(run: Command) -> dict[str, dict[str, float]]:
    done = run("metrics")
    assert done.exit_code == 0, done.output
    return numbers(done.output)


def tick(instance: dg.DagsterInstance, name: str, *ticks: tuple[float, TickStatus]) -> None:
    """Let a sensor have had ticks."""
    location = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("gristmill"), "__repository__")
    origin = RemoteInstigatorOrigin(location, name)
    state = InstigatorState(
        origin, InstigatorType.SENSOR, InstigatorStatus.RUNNING, SensorInstigatorData()
    )
    instance.add_instigator_state(state)
    for at, status in ticks:
        instance.create_tick(
            TickData(
                origin.get_id(),
                name,
                InstigatorType.SENSOR,
                status,
                at,
                error=_ERROR if status is TickStatus.FAILURE else None,
                run_ids=[],
                selector_id=state.selector_id,
            )
        )


def test_a_new_instance_has_no_runs_and_room_on_its_disks(run: Command, data: Path) -> None:
    found = printed(run)
    assert found["gristmill_runs"] == {status.value: 0.0 for status in STATUS}
    free = found["gristmill_disk_free_bytes"]
    assert free.keys() == {"data_root", "checkout"} and min(free.values()) > 0
    for name in ("daemon_heartbeat_timestamp_seconds", "tick_failed"):
        assert found[f"gristmill_{name}"] == {}


def test_runs_daemons_ticks_and_builds_are_counted(
    run: Command, instance: dg.DagsterInstance
) -> None:
    before = time.time()
    for status, count in ((STATUS.SUCCESS, 3), (STATUS.FAILURE, 2), (STATUS.STARTED, 1)):
        for number in range(count):
            add_run(instance, PACK, [f"{status.value}{number}"], status=status)
    instance.add_daemon_heartbeat(DaemonHeartbeat(1234.5, "SENSOR", "one", []))
    tick(instance, "good", (10.0, TickStatus.FAILURE), (20.0, TickStatus.SKIPPED))
    tick(instance, "bad", (30.0, TickStatus.SUCCESS), (40.0, TickStatus.FAILURE))
    tick(instance, "new")
    found = printed(run)
    runs = {name: count for name, count in found["gristmill_runs"].items() if count}
    assert runs == {"SUCCESS": 3, "FAILURE": 2, "STARTED": 1}
    assert found["gristmill_daemon_heartbeat_timestamp_seconds"] == {"SENSOR": 1234.5}
    assert found["gristmill_tick_timestamp_seconds"] == {"good": 20.0, "bad": 40.0}
    assert found["gristmill_tick_failed"] == {"good": 0.0, "bad": 1.0}
    built = found["gristmill_asset_materialized_timestamp_seconds"]
    assert built.keys() == {PACK.to_user_string()}
    assert before <= built[PACK.to_user_string()] <= time.time()


def test_the_room_is_that_of_the_nearest_folder(
    run: Command, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_DATA", str(data / "not/there yet"))
    assert printed(run)["gristmill_disk_free_bytes"]["data_root"] > 0


def test_without_the_extra_one_line_names_it(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    done = run("metrics")
    assert done.exit_code == 1
    assert 'pip install -e ".[metrics]"' in done.output


def test_a_port_that_is_taken_is_named(run: Command) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        done = run("metrics", "--port", str(port))
    assert done.exit_code == 1
    assert f"port {port}: Address already in use" in done.output


@pytest.fixture
def served(run: Command, data: Path, tmp_path: Path) -> Iterator[tuple[int, Any]]:
    """`gristmill metrics --port PORT` as a process: the port and the process."""
    port = free_port()
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from commands import checkout\n"
        "from gristmill.cli import main\n"
        "checkout.CHECKOUT = Path(sys.argv.pop(1))\n"
        "main()\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path), "metrics", "--port", str(port)]
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *words],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    yield port, process
    process.kill()
    process.communicate()


def asked(port: int, process: Any) -> str:
    assert process.poll() is None, process.stdout.read().decode()
    with suppress(OSError), urllib.request.urlopen(f"http://{HOST}:{port}/metrics") as answer:
        return str(answer.read().decode())
    return ""


def test_each_call_of_the_server_asks_again_until_ctrl_c(
    served: tuple[int, Any], instance: dg.DagsterInstance
) -> None:
    port, process = served
    first = numbers(until("the server answers", lambda: asked(port, process)))
    assert first["gristmill_runs"]["SUCCESS"] == 0
    add_run(instance, PACK, ["a"], status=STATUS.SUCCESS)
    assert numbers(asked(port, process))["gristmill_runs"]["SUCCESS"] == 1
    with socket.socket() as outside:
        outside.settimeout(1)
        assert outside.connect_ex((socket.gethostbyname(socket.gethostname()), port)) or (
            socket.gethostbyname(socket.gethostname()).startswith("127.")
        )
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert f"http://{HOST}:{port}/metrics" in process.stdout.read().decode()
