"""The launcher for a Ray cluster: what it asks for, and which runs it takes for dead."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext

from assets import worker
from commands.prune import close_dead_runs
from gristmill.contract import BadInput
from tests.commands.test_prune import gone, idle, started
from tests.paths import CHECKOUT
from tests.requirements import cannot_run

pytestmark = pytest.mark.engines

PACK = dg.AssetKey(["macroxue", "pack"])
VALUES = dg.AssetKey(["macroxue", "values"])


class Cluster:
    """What the launcher asks of Ray's job server, with answers of the test."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.answer: Any = "RUNNING"

    def submit_job(self, **words: Any) -> None:
        self.jobs.append(words)

    def get_job_status(self, submission_id: str) -> Any:
        from ray.job_submission import JobStatus

        if isinstance(self.answer, Exception):
            raise self.answer
        return JobStatus(self.answer)

    def get_job_info(self, submission_id: str) -> Any:
        return SimpleNamespace(message="as the test says")

    def list_jobs(self) -> list[Any]:
        return []


def need_ray() -> None:
    try:
        import dagster_ray  # noqa: F401
        import ray  # noqa: F401
    except ImportError as error:
        cannot_run("ray", f"{error}: make engines")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def instance(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    need_ray()
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    config = {
        "ray": {"address": "http://127.0.0.1:8265", "num_cpus": 1, "memory": 1000},
        "assets": {
            "macroxue/pack": {"num_cpus": 4, "resources": {"disk": 1.0}},
            "macroxue/values": {"num_cpus": 2, "memory": 5000, "resources": {"disk": 2.0}},
        },
    }
    block = {
        "module": "commands.serving.ray_launcher",
        "class": "RayAssetLauncher",
        "config": config,
    }
    with dg.instance_for_test(overrides={"run_launcher": block}) as made:
        made.run_launcher.client = cluster  # type: ignore[attr-defined]
        yield made


def launched(instance: dg.DagsterInstance, *assets: dg.AssetKey, **asked: Any) -> dg.DagsterRun:
    """A run of assets that the launcher has given to the cluster. asked: by the run's own tag."""
    repository = ReconstructableRepository.for_module("definitions", fn_name="defs")
    run = instance.create_run_for_job(
        idle,
        status=dg.DagsterRunStatus.STARTED,
        tags={"dagster-ray/config": json.dumps(asked)} if asked else {},
        job_code_origin=repository.get_reconstructable_job("idle").get_python_origin(),
    )
    chosen = run._replace(asset_selection=frozenset(assets))
    instance.run_launcher.launch_run(LaunchRunContext(chosen, workspace=None))
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found


def health(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    return str(instance.run_launcher.check_run_worker_health(run).status.value)


def test_a_run_asks_for_what_its_assets_need(instance, cluster):
    """The most of all; what no asset names is the block's own."""

    def asked(*assets: dg.AssetKey, **tag: Any) -> tuple[Any, ...]:
        launched(instance, *assets, **tag)
        job = cluster.jobs[-1]
        kinds = ("num_cpus", "memory", "resources")
        return tuple(job[f"entrypoint_{kind}"] for kind in kinds)

    assert asked(PACK, VALUES) == (4, 5000, {"disk": 2.0})
    assert asked(PACK) == (4, 1000, {"disk": 1.0})
    assert asked(dg.AssetKey(["puzzles", "dataset"])) == (1, 1000, None)
    assert asked(PACK, num_cpus=2) == (2, 1000, {"disk": 1.0})


def test_workers_of_gristmill_toml_are_asked_for(instance, cluster, tmp_path):
    text = "[macroxue.pool]\nworkers = 3\n[macroxue.pack]\nworkers = 2\n"
    (tmp_path / "gristmill.toml").write_text(text)
    launched(instance, dg.AssetKey(["macroxue", "pool"]))
    launched(instance, PACK)  # The block of dagster.yaml says 4.
    assert [job["entrypoint_num_cpus"] for job in cluster.jobs] == [3, 4]
    (tmp_path / "gristmill.toml").write_text("[macroxue.pool]\nworkers = 1\n")
    launched(instance, dg.AssetKey(["macroxue", "pool"]))
    assert cluster.jobs[-1]["entrypoint_num_cpus"] == 1
    (tmp_path / "gristmill.toml").write_text("[macroxue.pool]\nworkers = 'two'\n")
    with pytest.raises(BadInput, match="workers"):
        launched(instance, dg.AssetKey(["macroxue", "pool"]))


def test_the_cluster_says_which_of_its_runs_are_dead(instance, cluster):
    run = launched(instance, PACK)
    # The process of a run is on another machine: its signature fits nothing here.
    instance.add_run_tags(run.run_id, {worker.TAG: gone()})
    run = instance.get_run_by_id(run.run_id) or run
    for answer in ("RUNNING", "PENDING"):
        cluster.answer = answer
        assert health(instance, run) == "RUNNING"
        assert list(close_dead_runs(instance)) == []
    cluster.answer = RuntimeError("Request failed with status code 500: it is busy")
    assert health(instance, run) == "RUNNING"
    assert list(close_dead_runs(instance)) == []
    for dead in ("FAILED", "STOPPED", RuntimeError("Request failed: Job x does not exist")):
        cluster.answer = dead
        assert health(instance, run) == "FAILED"
    (line,) = close_dead_runs(instance)
    assert line.startswith(f"run {run.run_id[:8]} (STARTED): the Ray cluster does not know")
    assert instance.get_run_by_id(run.run_id).status.value == "FAILURE"  # type: ignore[union-attr]


def test_a_run_of_this_machine_is_no_ray_job(instance, cluster):
    """As those of `gristmill materialize`, which the cluster does not know."""
    cluster.answer = RuntimeError("Request failed: Job x does not exist")
    mine = str(worker.identity(os.getpid()))
    for signature, answer in ((mine, "RUNNING"), (gone(), "FAILED")):
        run = instance.get_run_by_id(started(instance, {worker.TAG: signature}))
        assert run is not None
        assert health(instance, run) == answer


def test_nothing_imports_ray_unless_dagster_yaml_names_it():
    code = (
        "import sys, definitions, commands.materialize, commands.ui, commands.prune\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('ray', 'dagster_ray')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_documented_block_is_one_that_dagster_takes(tmp_path):
    need_ray()
    page = (CHECKOUT / "docs/clusters.md").read_text()
    (block,) = re.findall(r"```yaml\n(run_launcher:.*?)```", page, re.DOTALL)
    (tmp_path / "dagster.yaml").write_text(block)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert type(instance.run_launcher).__name__ == "RayAssetLauncher"
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_max_resume_run_attempts == 0
