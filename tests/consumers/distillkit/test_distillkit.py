"""Distill datasets as DistillKit opens them, and as the library `datasets` does."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from gristmill.synth.read import distill
from gristmill.vocabularies.pinned import O200K, find
from tests.consumers.distillkit import DISTILLKIT
from tests.consumers.distillkit.reader import load, sampled
from tests.requirements import cannot_run

pytestmark = pytest.mark.slow
ASSETS = ["synth/distill", "chat/distill"]
_OPEN = """
import json, sys, datasets
loaded = datasets.load_from_disk(sys.argv[1])
assert type(loaded) is datasets.DatasetDict
for split, rows in loaded.items():
    shuffled = rows.shuffle(seed=42) if len(rows) else rows
    assert sorted(shuffled["id"]) == sorted(rows["id"])
print(json.dumps({split: list(rows) for split, rows in loaded.items()}))
"""


@DISTILLKIT.opens(*ASSETS)
@pytest.mark.parametrize("asset", ASSETS)
def test_every_row_of_both_splits_keeps_the_rules(asset, sample_root):
    place, record = sample_root.record(asset)
    for split, counted in (("train", "train_rows"), ("validation", "valid_rows")):
        table = load(place, split)
        assert len(table) == record.counts[counted] > 0
        rows = sampled(table, len(table))
        with pytest.raises(IndexError):
            sampled(table, len(table) + 1)
        names = {row["source"]["dataset"] for row in rows}
        assert names == {"pleias_synth" if asset.startswith("synth") else "talks"}


@DISTILLKIT.opens("synth/distill", how="the folder, opened by `datasets`")
def test_the_library_reads_the_rows_that_were_written(sample_root, tmp_path):
    python = os.environ.get("GRISTMILL_DATASETS", sys.executable)
    if python == sys.executable and find_spec("datasets") is None:
        cannot_run(
            "datasets", "the library datasets is not installed: see tests/consumers/datasets"
        )
    place, _ = sample_root.record("synth/distill")
    done = subprocess.run(
        [python, "-c", _OPEN, str(place)],
        env={"PATH": os.environ["PATH"], "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {
        name: [row for batch in distill.batches(place, split) for row in batch.to_pylist()]
        for split, name in distill.SPLITS.items()
    }


def test_the_answer_of_a_row_is_decoded(sample_root):
    from gristmill.vocabularies.encode import encoding

    place, _ = sample_root.record("chat/distill")
    words = encoding(find(O200K, sample_root.data))
    row = load(place, "train").slice(0, 1).to_pylist()[0]
    answer = [label for label in row["labels"] if label >= 0]
    number = int(row["id"].removeprefix("talks:talk"))
    assert words.decode(answer[:-1]).endswith(str(number + 1))
