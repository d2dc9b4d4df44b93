"""The whole, as a person has it: drops, a plain `dagster dev`, runs, kills, and the commands.

The tests build on each other in the order they stand in: they share one
instance, since starting one takes long.
"""

import gzip
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill import provenance
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import PACK, RAW_DROP, LiveInstance, drop, enlarge, slot_of, until
from tests.postgres import postgres

pytestmark = pytest.mark.slow
STEPS = "steps.npy"


@pytest.fixture(
    scope="module", params=["files", pytest.param("Postgres", marks=pytest.mark.engines)]
)
def history(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the instance keeps its history: every test holds for each place."""
    if request.param == "files":
        yield None
        return
    with postgres() as server:
        yield server.database("live")


def spoil(folder: Path) -> str:
    """Put a rank that does not exist into line 3 of the drop's first game; the file's name."""
    file = sorted(folder.glob("*.jsonl.gz"))[0]
    lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    lines[2] = lines[2].replace('"board":[', '"board":[99,', 1)
    file.write_bytes(gzip.compress("".join(lines).encode()))
    return file.name


def record_of(folder: Path) -> provenance.Record:
    return provenance.read_record(folder / provenance.RECORD)


def test_drops_that_are_copied_in_become_packs_and_what_cannot_is_explained(live_instance):
    drop(live_instance.drops / "good", seed=1)
    drop(live_instance.drops / "bad", seed=11)
    spoiled = spoil(live_instance.drops / "bad")
    drop(live_instance.drops / "not a key", seed=21)
    (live_instance.drops / "gameless").mkdir()
    (live_instance.drops / "gameless/readme.txt").write_text("no game")

    # File by file, the last of them growing: longer than two looks of the sensor.
    write_drop(live_instance.data / "source", seed=31, games=2, max_moves=60, depth=6)
    slow = live_instance.drops / "slow"
    slow.mkdir()
    *files, last = sorted((live_instance.data / "source").iterdir())
    for file in files:
        shutil.copy(file, slow)
        time.sleep(2)
    content = last.read_bytes()
    for step in range(16):
        with (slow / last.name).open("ab") as file:
            file.write(content[step * len(content) // 16 : (step + 1) * len(content) // 16])
        time.sleep(2)
        assert "slow" not in [key for keys in live_instance.statuses().values() for key in keys]

    until(
        "three runs have ended", lambda: live_instance.runs("slow") and live_instance.runs("good")
    )
    assert [run.status for run in live_instance.ended("slow")] == ["SUCCESS"]
    assert [run.status for run in live_instance.ended("good")] == ["SUCCESS"]
    assert live_instance.ended("slow")[0].tags["dagster/sensor_name"] == "macroxue_drops"
    for key in ("slow", "good"):
        assert_pack_is_as_shown(live_instance, key)

    # The run that it may have shared with the good one has not failed.
    failed = until(
        "the bad drop has failed",
        lambda: next((r for r in live_instance.runs("bad") if r.status == "FAILURE"), None),
    )
    assert failed.tags["dagster/partition"] == "bad"
    reason = live_instance.server.failure(failed.run_id)
    assert f"{spoiled}:3: " in reason
    assert "16 ranks" in reason
    assert not live_instance.pack("bad").exists()
    assert live_instance.statuses()["failed"] == ["bad"]
    assert live_instance.statuses()["materialized"] == ["good", "slow"]

    for key, why in (("not a key", "the name 'not a key' may hold only"), ("gameless", "no game")):
        refused = f"{key} is refused: "

        def said(refused: str = refused, why: str = why) -> list[Any]:
            reasons = ((tick, tick["skipReason"] or "") for tick in live_instance.ticks())
            return [tick for tick, reason in reasons if refused in reason and why in reason]

        # A tick that asks for runs has no room for a reason: the next one says it.
        until(refused, said)
        assert sum(why in text for text in live_instance.observed()) == 1
    assert not [tick for tick in live_instance.ticks() if tick["status"] == "FAILURE"]


def assert_pack_is_as_shown(live_instance: LiveInstance, key: str) -> None:
    """The files are those of the record, and the event says what the files hold."""
    folder = live_instance.pack(key)
    assert provenance.verify(folder) == []
    shown = live_instance.shows(PACK, key, record_of(folder))
    rows = len(np.load(folder / STEPS))
    with sqlite3.connect(folder / "metadata.db") as tables:
        (runs,) = tables.execute("select count(*) from runs").fetchone()
    assert shown.metadata["rows"] == shown.metadata["dagster/row_count"] == rows
    assert shown.metadata["runs"] == runs
    assert Path(shown.metadata["path"]) == folder


def test_a_replaced_drop_and_a_mended_one_are_built(live_instance):
    before = record_of(live_instance.pack("good"))
    counts = {key: len(live_instance.runs(key)) + 1 for key in ("good", "bad")}
    drop(live_instance.drops / "good", seed=2)
    drop(live_instance.drops / "bad", seed=11)
    for key, count in counts.items():
        assert live_instance.ended(key, count)[0].status == "SUCCESS"
    assert record_of(live_instance.pack("good")).data_version != before.data_version
    for key in ("good", "bad"):
        assert_pack_is_as_shown(live_instance, key)
    assert live_instance.statuses()["materialized"] == ["bad", "good", "slow"]


def test_until_it_is_built_again_the_pack_of_a_replaced_drop_is_stale(live_instance):
    live_instance.server.stop_sensors()
    drop(live_instance.drops / "good", seed=3)
    # Building one drop from the command line tells the instance of all in the inboxes.
    done = live_instance.gristmill("materialize", "macroxue/pack", "--partition", "slow")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing needed doing" in done.stdout
    shown = live_instance.partition("good")
    assert shown.stale == "STALE"
    (cause,) = shown.causes
    assert (cause["category"], cause["key"]["path"]) == ("DATA", RAW_DROP)
    assert cause["partitionKey"] == "good"
    assert live_instance.partition("slow").stale == "FRESH"
    done = live_instance.gristmill("materialize", "macroxue/pack", "--partition", "good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_pack_is_as_shown(live_instance, "good")


def test_a_run_from_the_ui_of_what_stands_builds_nothing(live_instance):
    before = (live_instance.pack("slow") / STEPS).stat()
    run_id = live_instance.launch("slow")
    assert live_instance.server.finished(run_id)["status"] == "SUCCESS"
    shown = live_instance.partition("slow")
    assert (shown.run_id, shown.metadata["status"]) == (run_id, "unchanged")
    after = (live_instance.pack("slow") / STEPS).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_in_a_backfill_a_bad_partition_fails_alone(live_instance):
    keys = [f"fill{number}" for number in range(4)]
    for number, key in enumerate(keys):
        drop(live_instance.drops / key, seed=100 + 10 * number)
        live_instance.server.add_partition("macroxue_drops", key)
    spoiled = spoil(live_instance.drops / "fill2")
    backfill, sound = live_instance.backfill(keys), live_instance.backfill(["bad", "good"])

    status, runs = live_instance.backfilled(sound)
    assert (status, [run.status for run in runs]) == ("COMPLETED_SUCCESS", ["SUCCESS"])
    assert live_instance.partition("good").run_id == runs[0].run_id
    assert live_instance.partition("good").stale == "FRESH"
    status, runs = live_instance.backfilled(backfill)
    assert status == "COMPLETED_FAILED"
    # All in one run: BATCH says how many partitions a run takes.
    (run,) = runs
    assert run.status == "FAILURE"
    reason = live_instance.server.failure(run.run_id)
    assert f"fill2: {live_instance.drops / 'fill2' / spoiled}" in reason
    assert "1 of 4 partitions failed" in reason
    statuses = live_instance.statuses()
    assert statuses["failed"] == ["fill2"]
    assert {"fill0", "fill1", "fill3"} <= set(statuses["materialized"])
    for key in ("fill0", "fill1", "fill3"):
        assert_pack_is_as_shown(live_instance, key)
    assert not live_instance.pack("fill2").exists()


@pytest.fixture(scope="module")
def big(live_instance: LiveInstance) -> Path:
    """A drop that takes some seconds to pack, as a partition."""
    folder = live_instance.drops / "big"
    write_drop(folder, seed=500, games=6, max_moves=1200, depth=6)
    enlarge(folder, 300)
    (folder / "gristmill.toml").write_text("[macroxue.pack]\nworkers = 2\n")
    live_instance.server.add_partition("macroxue_drops", "big")
    return folder


def change(folder: Path, seed: int) -> None:
    """Add a game to a drop: so that its pack is not current any more."""
    added = folder.parent.parent / f"added-{seed}"
    write_drop(added, seed=seed, games=1, max_moves=60, depth=6)
    for file in added.iterdir():
        file.rename(folder / file.name)
    added.rmdir()


def test_of_two_runs_at_once_one_builds_and_the_other_says_why_it_stops(live_instance, big):
    first = live_instance.launch("big")
    worker = live_instance.worker_at_work(first, slot_of(live_instance.pack("big")))
    os.kill(worker, signal.SIGSTOP)
    try:
        second = live_instance.launch("big")
        assert live_instance.server.finished(second)["status"] == "FAILURE"
    finally:
        os.kill(worker, signal.SIGCONT)
    assert f"is already being built by process {worker} on " in live_instance.server.failure(second)
    assert live_instance.server.finished(first)["status"] == "SUCCESS"
    # A free race: whoever comes late stops, or finds nothing to do.
    change(big, seed=599)
    runs = [live_instance.launch("big"), live_instance.launch("big")]
    outcomes = [live_instance.server.finished(run)["status"] for run in runs]
    assert "SUCCESS" in outcomes
    for run, outcome in zip(runs, outcomes, strict=True):
        if outcome != "SUCCESS":
            assert "is already being built by process" in live_instance.server.failure(run)
    assert provenance.verify(live_instance.pack("big")) == []
    assert (
        live_instance.partition("big").tags["dagster/data_version"]
        == record_of(live_instance.pack("big")).data_version
    )


def test_prune_leaves_a_living_run_alone(live_instance, big):
    change(big, seed=600)
    run = live_instance.launch("big")
    worker = live_instance.worker_at_work(run, slot_of(live_instance.pack("big")))
    os.kill(worker, signal.SIGSTOP)
    try:
        done = live_instance.gristmill("prune")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("removed: 0 runs; ")
        assert live_instance.runs("big")[0].status == "STARTED"
    finally:
        os.kill(worker, signal.SIGCONT)
    assert live_instance.server.finished(run)["status"] == "SUCCESS"
    assert_pack_is_as_shown(live_instance, "big")


def test_a_killed_worker_leaves_the_old_pack_whole_and_the_next_run_succeeds(live_instance, big):
    before = record_of(live_instance.pack("big"))
    change(big, seed=601)
    run = live_instance.launch("big")
    os.kill(live_instance.worker_at_work(run, slot_of(live_instance.pack("big"))), signal.SIGKILL)
    assert live_instance.server.finished(run)["status"] == "FAILURE"
    assert_old_pack_stands(live_instance, before)
    assert "big" in live_instance.statuses()["failed"]

    left = slot_of(live_instance.pack("big"))
    listed = live_instance.gristmill("prune", "--dry-run")
    assert "left by a killed build" in listed.stdout
    assert any(left.glob("staging*"))
    assert live_instance.gristmill("prune").returncode == 0
    assert not any(left.glob("staging*"))

    again = live_instance.launch("big")
    assert live_instance.server.finished(again)["status"] == "SUCCESS"
    assert_pack_is_as_shown(live_instance, "big")
    assert record_of(live_instance.pack("big")).data_version != before.data_version


def assert_old_pack_stands(live_instance: LiveInstance, before: provenance.Record) -> None:
    assert provenance.verify(live_instance.pack("big"), check_inputs=False) == []
    assert record_of(live_instance.pack("big")) == before


def test_after_a_kill_of_everything_prune_closes_the_run_that_was_under_way(live_instance, big):
    before = record_of(live_instance.pack("big"))
    change(big, seed=602)
    run = live_instance.launch("big")
    worker = live_instance.worker_at_work(run, slot_of(live_instance.pack("big")))
    processes = live_instance.server.processes()
    # dagster dev, code server and its child, web server, daemon, the run and its pool.
    assert worker in processes
    assert len(processes) >= 6
    live_instance.kill()
    assert_old_pack_stands(live_instance, before)

    # Before anything is served: a served instance closes the run by itself.
    for _ in range(2):
        listed = live_instance.gristmill("prune", "--dry-run")
        assert run[:8] in listed.stdout
        assert "(STARTED): its process is gone" in listed.stdout
    done = live_instance.gristmill("prune")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run[:8] in done.stdout
    assert run[:8] not in live_instance.gristmill("prune").stdout

    live_instance.start()
    assert live_instance.server.finished(run)["status"] == "FAILURE"
    assert "Closed: " in live_instance.server.failure(run)

    again = live_instance.launch("big")
    assert live_instance.server.finished(again)["status"] == "SUCCESS"
    assert_pack_is_as_shown(live_instance, "big")


def test_pruned_while_it_is_served_the_instance_shows_each_partition_as_before(live_instance):
    runs, statuses = live_instance.runs(None), live_instance.statuses()
    keys = ("good", "big", "fill0")
    shown = [live_instance.partition(key) for key in keys]
    done = live_instance.gristmill("prune", "--keep-runs", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    left = {run.run_id for run in live_instance.runs(None)}
    assert left < {run.run_id for run in runs}
    assert {partition.run_id for partition in shown} <= left
    assert live_instance.statuses() == statuses
    assert [live_instance.partition(key) for key in keys] == shown
    run = live_instance.launch("good")
    assert live_instance.server.finished(run)["status"] == "SUCCESS"
