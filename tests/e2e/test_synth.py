"""SYNTH under a live `dagster dev`: a drop that is copied in, and a kill of everything.

The tests build on each other in the order they stand in.
"""

import shutil
import time
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.publish.remove import finished_parts
from gristmill.synth import KDConfig, build_kd_shard
from gristmill.synth.raw import NUMBERS
from gristmill.synth.samples import write_drop
from gristmill.vocabularies.pinned import O200K
from tests.e2e.live_instance import RUNNING, LiveInstance, slot_of, until

pytestmark = pytest.mark.slow

RAW, HARMONY, KD = ["synth", "raw"], ["synth", "harmony"], ["synth", "kd_shards"]
HARMONY_FOLDER, KD_FOLDER, SMOKE_FOLDER = (
    "synth_harmony",
    "megatron/synth_kd_v1",
    "megatron/synth_kd_v1_smoke",
)
HARMONY_MANIFEST = ["synth", "harmony_manifest"]
SHARDS = {
    "synth/harmony": HARMONY_FOLDER,
    "synth/kd_shards": KD_FOLDER,
    "synth_smoke/kd_shards": SMOKE_FOLDER,
}
MANIFESTS = {
    "synth/harmony_manifest": HARMONY_FOLDER,
    "synth/kd_manifest": KD_FOLDER,
    "synth_smoke/kd_manifest": SMOKE_FOLDER,
}
SETTINGS = "[synth.kd_shards]\nvalid_fraction = 0.1\nworkers = 2\n"


@pytest.fixture(scope="module")
def vocabulary(live_instance: LiveInstance, vocabulary_root: Path) -> None:
    """The vocabulary as `make run` brings it, built."""
    shutil.copytree(vocabulary_root / "drops/tokenizers", live_instance.data / "drops/tokenizers")
    done = live_instance.gristmill("materialize", "tokenizers/o200k_harmony")
    assert done.returncode == 0, done.stdout + done.stderr


def record_of(live_instance: LiveInstance, folder: str, name: str) -> provenance.Record:
    return provenance.read_record(
        provenance.record_path(live_instance.data / folder, name, shared=True)
    )


def assert_all_is_as_shown(live_instance: LiveInstance) -> None:
    """`verify` finds nothing, and the UI shows every record and nothing stale."""
    found = live_instance.gristmill("verify", str(live_instance.data))
    assert found.returncode == 0, found.stdout + found.stderr
    for asset, folder in SHARDS.items():
        for number in NUMBERS:
            live_instance.shows(asset.split("/"), number, record_of(live_instance, folder, number))
    for asset, folder in MANIFESTS.items():
        live_instance.shows(asset.split("/"), None, record_of(live_instance, folder, "manifest"))


@pytest.mark.usefixtures("vocabulary")
def test_a_raw_drop_that_is_copied_in_is_built_to_the_last_manifest(live_instance):
    inbox = live_instance.data / "drops/synth"
    write_drop(inbox / "unfinished", files=4, rows=5, done=False)
    source = live_instance.data / "source"
    write_drop(source, files=4, rows=300)
    (source / "gristmill.toml").write_text(SETTINGS)
    drop = inbox / "first"
    drop.mkdir()
    for file in (source / "gristmill.toml", *sorted(source.glob("*.parquet"))):
        content = file.read_bytes()
        for half in (content[: len(content) // 2], content[len(content) // 2 :]):
            with (drop / file.name).open("ab") as growing:
                growing.write(half)
            time.sleep(1)
    # Not before the last of the files, and `.done` is the last.
    assert not any(live_instance.runs(number) for number in NUMBERS)
    shutil.copy(source / ".done", drop)
    for number in NUMBERS:
        until(f"shard {number} has a run", lambda number=number: live_instance.runs(number))
    for number in NUMBERS:
        (run,) = live_instance.ended(number)
        assert run.status == "SUCCESS", live_instance.server.failure(run.run_id)
        assert run.tags["dagster/sensor_name"] == "synth_drops"
    assert live_instance.statuses(RAW)["materialized"] == list(NUMBERS)
    until(
        "the manifests have followed",
        lambda: (
            all(
                (live_instance.data / folder / "manifest.json").exists()
                for folder in MANIFESTS.values()
            )
            and not any(run.status in RUNNING for run in live_instance.runs(None))
        ),
    )
    assert {run.status for run in live_instance.runs(None)} == {"SUCCESS"}

    assert_all_is_as_shown(live_instance)
    lengths = [live_instance.partition(number, KD).metadata["rows"] for number in NUMBERS]
    assert sum(lengths) == live_instance.partition(None, HARMONY_MANIFEST).metadata["rows"]
    reason = "4 Parquet files of 500: add the others, or, if these are all, a "
    assert len([text for text in live_instance.observed(RAW) if reason in text]) == 1
    assert not [
        tick
        for name in ("synth_drops", "followers")
        for tick in live_instance.ticks(name)
        if tick["status"] == "FAILURE"
    ]


@pytest.fixture(scope="module")
def grown(live_instance: LiveInstance) -> Path:
    """The drop with one file that takes some seconds, converted; the others are as before."""
    live_instance.server.stop_sensors()
    write_drop(live_instance.data / "grown", files=1, rows=24_000, seed=9)
    (live_instance.data / "grown/synth_001.parquet").replace(
        live_instance.data / "drops/synth/first/synth_001.parquet"
    )
    run = live_instance.launch("00", HARMONY)
    assert live_instance.server.finished(run)["status"] == "SUCCESS", live_instance.server.failure(
        run
    )
    return live_instance.data / HARMONY_FOLDER / "synth_harmony_shard_00.parquet"


def test_after_a_kill_of_everything_a_shard_is_built_as_if_nothing_had_been(
    live_instance, grown, tmp_path
):
    folder, before = live_instance.data / KD_FOLDER, record_of(live_instance, KD_FOLDER, "00")
    assert live_instance.partition("00", KD).stale == "STALE"
    slot = slot_of(folder, "00")
    run = live_instance.launch("00", KD)
    worker = live_instance.worker_at_work(run, slot)
    until("two parts are finished", lambda: finished_parts(slot) >= 2)
    assert worker in live_instance.server.processes()
    live_instance.kill()
    assert record_of(live_instance, KD_FOLDER, "00") == before
    assert provenance.verify(folder, check_inputs=False) == []
    finished = finished_parts(slot)
    assert any(slot.glob("staging*"))

    # Before anything is served: a served instance closes the run by itself.
    done = live_instance.gristmill("prune")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"run {run[:8]} (STARTED): its process is gone" in done.stdout
    assert f"its finished parts ({finished}) stay" in done.stdout
    live_instance.start()
    assert live_instance.server.finished(run)["status"] == "FAILURE"
    assert (finished_parts(slot), any(slot.glob("staging*"))) == (finished, False)

    again = live_instance.launch("00", KD)
    assert live_instance.server.finished(again)["status"] == "SUCCESS", (
        live_instance.server.failure(again)
    )
    assert not slot.exists()
    record = record_of(live_instance, KD_FOLDER, "00")
    assert live_instance.shows(KD, "00", record).run_id == again

    vocabulary = live_instance.data / "tokenizer" / O200K.relative
    alone = tmp_path / "alone"
    build_kd_shard(grown, alone, KDConfig(vocabulary=vocabulary, valid_fraction=0.1))
    files = sorted(path.relative_to(alone) for path in alone.rglob("*") if path.is_file())
    assert [output.path for output in record.outputs] == [file.as_posix() for file in files]
    for file in files:
        assert (folder / file).read_bytes() == (alone / file).read_bytes(), file

    # The manifests and the smoke build, which nobody asked for yet.
    done = live_instance.gristmill("materialize", "--all")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "5 built in" in done.stdout and "refused synth/unfinished: " in done.stdout
    assert record_of(live_instance, KD_FOLDER, "00") == record
    assert_all_is_as_shown(live_instance)
