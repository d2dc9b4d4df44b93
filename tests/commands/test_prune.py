"""`gristmill prune`: which runs it closes and removes, and what it removes of killed builds."""

import json
import os
import subprocess

import dagster as dg
from dagster._core.events import EngineEventData

from assets import worker
from bench.large_instance import PACK, add_run
from commands import prune
from gristmill.publish import storage
from gristmill.publish.publish import publish
from gristmill.run.parts import PartStore
from tests.commands.drops import PACKS, printed
from tests.publish.tiny import TinyConfig, tiny_build


@dg.op
def nothing() -> None: ...


@dg.job
def idle() -> None:
    nothing()


def started(instance: dg.DagsterInstance, tags: dict[str, str]) -> str:
    """A run that says it is under way."""
    return instance.create_run_for_job(idle, status=dg.DagsterRunStatus.STARTED, tags=tags).run_id


def gone() -> str:
    """The signature of a process that has ended."""
    with subprocess.Popen(["sleep", "60"]) as process:
        signature = worker.identity(process.pid)
        process.kill()
    assert signature is not None
    return signature


def test_prune_closes_runs_without_a_process_and_no_others(run, instance, tmp_path):
    mine = worker.identity(os.getpid())
    server = json.dumps({"socket": str(tmp_path / "no.sock")})
    alive = started(instance, {worker.TAG: str(mine)})
    dead = {
        started(instance, {worker.TAG: gone()}): "its process is gone",
        started(instance, {".dagster/grpc_info": server}): "the code server that launched it",
        started(instance, {}): "it never started a process on this machine",
    }

    def statuses() -> dict[str, str]:
        return {item.run_id: item.status.value for item in instance.get_runs()}

    before = statuses()
    for words in (["prune", "--dry-run"], ["prune"]):
        said = printed(run(*words))
        for run_id, reason in dead.items():
            assert f"run {run_id[:8]} (STARTED): {reason}" in said
        assert alive[:8] not in said
        if "--dry-run" in words:
            assert statuses() == before
    after = statuses()
    assert {after[run_id] for run_id in dead} == {"FAILURE"}
    assert after[alive] == "STARTED"
    assert run("prune").output == "removed: 0 runs; 4 stay\n"


def test_a_run_without_a_tag_is_judged_by_the_process_that_its_events_name(run, instance):
    runs = {}
    for process in (os.getpid(), int(gone().split(":")[1])):
        run_id = runs[process] = started(instance, {})
        made = instance.get_run_by_id(run_id)
        assert made is not None
        instance.report_engine_event("started", made, EngineEventData.in_process(process))
    alive, dead = runs.values()
    output = run("prune").output
    assert f"run {dead[:8]} (STARTED): its process is gone" in output
    assert alive[:8] not in output


def test_prune_sweeps_what_a_killed_build_left(run, data):
    left = data / PACKS / ".gristmill/slots/one/staging"
    left.mkdir(parents=True)
    (left / "steps.npy").write_bytes(b"half")
    assert f"left by a killed build: {left.parent}" in run("prune", "--dry-run").output
    assert left.exists()
    assert run("prune").exit_code == 0
    assert not left.parent.exists()


def test_prune_removes_versions_that_no_link_names(run, data, monkeypatch):
    monkeypatch.setenv(storage.VARIABLE, "link")
    folder = data / "family/tiny"
    publish(tiny_build(data, config=TinyConfig(seed=1)))
    left = storage.store_of(folder) / ("0" * 32)
    left.mkdir()
    assert f"versions of {folder} that no link names: 1" in run("prune", "--dry-run").output
    assert left.exists()
    assert f"versions of {folder} that no link names: 1" in run("prune").output
    assert list(storage.store_of(folder).iterdir()) == [storage.version_of(folder)]
    assert run("prune").output == "removed: 0 runs; 0 stay\n"


def test_prune_keeps_finished_parts_unless_asked_to_remove_them(run, data):
    slot = data / PACKS / ".gristmill/slots/one"
    store = PartStore(slot / "parts/0123456789abcdef")
    (slot / "staging").mkdir(parents=True)
    store.folder.mkdir(parents=True)
    with store.writing("games_0") as (path, _):
        path.write_bytes(b"whole")
    kept = f"left by a killed build: {slot}; its finished parts (1) stay for the next build"
    assert kept in run("prune", "--dry-run").output
    assert (slot / "staging").exists()
    assert kept in run("prune").output
    assert not (slot / "staging").exists()
    assert store.finished("games_0") == {}
    assert f"left by a killed build: {slot}\n" in run("prune", "--parts").output
    assert not slot.exists()


def test_brackets_of_what_a_launcher_says_are_printed(run, instance, monkeypatch):
    run_id = started(instance, {})
    monkeypatch.setattr(prune, "why_dead", lambda *_: "the job [raysubmit_1] is gone")
    said = run("prune", "--dry-run").output
    assert f"run {run_id[:8]} (STARTED): the job [raysubmit_1] is gone" in said


def test_it_says_how_many_runs_it_removed_and_refuses_what_is_no_number(run, instance):
    runs = [add_run(instance, PACK, ["a"]) for _ in range(3)]
    counted = printed(run("prune", "--keep-runs", "1", "--dry-run"))
    assert counted == "would be removed: 2 runs; 1 stay\n"
    assert len(instance.get_runs()) == 3
    assert printed(run("prune", "--keep-runs", "1")) == "removed: 2 runs; 1 stay\n"
    assert [one.run_id for one in instance.get_runs()] == [runs[2]]
    for words in (("--keep-days", "0"), ("--keep-days", "x"), ("--keep-runs", "-1")):
        assert run("prune", *words).exit_code == 2
