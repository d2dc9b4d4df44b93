"""Runs are forked from a process that has loaded the code, and only as long as it is that code."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from assets import worker
from commands.serving import forked_runs
from commands.serving.forked_runs import ForkedRuns
from resources.lake import LOCATION
from tests.commands.serving.forked_location import CODE, Location, ended, messages, said


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    loader = {
        "module": "dagster._core.secrets.env_file",
        "class": "PerProjectEnvFileLoader",
        "config": {"location_paths": {LOCATION: "."}},
    }
    folder = str(tmp_path_factory.mktemp("instance"))
    with dg.DagsterInstance.local_temp(folder, {"secrets": {"custom": loader}}) as made:
        yield made


@contextmanager
def _begun(folder: Path) -> Iterator[ForkedRuns]:
    """Starts runs from a working directory of its own, as a daemon from its checkout."""
    checkout = str(Path(forked_runs.__file__).parents[2])
    # Where a shell started the tests in the background, all that they start would ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", checkout)
        patch.chdir(folder)
        made = ForkedRuns()
        yield made
        made.close(60.0)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[ForkedRuns]:
    with _begun(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ForkedRuns, Location]]:
    """One server and its location, for tests that leave both as they are."""
    folder = tmp_path_factory.mktemp("shared")
    with _begun(folder) as made:
        yield made, Location(folder)


def server_of(forked: ForkedRuns) -> subprocess.Popen[bytes]:
    assert forked._server is not None
    return forked._server._process


def test_runs_share_the_process_that_has_loaded_their_code(
    instance: dg.DagsterInstance, forked: ForkedRuns, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("OF_ENV_FILE=7\n")
    location = Location(tmp_path)
    first, second = (location.run(instance, "built") for _ in range(2))
    processes = [forked.start(instance, run) for run in (first, second)]
    server = server_of(forked)
    both = [said(instance, run) for run in (first, second)]
    assert [found["process"] for found in both] == processes
    assert [found["parent"] for found in both] == [server.pid] * 2
    assert len(set(processes)) == 2
    assert both[0]["number"] == 1 and both[0]["variable"] == "7"
    # The second has no descriptor of the first, and none of the pipes of the server.
    assert both[0]["descriptors"] == both[1]["descriptors"]
    forked.close(60.0)
    assert "Process for run exited" in messages(instance, first)
    assert server.returncode == 0


def test_changed_code_is_loaded_again(
    instance: dg.DagsterInstance, forked: ForkedRuns, tmp_path: Path
) -> None:
    location = Location(tmp_path)
    before = location.run(instance, "built")
    forked.start(instance, before)
    assert said(instance, before)["number"] == 1
    for name, text, number, variable in (
        ("number.py", "NUMBER = 2\n", 2, ""),
        ("location.py", CODE.replace("number.NUMBER", "number.NUMBER + 1"), 3, ""),
        (".env", "OF_ENV_FILE=7\n", 3, "7"),
        ("added.py", "", 3, "7"),
    ):
        server = server_of(forked)
        location.write(name, text)
        after = location.run(instance, "built")
        process = forked.start(instance, after)
        found = said(instance, after)
        assert process == found["process"], name
        assert found["parent"] == server_of(forked).pid != server.pid, name
        assert (found["number"], found["variable"]) == (number, variable), name
        assert server.wait(60) == 0, name


def test_code_that_cannot_be_loaded_starts_in_another_way_until_it_is_mended(
    instance: dg.DagsterInstance,
    forked: ForkedRuns,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    location = Location(tmp_path, "raise RuntimeError('half saved')\n")
    run = location.run(instance, "built")
    assert forked.start(instance, run) is None
    assert "half saved" in capfd.readouterr().err
    assert (found := instance.get_run_by_id(run.run_id)) is not None and not found.is_finished
    location.write("location.py", CODE)
    assert forked.start(instance, run) is not None
    assert said(instance, run)["number"] == 1


def test_code_that_takes_for_ever_is_ended(
    instance: dg.DagsterInstance,
    forked: ForkedRuns,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []
    init = forked_runs._Server.__init__

    def note(server: forked_runs._Server, origin: str) -> None:
        init(server, origin)
        begun.append(server)

    monkeypatch.setattr(forked_runs._Server, "__init__", note)
    monkeypatch.setattr(forked_runs, "_LOAD_SECONDS", 0.2)
    run = Location(tmp_path, "import time; time.sleep(999)\n").run(instance, "built")
    assert forked.start(instance, run) is None
    assert [server.is_gone() for server in begun] == [True]


def test_code_that_starts_threads_is_not_forked(
    instance: dg.DagsterInstance,
    forked: ForkedRuns,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = "threading.Thread(target=time.sleep, args=(999,), daemon=True).start()\n"
    location = Location(tmp_path, CODE + started)
    run = location.run(instance, "built")
    assert forked.start(instance, run) is None
    why = "runs are not forked: the loaded code has started 1 threads\n"
    assert capfd.readouterr().err.endswith(why)
    # Nobody tries it again for each run.
    monkeypatch.setattr(forked_runs, "_Server", None)
    assert forked.start(instance, run) is None


@pytest.mark.parametrize(
    ("asset", "reason"),
    [
        ("killed", "was terminated by signal 9 (SIGKILL)"),
        ("left", "unexpectedly exited with code 3"),
    ],
)
def test_a_process_that_ends_before_its_run_is_reported(
    instance: dg.DagsterInstance, shared: tuple[ForkedRuns, Location], asset: str, reason: str
) -> None:
    forked, location = shared
    run = location.run(instance, asset)
    forked.start(instance, run)
    assert ended(instance, run) is dg.DagsterRunStatus.FAILURE
    assert f"Run execution process for {run.run_id} {reason}" in messages(instance, run)
    # The server is as it was.
    after = location.run(instance, "built")
    forked.start(instance, after)
    assert said(instance, after)["parent"] == server_of(forked).pid


def test_a_run_is_cancelled_by_sigint(
    instance: dg.DagsterInstance, shared: tuple[ForkedRuns, Location]
) -> None:
    forked, location = shared
    run = location.run(instance, "slow")
    process = forked.start(instance, run)
    assert process is not None
    while not (location.folder / "slow-begins").exists():
        assert worker.identity(process) is not None
    instance.report_run_canceling(run)
    assert worker.interrupt(worker.identity(process) or "")
    assert ended(instance, run) is dg.DagsterRunStatus.CANCELED


def test_a_server_that_ends_leaves_its_runs_and_is_replaced(
    instance: dg.DagsterInstance, forked: ForkedRuns, tmp_path: Path
) -> None:
    location = Location(tmp_path)
    slow, after = location.run(instance, "slow"), location.run(instance, "built")
    forked.start(instance, slow)
    server = server_of(forked)
    server.kill()
    server.wait()
    forked.start(instance, after)
    assert said(instance, after)["parent"] == server_of(forked).pid != server.pid
    (tmp_path / "slow-may-end").touch()
    assert ended(instance, slow) is dg.DagsterRunStatus.SUCCESS


def test_it_waits_for_its_runs_when_it_is_closed(
    instance: dg.DagsterInstance, forked: ForkedRuns, tmp_path: Path
) -> None:
    run = Location(tmp_path).run(instance, "slow")
    forked.start(instance, run)
    server = server_of(forked)
    # A terminal's Ctrl-C reaches the server, too.
    server.send_signal(signal.SIGINT)
    forked.close(0.2)
    assert server.poll() is None
    (tmp_path / "slow-may-end").touch()
    forked.close(60.0)
    assert server.returncode == 0
    assert ended(instance, run) is dg.DagsterRunStatus.SUCCESS


def test_a_server_that_hangs_is_ended_and_the_run_says_so(
    instance: dg.DagsterInstance,
    forked: ForkedRuns,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    location = Location(tmp_path)
    first, second = (location.run(instance, "built") for _ in range(2))
    forked.start(instance, first)
    said(instance, first)
    server = server_of(forked)
    monkeypatch.setattr(forked_runs, "_FORK_SECONDS", 0.2)
    os.kill(server.pid, signal.SIGSTOP)
    with pytest.raises(RuntimeError, match=rf"process {server.pid}, .* launch the run again"):
        forked.start(instance, second)
    assert server.wait(60) == -signal.SIGKILL
    monkeypatch.undo()
    assert forked.start(instance, location.run(instance, "built")) is not None


def test_another_location_gets_another_server(
    instance: dg.DagsterInstance, forked: ForkedRuns, tmp_path: Path
) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run = Location(tmp_path / name, number=len(name) + len(found)).run(instance, "built")
        forked.start(instance, run)
        found.append(said(instance, run))
    assert [each["number"] for each in found] == [3, 4]
    assert found[0]["parent"] != found[1]["parent"]


def test_a_run_that_does_not_say_where_its_code_is_starts_in_another_way(
    instance: dg.DagsterInstance, forked: ForkedRuns, tmp_path: Path
) -> None:
    run = Location(tmp_path).run(instance, "built")
    assert forked.start(instance, run._replace(job_code_origin=None)) is None
    assert forked._server is None
