"""The services of `gristmill ui`: they end together, and another daemon is noticed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import dagster as dg
import pytest
import yaml
from dagster._daemon.types import DaemonHeartbeat

from assets import worker
from commands.serving import services
from commands.serving.services import (
    Service,
    ShortLog,
    daemons,
    forget_heartbeats,
    refuse_other_daemons,
)
from tests.e2e.live_instance import until
from tests.free_port import free_port
from tests.paths import CHECKOUT

LOCATIONS = """
load_from:
  - python_file: {relative_path: here.py, working_directory: sub, location_name: one}
  - python_file: {relative_path: there.py, location_name: two}
  - grpc_server: {host: localhost, port: 4266, location_name: far}
"""
# A service with a child of its own, which ignores what asks it to stop.
STUBBORN = """
import os, signal, subprocess, sys, time, pathlib
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid} {os.getpgrp()}")
time.sleep(100)
"""
SERVE = """
import os, sys, pathlib
from commands.serving import services
words = [sys.executable, "-c", pathlib.Path("stubborn.py").read_text(), sys.argv[1]]
services._front = lambda *_: [services.Service("the test", words)]
with services.instance_lock(pathlib.Path("ui.lock")) as lock:
    services.serve(pathlib.Path.cwd(), "127.0.0.1", 1, lock)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workspace of no code server; temporary folders go to `temporary`."""
    (tmp_path / "workspace.yaml").write_text("load_from: []\n")
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def serve(checkout: Path, monkeypatch: pytest.MonkeyPatch, *started: Service) -> None:
    monkeypatch.setattr(services, "_front", lambda *_: started)
    with services.instance_lock(checkout / "ui.lock") as lock:
        services.serve(checkout, "127.0.0.1", 1, lock)


def serve_until(
    ready: Callable[[], object],
    number: signal.Signals,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    service: Service,
) -> None:
    """Serve, and send this process a signal once the service is ready."""

    def ask() -> None:
        until("it is ready", ready)
        os.kill(os.getpid(), number)

    asking = threading.Thread(target=ask)
    asking.start()
    serve(checkout, monkeypatch, service)
    asking.join()


@contextmanager
def serving(checkout: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """The command as a process; its service, the child of that, and their keeper."""
    note = checkout / "pids"
    with subprocess.Popen(
        [*python(SERVE), str(note)], cwd=checkout, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}
    ) as command:
        until("it has noted", lambda: note.exists() and note.read_text())
        yield command, [int(pid) for pid in note.read_text().split()]


def gone(process: int) -> bool:
    return worker.identity(process) is None


def test_a_service_that_ends_ends_the_others_and_is_named(checkout, monkeypatch):
    note = checkout / "pids"
    first = Service("the first", python("import time; time.sleep(100)"))
    second = Service("the second", [*python(STUBBORN), str(note)])
    third = Service(
        "the third",
        [
            *python(
                "import pathlib, sys, time\n"
                "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\n"
                "sys.exit(3)"
            ),
            str(note),
        ],
    )
    monkeypatch.setattr(services, "_PATIENCE_SECONDS", 0.5)
    with pytest.raises(click.ClickException, match=r"the third ended \(status 3\)"):
        serve(checkout, monkeypatch, first, second, third)
    until("all are gone", lambda: all(gone(int(pid)) for pid in note.read_text().split()))
    assert list((checkout / "temporary").iterdir()) == []


def test_a_killed_service_is_named_by_its_signal(checkout, monkeypatch):
    killed = Service("the daemon", python("import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(click.ClickException, match=r"the daemon ended \(SIGKILL\)"):
        serve(checkout, monkeypatch, killed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_and_is_no_error(checkout, monkeypatch, number):
    """The services are interrupted, so that they can end runs in order."""
    handler = signal.getsignal(number)
    note = checkout / "note"
    polite = (
        "import pathlib, signal, sys, time\n"
        "note = pathlib.Path(sys.argv[1])\n"
        "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "try:\n    note.write_text('started'); time.sleep(100)\n"
        "except KeyboardInterrupt:\n    note.write_text('interrupted')"
    )
    service = Service("polite", [*python(polite), str(note)])
    note.touch()
    serve_until(lambda: note.read_text() == "started", number, checkout, monkeypatch, service)
    assert note.read_text() == "interrupted"
    assert signal.getsignal(number) is handler


def test_services_that_are_starting_end_without_a_stack_trace(checkout, monkeypatch, capfd):
    note = checkout / "note"
    starting = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "pathlib.Path(sys.argv[1]).touch(); time.sleep(100)"
    )
    service = Service("starting", [*python(starting), str(note)])
    serve_until(note.exists, signal.SIGINT, checkout, monkeypatch, service)
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_kill_of_the_command_kills_all_that_it_started(checkout):
    with serving(checkout) as (command, processes):
        with pytest.raises(click.ClickException), services.instance_lock(checkout / "ui.lock"):
            pass
        assert not any(map(gone, processes))
        # The keeper waits for the end of this pipe. To pause it by SIGSTOP would not hold it: the
        # kernel continues a stopped process group whose last parent of another group dies.
        pipe = os.open(f"/proc/{processes[2]}/fd/0", os.O_WRONLY)
        command.kill()
    with pytest.raises(click.ClickException), services.instance_lock(checkout / "ui.lock"):
        pass
    os.close(pipe)
    until("all are gone", lambda: all(map(gone, processes)))
    until("nothing is left", lambda: not list((checkout / "temporary").iterdir()))
    with services.instance_lock(checkout / "ui.lock"):
        pass


@pytest.mark.slow
def test_services_die_with_the_command_even_without_the_keeper(checkout):
    with serving(checkout) as (command, (service, child, keeper)):
        os.kill(keeper, signal.SIGKILL)
        command.kill()
    until("the service is gone", lambda: gone(service))
    os.kill(child, signal.SIGKILL)


def test_one_process_serves_an_instance_and_a_lock_that_cannot_be_written_is_named(tmp_path):
    lock = tmp_path / "made" / "ui.lock"
    with services.instance_lock(lock):
        with pytest.raises(click.ClickException) as refused, services.instance_lock(lock):
            pass
        assert f"process {os.getpid()} serves this instance already" in refused.value.message
        assert str(lock) in refused.value.message
    with services.instance_lock(lock) as descriptor:
        assert not os.get_inheritable(descriptor)
    (tmp_path / "file").touch()
    lock = tmp_path / "file" / "ui.lock"
    with pytest.raises(click.ClickException) as refused, services.instance_lock(lock):
        pass
    said = f"{lock}: cannot be written (File exists): set DAGSTER_HOME to an empty folder"
    assert refused.value.message.startswith(said)


def test_each_python_file_of_the_workspace_gets_a_code_server(tmp_path):
    file, folder = tmp_path / "workspace.yaml", tmp_path / "sockets"
    folder.mkdir()
    file.write_text(LOCATIONS)
    workspace, servers = services.split_workspace(file, folder)
    one, two = folder / "code-0.sock", folder / "code-1.sock"
    assert yaml.safe_load(workspace.read_text()) == {
        "load_from": [
            {"grpc_server": {"location_name": "one", "socket": str(one)}},
            {"grpc_server": {"location_name": "two", "socket": str(two)}},
            {"grpc_server": {"host": "localhost", "port": 4266, "location_name": "far"}},
        ]
    }
    assert [socket for _, socket in servers] == [one, two]
    words = servers[0][0].words
    for option, value in (
        ("--socket", one),
        ("--location-name", "one"),
        ("--python-file", tmp_path / "here.py"),
        ("--working-directory", tmp_path / "sub"),
    ):
        assert words[words.index(option) + 1] == str(value)
    assert servers[1][0].words[-1] == str(tmp_path)
    assert servers[1][0].name == "the code server of two"


def test_it_says_when_the_port_answers_and_chooses_from_the_logs(checkout, monkeypatch, capfd):
    port = free_port()
    listening = (
        "import socket, sys, time\n"
        "print('2026-11-27 01:44:28 +0000 - dagster.daemon - INFO - a tick', flush=True)\n"
        "print('2026-11-27 01:44:28 +0000 - dagster.daemon - ERROR - a fault', flush=True)\n"
        "server = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "server.accept(); sys.stdout.write('its last words'); sys.exit(3)"
    )
    for is_verbose in (False, True):
        service = Service("the test", [*python(listening), str(port)])
        monkeypatch.setattr(services, "_front", lambda *_, service=service: [service])
        with (
            pytest.raises(click.ClickException, match=r"the test ended \(status 3\)"),
            services.instance_lock(checkout / "ui.lock") as lock,
        ):
            services.serve(checkout, "127.0.0.1", port, lock, is_verbose=is_verbose)
        out, err = capfd.readouterr()
        assert f"open http://127.0.0.1:{port} (Ctrl-C stops it)\n" in out
        assert ("a tick" in out + err) == is_verbose
        assert "a fault" in out + err and "its last words" in out + err


RUN = "9a4f7063-0efd-40ab-a3c5-edb809e5f5b3"


def line(logger: str, level: str, text: str) -> str:
    """A line of Dagster's log, in colours as it writes them."""
    return f"\x1b[32m2026-11-27 01:44:28 +0000\x1b[0m - {logger} - \x1b[34m{level}\x1b[0m - {text}"


def event(kind: str, text: str, step: str = "") -> str:
    return line("dagster", "DEBUG", f"__ASSET_JOB - {RUN} - 28448 - {step}{kind} - {text}")


def sensor(text: str) -> str:
    return line("dagster.daemon.SensorDaemon", "INFO", text)


def shown(*lines: str) -> list[str]:
    log = ShortLog()
    return [each for given in lines for each in log.lines(given)]


def published(asset: str) -> str:
    return event("ASSET_MATERIALIZATION", "5 rows, in a\\_b", step=f"{asset} - ")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("RUN_SUCCESS", "succeeded: synth/kd_manifest"),
        ("RUN_FAILURE", f"failed: synth/kd_manifest, see /runs/{RUN}"),
        ("RUN_CANCELED", "was stopped: synth/kd_manifest"),
    ],
)
def test_a_run_has_one_line_which_names_what_it_published(kind, said):
    lines = [
        event("STEP_START", 'Started execution of step "a".', step="a - "),
        published("synth__kd_manifest"),
        published("synth__kd_manifest"),
        event(kind, "Finished."),
    ]
    assert shown(*lines) == [f"01:44:28 run 9a4f7063 {said}"]


def test_of_many_assets_three_are_named_and_other_text_is_shown_as_no_terminal_obeys():
    lines = [published(f"a__{number}") for number in range(5)]
    end = event("RUN_SUCCESS", "Finished.")
    assert shown(*lines[:3], end) == ["01:44:28 run 9a4f7063 succeeded: a/0, a/1, a/2"]
    assert shown(*lines, end) == ["01:44:28 run 9a4f7063 succeeded: a/0, a/1, a/2 and 2 more"]
    assert shown(*lines, end, end)[1:] == ["01:44:28 run 9a4f7063 succeeded"]
    failure = event("STEP_FAILURE", 'Execution of step "a" failed.', step="a - ")
    assert shown(failure, "dagster.Failure: row 3", "  File x.py", event("STEP_START", "x")) == []
    assert shown("a\x1b[31mb", "", "c\x07") == ["ab", "c\N{REPLACEMENT CHARACTER}"]


def test_a_problem_is_shown_with_the_lines_below_it():
    problem = line("dagster.daemon", "ERROR", "Thread died")
    quiet = sensor("Checking for new runs for sensor: chess_drops")
    found = shown(quiet, "dropped", problem, "Traceback", "", quiet, "dropped")
    assert found == ["01:44:28 Thread died", "Traceback"]
    message = f"__ASSET_JOB - {RUN} - a__b - reveal__test: not built: its terms forbid it"
    assert shown(line("dagster", "WARNING", message)) == [
        "01:44:28 run 9a4f7063 a__b - reveal__test: not built: its terms forbid it"
    ]
    follows = f"__ASSET_JOB - {RUN} - a__b - Dependencies for step a__b failed: ['a__a']."
    assert shown(line("dagster", "ERROR", follows)) == []
    expected = "No cursor for event type DagsterEventType.RUN_FAILURE, ignoring older events"
    assert shown(line("dagster.daemon.EventLogConsumerDaemon", "WARNING", expected)) == []


def test_a_slow_start_is_a_sentence_and_a_sensor_says_its_news_once():
    slow = "dagster._core.errors.DagsterUserCodeUnreachableError: Could not reach user code server."
    stack = ("  warnings.warn(", slow, "Stack Trace:", "  File x.py")
    wait = "the code of the checkout does not answer yet: a busy machine loads it in a minute"
    assert shown(line("dagster.daemon", "ERROR", slow), *stack) == [f"01:44:28 {wait}"]
    first = f"x.py:1: UserWarning: Error loading repository location gristmill:{slow}"
    problem = line("dagster.daemon", "ERROR", "Thread died")
    assert shown(first, *stack, problem) == [wait, "01:44:28 Thread died"]
    arriving = sensor("Sensor chess_drops skipped: still arriving: 2024-01")
    nothing = sensor("Sensor chess_drops skipped: no new drop")
    assert (
        shown(arriving, arriving, nothing, nothing, arriving)
        == ["01:44:28 chess_drops: still arriving: 2024-01"] * 2
    )
    added = "Added partition keys to dynamic partitions definition 'chess_months': ['a', 'b']"
    assert shown(sensor(added)) == ["01:44:28 chess_months: new a, b"]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def beat(instance: dg.DagsterInstance, ago: float, kind: str = "SENSOR", who: str = "a") -> None:
    instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - ago, kind, who))


def waited(
    instance: dg.DagsterInstance, after: int = 10**9, who: str = "a"
) -> tuple[float, list[str]]:
    """Seconds that a start waits, and what it says; the heartbeat is renewed after some looks."""
    slept: list[float] = []
    said: list[str] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == after:
            beat(instance, 0, who=who)

    refuse_other_daemons(instance, said.append, sleep)
    return sum(slept), said


def test_an_instance_without_recent_heartbeats_or_that_ended_in_order_is_served_at_once(instance):
    assert waited(instance) == (0, [])
    beat(instance, 61)
    assert waited(instance) == (0, [])
    beat(instance, 1)
    forget_heartbeats(instance)
    assert waited(instance) == (0, [])


def test_recent_heartbeats_are_waited_for_with_a_reason(instance):
    beat(instance, 59, "SCHEDULER")
    beat(instance, 40)
    seconds, (line,) = waited(instance)
    assert seconds == 35
    assert "a daemon worked on this instance 40 seconds ago" in line
    assert "35 seconds" in line


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_heartbeat_that_is_renewed_refuses_the_start(instance, who):
    beat(instance, 20)
    with pytest.raises(click.ClickException, match="another Dagster daemon works on this instance"):
        waited(instance, after=8, who=who)


def test_processes_that_may_be_the_daemon_are_named(tmp_path):
    for pid, line in {
        31: b"/x/bin/python\0/x/bin/dagster-daemon\0run\0",
        4: b"python\0-m\0dagster._daemon\0run\0",
        5: b"/x/bin/dagster dev\0-w\0workspace.yaml\0",
        6: b"vim\0dagster.yaml\0",
        os.getpid(): b"dagster-daemon\0",
    }.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(line)
    (tmp_path / "7").mkdir()
    (tmp_path / "self").mkdir()
    assert [line.partition(":")[0] for line in daemons(tmp_path)] == [
        "process 4",
        "process 5",
        "process 31",
    ]
