"""Reasoning under a live `dagster dev`: a drop that is copied in is built to the manifests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.reasoning.format import names
from tests.e2e.live_instance import RUNNING, LiveInstance, until

pytestmark = pytest.mark.slow

SPLITS = {
    "reasoning/normalized": names.NORMALIZED,
    "reasoning/gpt2_shards": names.TOKENIZED,
    "reasoning/alignment": names.ALIGNMENT,
}
MANIFESTS = {
    "reasoning/raw_manifest": names.NORMALIZED,
    "reasoning/manifest": names.TOKENIZED,
}
KEYS = ("gsm8k__train", "gsm8k__test")


def test_a_drop_of_two_splits_is_built_to_both_manifests(
    live_instance: LiveInstance, vocabulary_root: Path
) -> None:
    shutil.copytree(vocabulary_root / "drops/tokenizers", live_instance.data / "drops/tokenizers")
    done = live_instance.gristmill("materialize", "tokenizers/gpt2")
    assert done.returncode == 0, done.stdout + done.stderr
    drop = live_instance.data / "drops/reasoning/gsm8k"
    drop.mkdir(parents=True)
    for split in ("train", "test"):
        lines = [{"question": f"{n}?", "answer": f"It is {n}.\n#### {n}"} for n in range(20)]
        (drop / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for key in KEYS:
        until(f"{key} has a run", lambda key=key: live_instance.runs(key))
    for key in KEYS:
        (run,) = live_instance.ended(key)
        assert run.status == "SUCCESS", live_instance.server.failure(run.run_id)
        assert run.tags["dagster/sensor_name"] == "reasoning_drops"
    until(
        "the manifests have followed",
        lambda: (
            all(
                len(_manifest(live_instance.data / folder)) == count
                for folder, count in ((names.NORMALIZED, 1), (names.TOKENIZED, 2))
            )
            and not any(run.status in RUNNING for run in live_instance.runs(None))
        ),
    )
    found = live_instance.gristmill("verify", str(live_instance.data))
    assert found.returncode == 0, found.stdout + found.stderr
    for asset, folder in SPLITS.items():
        for key in KEYS:
            live_instance.shows(asset.split("/"), key, _record(live_instance, folder, key))
    for asset, folder in MANIFESTS.items():
        live_instance.shows(asset.split("/"), None, _record(live_instance, folder, "manifest"))


def _manifest(folder: Path) -> list[object]:
    path = folder / names.MANIFEST
    return list(json.loads(path.read_bytes())) if path.exists() else []


def _record(live_instance: LiveInstance, folder: str, name: str) -> provenance.Record:
    return provenance.read_record(
        provenance.record_path(live_instance.data / folder, name, shared=True)
    )
