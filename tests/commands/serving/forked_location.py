"""A code location in a folder, and runs of its assets as the queue hands them to a launcher."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.origin import JobPythonOrigin
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from resources.lake import LOCATION

JOB = "__ASSET_JOB"
CODE = """
import os, signal, sys, threading, time
import dagster as dg
from pathlib import Path
import number
LOADED = os.getpid()
HERE = Path(__file__).parent

@dg.asset
def built():
    print("printed by a run")
    yield dg.MaterializeResult(metadata={
        "number": number.NUMBER, "process": os.getpid(), "parent": os.getppid(),
        "variable": os.environ.get("OF_ENV_FILE", ""),
        "descriptors": len(os.listdir("/proc/self/fd")),
    })

@dg.asset
def killed():
    os.kill(os.getpid(), signal.SIGKILL)

@dg.asset
def left():
    os._exit(3)

@dg.asset
def slow():
    (HERE / "slow-begins").touch()
    while not (HERE / "slow-may-end").exists():
        time.sleep(0.02)

defs = dg.Definitions([built, killed, left, slow], executor=dg.in_process_executor)
print("printed by definitions")
"""


class Location:
    """Definitions in a folder. folder: empty; code, number: what its two files have."""

    def __init__(self, folder: Path, code: str = CODE, number: int = 1) -> None:
        self.folder = folder
        self.set_number(number)
        self.write("location.py", code)

    def set_number(self, number: int) -> None:
        self.write("number.py", f"NUMBER = {number}\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        # As a file that was saved a while before the next run.
        _wait_for_another_tick(path)

    def run(self, instance: dg.DagsterInstance, asset: str, name: str = LOCATION) -> dg.DagsterRun:
        """A run of one asset, as it is when it leaves the queue."""

        @dg.asset(name=asset)
        def planned() -> None: ...

        job = dg.Definitions([planned]).resolve_implicit_global_asset_job_def()
        file = str(self.folder / "location.py")
        code = ReconstructableRepository.for_file(file, "defs", str(self.folder))
        repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(name), "__repository__")
        return instance.create_run_for_job(
            job,
            status=dg.DagsterRunStatus.STARTING,
            asset_selection=frozenset([dg.AssetKey(asset)]),
            job_code_origin=JobPythonOrigin(JOB, code.get_python_origin()),
            remote_job_origin=RemoteJobOrigin(repository, JOB),
        )


def ended(
    instance: dg.DagsterInstance, run: dg.DagsterRun, seconds: float = 120.0
) -> dg.DagsterRunStatus:
    """The status of a run once it has one for ever."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = instance.get_run_by_id(run.run_id)
        assert found is not None
        if found.is_finished:
            return found.status
        time.sleep(0.02)
    raise AssertionError(f"{found.status} after {seconds} s: {messages(instance, run)}")


def messages(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    return "\n".join(str(event.message) for event in instance.all_logs(run.run_id))


def said(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Any]:
    """What the asset `built` said about itself in a run."""
    assert ended(instance, run) is dg.DagsterRunStatus.SUCCESS, messages(instance, run)
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    (event,) = instance.all_logs(run.run_id, of_type=kind)
    found = event.asset_materialization
    assert found is not None
    return {key: value.value for key, value in found.metadata.items()}


def _wait_for_another_tick(path: Path) -> None:
    written = path.stat().st_mtime_ns
    while time.time_ns() - written < 150_000_000:
        time.sleep(0.01)
