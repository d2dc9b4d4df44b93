"""The whole, as a person has it: drops, a plain `dagster dev`, runs, kills, and the commands.

The tests build on each other in the order they stand in: they share one
instance, since starting one takes long.
"""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest

from gristmill import provenance
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import PACK, RAW_DROP, Mill, drop, enlarge, slot_of, until

pytestmark = pytest.mark.slow
STEPS = "steps.npy"


def spoil(folder: Path) -> str:
    """Put a rank that does not exist into line 3 of the drop's first game; the file's name."""
    file = sorted(folder.glob("*.jsonl.gz"))[0]
    lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    lines[2] = lines[2].replace('"board":[', '"board":[99,', 1)
    file.write_bytes(gzip.compress("".join(lines).encode()))
    return file.name


def record_of(folder: Path) -> provenance.Record:
    return provenance.read_record(folder / provenance.RECORD)


def test_drops_that_are_copied_in_become_packs_and_what_cannot_is_explained(mill: Mill) -> None:
    drop(mill.drops / "good", seed=1)
    drop(mill.drops / "bad", seed=11)
    spoiled = spoil(mill.drops / "bad")
    drop(mill.drops / "not a key", seed=21)
    (mill.drops / "gameless").mkdir()
    (mill.drops / "gameless/readme.txt").write_text("no game")

    # File by file, the last of them growing: longer than two looks of the sensor.
    write_drop(mill.data / "source", seed=31, games=2, max_moves=60, depth=6)
    slow = mill.drops / "slow"
    slow.mkdir()
    *files, last = sorted((mill.data / "source").iterdir())
    for file in files:
        shutil.copy(file, slow)
        time.sleep(2)
    content = last.read_bytes()
    for step in range(16):
        with (slow / last.name).open("ab") as file:
            file.write(content[step * len(content) // 16 : (step + 1) * len(content) // 16])
        time.sleep(2)
        assert "slow" not in [key for keys in mill.statuses().values() for key in keys]

    until("three runs have ended", lambda: mill.runs("slow") and mill.runs("good"))
    assert [run.status for run in mill.ended("slow")] == ["SUCCESS"]
    assert [run.status for run in mill.ended("good")] == ["SUCCESS"]
    assert mill.ended("slow")[0].tags["dagster/sensor_name"] == "macroxue_drops"
    for key in ("slow", "good"):
        assert_pack_is_as_shown(mill, key)

    (failed,) = mill.ended("bad")
    assert failed.status == "FAILURE"
    reason = mill.server.failure(failed.run_id)
    assert f"{spoiled}:3: " in reason
    assert "16 ranks" in reason
    assert not mill.pack("bad").exists()
    assert mill.statuses()["failed"] == ["bad"]
    assert mill.statuses()["materialized"] == ["good", "slow"]

    for key, why in (("not a key", "the name 'not a key' may hold only"), ("gameless", "no game")):
        refused = f"{key} is refused: {why}"
        # A tick that asks for runs has no room for a reason: the next one says it.
        until(
            refused,
            lambda said=refused: [t for t in mill.ticks() if said in (t["skipReason"] or "")],
        )
        assert sum(why in text for text in mill.observed()) == 1
    assert not [tick for tick in mill.ticks() if tick["status"] == "FAILURE"]


def assert_pack_is_as_shown(mill: Mill, key: str) -> None:
    """The files are those of the record, and the event says what the files hold."""
    folder = mill.pack(key)
    assert provenance.verify(folder) == []
    shown = mill.shows(PACK, key, record_of(folder))
    rows = len(np.load(folder / STEPS))
    with sqlite3.connect(folder / "metadata.db") as tables:
        (runs,) = tables.execute("select count(*) from runs").fetchone()
    assert shown.metadata["rows"] == shown.metadata["dagster/partition_row_count"] == rows
    assert shown.metadata["runs"] == runs
    assert Path(shown.metadata["path"]) == folder


def test_a_replaced_drop_and_a_mended_one_are_built(mill: Mill) -> None:
    before = record_of(mill.pack("good"))
    drop(mill.drops / "good", seed=2)
    drop(mill.drops / "bad", seed=11)
    until("the mended drop has run", lambda: len(mill.runs("bad")) == 2)
    until("the replaced drop has run", lambda: len(mill.runs("good")) == 2)
    assert mill.ended("good", 2)[0].status == "SUCCESS"
    assert mill.ended("bad", 2)[0].status == "SUCCESS"
    assert record_of(mill.pack("good")).data_version != before.data_version
    for key in ("good", "bad"):
        assert_pack_is_as_shown(mill, key)
    assert mill.statuses()["materialized"] == ["bad", "good", "slow"]


def test_until_it_is_built_again_the_pack_of_a_replaced_drop_is_stale(mill: Mill) -> None:
    mill.server.stop_sensors()
    drop(mill.drops / "good", seed=3)
    # Building one drop from the command line tells the instance of all that are at hand.
    done = mill.gristmill("materialize", "macroxue/pack", "--partition", "slow")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing needed doing" in done.stdout
    shown = mill.partition("good")
    assert shown.stale == "STALE"
    (cause,) = shown.causes
    assert (cause["category"], cause["key"]["path"]) == ("DATA", RAW_DROP)
    assert cause["partitionKey"] == "good"
    assert mill.partition("slow").stale == "FRESH"
    done = mill.gristmill("materialize", "macroxue/pack", "--partition", "good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_pack_is_as_shown(mill, "good")


def test_a_run_from_the_ui_of_what_stands_builds_nothing(mill: Mill) -> None:
    before = (mill.pack("slow") / STEPS).stat()
    run_id = mill.launch("slow")
    assert mill.server.finished(run_id)["status"] == "SUCCESS"
    shown = mill.partition("slow")
    assert (shown.run_id, shown.metadata["status"]) == (run_id, "unchanged")
    after = (mill.pack("slow") / STEPS).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_in_a_backfill_a_bad_partition_fails_alone(mill: Mill) -> None:
    keys = [f"fill{number}" for number in range(4)]
    for number, key in enumerate(keys):
        drop(mill.drops / key, seed=100 + 10 * number)
        mill.server.add_partition("macroxue_drops", key)
    spoiled = spoil(mill.drops / "fill2")
    backfill, sound = mill.backfill(keys), mill.backfill(["bad", "good"])

    status, runs = mill.backfilled(sound)
    assert (status, [run.status for run in runs]) == ("COMPLETED_SUCCESS", ["SUCCESS"])
    assert mill.partition("good").run_id == runs[0].run_id
    assert mill.partition("good").stale == "FRESH"
    status, runs = mill.backfilled(backfill)
    assert status == "COMPLETED_FAILED"
    # All in one run: BATCH says how many partitions a run takes.
    (run,) = runs
    assert run.status == "FAILURE"
    reason = mill.server.failure(run.run_id)
    assert f"fill2: {mill.drops / 'fill2' / spoiled}" in reason
    assert "1 of 4 partitions failed" in reason
    statuses = mill.statuses()
    assert statuses["failed"] == ["fill2"]
    assert {"fill0", "fill1", "fill3"} <= set(statuses["materialized"])
    for key in ("fill0", "fill1", "fill3"):
        assert_pack_is_as_shown(mill, key)
    assert not mill.pack("fill2").exists()


@pytest.fixture(scope="module")
def big(mill: Mill) -> Path:
    """A drop that takes some seconds to pack, as a partition."""
    folder = mill.drops / "big"
    write_drop(folder, seed=500, games=6, max_moves=1200, depth=6)
    enlarge(folder, 300)
    (folder / "gristmill.toml").write_text("[macroxue.pack]\nworkers = 2\n")
    mill.server.add_partition("macroxue_drops", "big")
    return folder


def change(folder: Path, seed: int) -> None:
    """Add a game to a drop: its pack is to be built anew."""
    added = folder.parent.parent / f"added-{seed}"
    write_drop(added, seed=seed, games=1, max_moves=60, depth=6)
    for file in added.iterdir():
        file.rename(folder / file.name)
    added.rmdir()


def test_of_two_runs_at_once_one_builds_and_the_other_says_why_it_stops(
    mill: Mill, big: Path
) -> None:
    first = mill.launch("big")
    worker = mill.worker_at_work(first, slot_of(mill.pack("big")))
    os.kill(worker, signal.SIGSTOP)
    try:
        second = mill.launch("big")
        assert mill.server.finished(second)["status"] == "FAILURE"
    finally:
        os.kill(worker, signal.SIGCONT)
    assert f"is already being built by process {worker} on " in mill.server.failure(second)
    assert mill.server.finished(first)["status"] == "SUCCESS"
    # A free race: whoever comes late stops, or finds nothing to do.
    change(big, seed=599)
    runs = [mill.launch("big"), mill.launch("big")]
    outcomes = [mill.server.finished(run)["status"] for run in runs]
    assert "SUCCESS" in outcomes
    for run, outcome in zip(runs, outcomes, strict=True):
        if outcome != "SUCCESS":
            assert "is already being built by process" in mill.server.failure(run)
    assert provenance.verify(mill.pack("big")) == []
    assert (
        mill.partition("big").tags["dagster/data_version"]
        == record_of(mill.pack("big")).data_version
    )


def test_reap_leaves_a_living_run_alone(mill: Mill, big: Path) -> None:
    change(big, seed=600)
    run = mill.launch("big")
    worker = mill.worker_at_work(run, slot_of(mill.pack("big")))
    os.kill(worker, signal.SIGSTOP)
    try:
        done = mill.gristmill("reap")
        assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
        assert mill.runs("big")[0].status == "STARTED"
    finally:
        os.kill(worker, signal.SIGCONT)
    assert mill.server.finished(run)["status"] == "SUCCESS"
    assert_pack_is_as_shown(mill, "big")


def test_a_killed_worker_leaves_the_old_pack_whole_and_the_next_run_succeeds(
    mill: Mill, big: Path
) -> None:
    before = record_of(mill.pack("big"))
    change(big, seed=601)
    run = mill.launch("big")
    os.kill(mill.worker_at_work(run, slot_of(mill.pack("big"))), signal.SIGKILL)
    assert mill.server.finished(run)["status"] == "FAILURE"
    assert_old_pack_stands(mill, before)
    assert "big" in mill.statuses()["failed"]

    left = slot_of(mill.pack("big"))
    told = mill.gristmill("reap", "--dry-run")
    assert "left by a killed build" in told.stdout
    assert (left / "staging").exists()
    assert mill.gristmill("reap").returncode == 0
    assert not (left / "staging").exists()

    again = mill.launch("big")
    assert mill.server.finished(again)["status"] == "SUCCESS"
    assert_pack_is_as_shown(mill, "big")
    assert record_of(mill.pack("big")).data_version != before.data_version


def assert_old_pack_stands(mill: Mill, before: provenance.Record) -> None:
    assert provenance.verify(mill.pack("big"), check_inputs=False) == []
    assert record_of(mill.pack("big")) == before


def test_retire_forgets_a_partition_whose_drop_is_gone(mill: Mill) -> None:
    refused = mill.gristmill("retire", "slow")
    assert refused.returncode == 2
    assert "is still there" in refused.stderr
    shutil.move(mill.drops / "slow", mill.data / "slow-archived")
    told = mill.gristmill("retire", "slow", "--dry-run")
    assert (told.returncode, "forget slow" in told.stdout) == (0, True)
    assert "slow" in mill.statuses()["materialized"]
    assert mill.gristmill("retire", "slow").returncode == 0
    assert "slow" not in mill.statuses()["materialized"]
    assert mill.pack("slow").exists()
    assert mill.gristmill("retire", "slow").returncode == 2


def test_after_a_kill_of_everything_reap_closes_the_run_that_was_under_way(
    mill: Mill, big: Path
) -> None:
    before = record_of(mill.pack("big"))
    change(big, seed=602)
    run = mill.launch("big")
    worker = mill.worker_at_work(run, slot_of(mill.pack("big")))
    processes = mill.server.processes()
    # dagster dev, code server and its child, web server, daemon, the run and its pool.
    assert worker in processes
    assert len(processes) >= 6
    mill.kill()
    assert_old_pack_stands(mill, before)

    mill.start()
    status = {found.run_id: found.status for found in mill.runs("big")}
    assert status[run] == "STARTED"
    told = mill.gristmill("reap", "--dry-run")
    assert run[:8] in told.stdout
    assert "its process is gone" in told.stdout
    assert status == {found.run_id: found.status for found in mill.runs("big")}
    done = mill.gristmill("reap")
    assert done.returncode == 0, done.stdout + done.stderr
    assert mill.server.finished(run)["status"] == "FAILURE"
    assert "Reaped" in mill.server.failure(run)
    assert run[:8] not in mill.gristmill("reap").stdout

    again = mill.launch("big")
    assert mill.server.finished(again)["status"] == "SUCCESS"
    assert_pack_is_as_shown(mill, "big")
