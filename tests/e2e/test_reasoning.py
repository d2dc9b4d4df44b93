"""Reasoning under a live `dagster dev`: a drop that is copied in is built to the manifests."""

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


def test_a_drop_of_two_splits_is_built_to_both_manifests(live_instance, vocabulary_root):
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


OWN = """schema = 1
name = "my_math"
licence = { id = "CC-BY-4.0", url = "https://example.org/terms", share = true, train = true }
files = { train = "SFT/part-*", heldout = "check.csv" }
question = "problem"
answer = "solution"
"""


def test_a_corpus_of_a_stranger_is_taken_and_its_page_counts_it(live_instance, vocabulary_root):
    tokenizers = live_instance.data / "drops/tokenizers"
    shutil.copytree(vocabulary_root / "drops/tokenizers", tokenizers, dirs_exist_ok=True)
    done = live_instance.gristmill("materialize", "tokenizers/gpt2")
    assert done.returncode == 0, done.stdout + done.stderr
    drop = live_instance.data.parent / "my_math"
    (drop / "SFT").mkdir(parents=True)
    rows = [{"problem": f"What is {n} and {n}?", "solution": f"It is {2 * n}."} for n in range(9)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (drop / "SFT/part-0.jsonl").write_text(lines)
    (drop / "check.csv").write_text("problem;solution\nWhat is 1 and 1?;It is 2.\n")
    (drop / "corpus.toml").write_text(OWN)
    asset, key = ["reasoning", "normalized"], "my_math__train"
    assert all(key not in keys for keys in live_instance.statuses(asset).values())
    done = live_instance.gristmill("drop", str(drop), "--family", "reasoning")
    assert done.returncode == 0, done.stdout + done.stderr
    for each in ("my_math__train", "my_math__heldout"):
        until(f"{each} has a run", lambda each=each: live_instance.runs(each))
    (run,) = live_instance.ended(key)
    assert run.status == "SUCCESS", live_instance.server.failure(run.run_id)
    assert run.tags["dagster/sensor_name"] == "reasoning_drops"
    for name, folder in SPLITS.items():
        statuses = live_instance.statuses(name.split("/"))
        assert {"my_math__train", "my_math__heldout"} <= set(statuses["materialized"]), name
        live_instance.shows(name.split("/"), key, _record(live_instance, folder, key))
    page = live_instance.partition(key, asset).metadata
    assert page["records"] == 9 and str(page["account"]).startswith("1 file taken")
