"""Sequences by number over all shards, and every example of each."""

import json
from itertools import pairwise

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.loading import Loader, Plan, mixture
from gristmill.reasoning import ShardReader
from gristmill.vocabularies.pinned import GPT2

SHARDS = "reasoning/tokenized/gpt2"
EOS = 50_256


def test_batches_of_a_source_have_the_loaders_order_in_windows(sample_root):
    reader = ShardReader(sample_root.data / SHARDS)
    (batch,) = Loader(Plan(reader.source(), seed=5), len(reader), form="numpy")
    assert sorted(batch["number"].tolist()) == list(range(len(reader)))
    in_order = np.concatenate([each["input_ids"] for each in reader.batches(4)])
    assert np.array_equal(batch["input_ids"], in_order[batch["number"]])
    reader = ShardReader(sample_root.data / SHARDS, rank=1, world_size=2)
    with pytest.raises(
        GristmillError, match="rank 1 of 2 reads some shards alone: open it without"
    ):
        reader.source()
    root = sample_root.data / SHARDS
    reader = ShardReader(root, seed=5)
    assert len(reader.shards) > 2
    twice = mixture({"all": ShardReader(root).source()}, epochs={"all": 2})
    loader = Loader(Plan(twice, seed=5, window=1), len(reader), form="numpy")
    loaded = [batch["input_ids"] for batch in loader]
    for ids in loaded:
        assert np.array_equal(np.concatenate([b["input_ids"] for b in reader.batches(3)]), ids)
    assert not np.array_equal(*loaded)


def test_documents_of_a_sequence_are_those_of_the_index(sample_root):
    root = sample_root.data / SHARDS
    reader = ShardReader(root, corpora=["wiqa"], documents=True)
    steps = ShardReader(
        root, corpora=["wiqa"], documents=True, steps=sample_root.data / "reasoning/alignment"
    )
    (batch,) = Loader(Plan(reader.source(), seed=1), len(reader), form="numpy")
    (beside,) = Loader(Plan(steps.source(), seed=1), len(reader), form="numpy")
    assert set(beside) - set(batch) == {"step_id"}
    assert all(np.array_equal(beside[name], column) for name, column in batch.items())
    begins = 0
    for row, ids in enumerate(batch["input_ids"]):
        assert batch["segments"][row] > 2
        bounds = batch["cu_seqlens"][row, : batch["segments"][row] + 1]
        assert bounds[-1] == reader.seq_len
        for begin, end in pairwise(bounds.tolist()):
            if batch["example"][row, begin] < 0:
                assert not batch["loss_mask"][row, begin:end].any()
                continue
            begins += batch["position_ids"][row, begin] == 0
            assert (batch["labels"][row, begin : end - 1] == ids[begin + 1 : end]).all()
            assert batch["loss_mask"][row, begin : end - 1].all()
            assert not batch["loss_mask"][row, end - 1]
            assert end == reader.seq_len or ids[end - 1] == EOS
    shards = {shard.path for shard in reader.shards}
    listed = [
        (span["shard_path"], span["sequence_index"], span["start"])
        for shard in {(each.corpus, each.split) for each in reader.shards}
        for line in (root.joinpath(*shard) / "index.jsonl").read_text().splitlines()
        for span in json.loads(line)["spans"]
        if any(span["shard_path"].endswith(path) for path in shards)
    ]
    assert begins == len(set(listed)) == len(listed)
    batches = list(reader.batches(len(reader)))
    assert {"cu_seqlens", "segments", "labels"} <= set(batches[0])


def test_corpora_are_mixed_in_a_batch(sample_root):
    sources = {
        name: ShardReader(sample_root.data / SHARDS, corpora=[name]).source()
        for name in ("gsm8k", "wiqa")
    }
    tokens = dict.fromkeys(sources, 4 * 2048 - 1)
    mixed = mixture(sources, tokens=tokens, max_epochs=9)
    assert [facts["tokens"] for facts in Plan(mixed).facts()] == [4 * 2048] * 2
    (batch,) = Loader(Plan(mixed, seed=1), 8, form="numpy")
    assert sorted(batch["source"].tolist()) == [0] * 4 + [1] * 4


def test_another_tokenizer_or_seq_len_is_refused_by_both_names(sample_root):
    folders = (SHARDS, "reasoning/tokens/mine")
    sources = {name: ShardReader(sample_root.data / name).source() for name in folders}
    pinned = f"tokenizer gpt2 of sha256 {GPT2.sha256}, seq_len 2048"
    words = {name: source.words for name, source in sources.items()}  # type: ignore[attr-defined]
    assert words[SHARDS] == pinned
    assert words[folders[1]].startswith("tokenizer tiny of sha256 ")
    assert words[folders[1]].endswith(", seq_len 64")
    both = f"tokenized/gpt2 and {folders[1]} are of different vocabularies or lengths: {pinned}; "
    with pytest.raises(GristmillError, match=both):
        mixture(sources, epochs=dict.fromkeys(sources, 1))
