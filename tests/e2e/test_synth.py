"""SYNTH under a live `dagster dev`: a drop that is copied in."""

import shutil
import time
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.synth.raw import NUMBERS
from gristmill.synth.samples import write_drop
from tests.e2e.live_instance import RUNNING, LiveInstance, until

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
