"""Rows of distill datasets keep what DistillKit asks of a row."""

import json
from typing import Any

import pytest

from gristmill.synth.read import distill
from gristmill.vocabularies.encode import encoding
from gristmill.vocabularies.pinned import O200K, find
from tests.consumers.distillkit import DISTILLKIT

pytestmark = pytest.mark.slow
ASSETS = ["synth/distill", "chat/distill"]


def check(row: dict[str, Any]) -> None:
    """A row has no end of a document, labels as its spans say, and a source in one text."""
    ids = row["input_ids"]
    start, analysis, final = row["spans"].values()
    assert start + analysis + final == len(ids) and min(start, final) > 0 <= analysis
    assert row["labels"] == [-100] * start + ids[start:]
    assert row["attention_mask"] == [1] * len(ids) and 199999 not in ids and ids[-1] == 200002
    meta = json.loads(row["source"]["meta_json"])
    text = json.dumps(meta, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert "dataset" in meta and text == row["source"]["meta_json"]


@DISTILLKIT.opens(*ASSETS)
@pytest.mark.parametrize("asset", ASSETS)
def test_every_row_of_both_splits_keeps_the_rules(asset, sample_root):
    place, record = sample_root.record(asset)
    for split, counted in (("train", "train_rows"), ("valid", "valid_rows")):
        rows = [row for batch in distill.batches(place, split) for row in batch.to_pylist()]
        assert len(rows) == record.counts[counted] > 0
        for row in rows:
            check(row)
        names = {row["source"]["dataset"] for row in rows}
        assert names == {"pleias_synth" if asset.startswith("synth") else "talks"}


def test_the_answer_of_a_row_is_decoded(sample_root):
    place, _ = sample_root.record("chat/distill")
    words = encoding(find(O200K, sample_root.data))
    row = distill.row(place, "train", 0)
    answer = [label for label in row["labels"] if label >= 0]
    number = int(row["id"].removeprefix("talks:talk"))
    assert words.decode(answer[:-1]).endswith(str(number + 1))
