"""SYNTH under a live `dagster dev`: a drop that is copied in, and a kill of everything.

The tests build on each other in the order they stand in.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.publish.remove import finished_parts
from gristmill.samples.synth import write_drop
from gristmill.synth import KDConfig, build_kd_shard
from gristmill.synth.build.source import NUMBERS
from gristmill.vocabularies.pinned import O200K
from tests.e2e.live_instance import RUNNING, Mill, slot_of, until

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
def vocabulary(mill: Mill, vocabulary_root: Path) -> None:
    """The vocabulary as `make run` brings it, built."""
    shutil.copytree(vocabulary_root / "drops/tokenizers", mill.data / "drops/tokenizers")
    done = mill.gristmill("materialize", "tokenizers/o200k_harmony")
    assert done.returncode == 0, done.stdout + done.stderr


def record_of(mill: Mill, folder: str, name: str) -> provenance.Record:
    return provenance.read_record(provenance.record_path(mill.data / folder, name, shared=True))


def assert_all_is_as_shown(mill: Mill) -> None:
    """`verify` finds nothing, and the UI shows every record and nothing stale."""
    found = mill.gristmill("verify", str(mill.data))
    assert found.returncode == 0, found.stdout + found.stderr
    for asset, folder in SHARDS.items():
        for number in NUMBERS:
            mill.shows(asset.split("/"), number, record_of(mill, folder, number))
    for asset, folder in MANIFESTS.items():
        mill.shows(asset.split("/"), None, record_of(mill, folder, "manifest"))


@pytest.mark.usefixtures("vocabulary")
def test_a_raw_drop_that_is_copied_in_is_built_to_the_last_manifest(mill: Mill) -> None:
    inbox = mill.data / "drops/synth"
    write_drop(inbox / "unfinished", files=4, rows=5, done=False)
    source = mill.data / "source"
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
    assert not any(mill.runs(number) for number in NUMBERS)
    shutil.copy(source / ".done", drop)
    for number in NUMBERS:
        until(f"shard {number} has a run", lambda number=number: mill.runs(number))
    for number in NUMBERS:
        (run,) = mill.ended(number)
        assert run.status == "SUCCESS", mill.server.failure(run.run_id)
        assert run.tags["dagster/sensor_name"] == "synth_drops"
    assert mill.statuses(RAW)["materialized"] == list(NUMBERS)
    until(
        "the manifests have followed",
        lambda: (
            all((mill.data / folder / "manifest.json").exists() for folder in MANIFESTS.values())
            and not any(run.status in RUNNING for run in mill.runs(None))
        ),
        seconds=150,
    )
    assert {run.status for run in mill.runs(None)} == {"SUCCESS"}

    assert_all_is_as_shown(mill)
    lengths = [mill.partition(number, KD).metadata["rows"] for number in NUMBERS]
    assert sum(lengths) == mill.partition(None, HARMONY_MANIFEST).metadata["rows"]
    reason = "4 Parquet files of 500: add the others, or a file .done if these are all"
    assert [reason in text for text in mill.observed(RAW)] == [True]
    assert not [
        tick
        for name in ("synth_drops", "followers")
        for tick in mill.ticks(name)
        if tick["status"] == "FAILURE"
    ]


@pytest.fixture(scope="module")
def grown(mill: Mill) -> Path:
    """The drop with one file that takes some seconds, converted; the others are as before."""
    mill.server.stop_sensors()
    write_drop(mill.data / "grown", files=1, rows=24_000, seed=9)
    (mill.data / "grown/synth_001.parquet").replace(
        mill.data / "drops/synth/first/synth_001.parquet"
    )
    run = mill.launch("00", HARMONY)
    assert mill.server.finished(run)["status"] == "SUCCESS", mill.server.failure(run)
    return mill.data / HARMONY_FOLDER / "synth_harmony_shard_00.parquet"


def test_after_a_kill_of_everything_a_shard_is_built_as_if_nothing_had_been(
    mill: Mill, grown: Path, tmp_path: Path
) -> None:
    folder, before = mill.data / KD_FOLDER, record_of(mill, KD_FOLDER, "00")
    assert mill.partition("00", KD).stale == "STALE"
    slot = slot_of(folder, "00")
    run = mill.launch("00", KD)
    worker = mill.worker_at_work(run, slot)
    until("two parts are finished", lambda: finished_parts(slot) >= 2)
    assert worker in mill.server.processes()
    mill.kill()
    assert record_of(mill, KD_FOLDER, "00") == before
    assert provenance.verify(folder, check_inputs=False) == []
    finished = finished_parts(slot)
    assert (slot / "staging").exists()

    mill.start()
    done = mill.gristmill("reap")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"run {run[:8]} (STARTED): its process is gone" in done.stdout
    assert f"its finished parts ({finished}) stay" in done.stdout
    assert mill.server.finished(run)["status"] == "FAILURE"
    assert (finished_parts(slot), (slot / "staging").exists()) == (finished, False)

    again = mill.launch("00", KD)
    assert mill.server.finished(again)["status"] == "SUCCESS", mill.server.failure(again)
    assert not slot.exists()
    record = record_of(mill, KD_FOLDER, "00")
    assert mill.shows(KD, "00", record).run_id == again

    vocabulary = mill.data / "tokenizer" / O200K.relative
    alone = tmp_path / "alone"
    build_kd_shard(grown, alone, KDConfig(vocabulary=vocabulary, valid_fraction=0.1))
    files = sorted(path.relative_to(alone) for path in alone.rglob("*") if path.is_file())
    assert [output.path for output in record.outputs] == [file.as_posix() for file in files]
    for file in files:
        assert (folder / file).read_bytes() == (alone / file).read_bytes(), file

    # The manifests and the smoke build, which nobody asked for yet.
    done = mill.gristmill("materialize", "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert record_of(mill, KD_FOLDER, "00") == record
    assert_all_is_as_shown(mill)
