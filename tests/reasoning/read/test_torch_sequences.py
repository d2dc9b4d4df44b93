"""The torch view: the same batches for any number of workers, and states of what a loader gave."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gristmill.reasoning.read.shard_reader import ShardReader
from tests.later import later
from tests.reasoning.shard_folders import SEQ_LEN, tokens, write_folder
from tests.reasoning.supervised_folder import write_supervised

torch = later("torch")
torch_data = later("torch.utils.data", "torch")


pytestmark = pytest.mark.filterwarnings("ignore")  # torch warns about workers

SIZES = {"gsm8k/train": [4, 4, 4, 1], "wiqa/train": [5, 2, 6]}
ALL = 26


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shards")
    assert write_folder(root, SIZES) == ALL
    return root


def firsts(batch: dict[str, Any]) -> list[int]:
    """Numbers of the sequences of a batch; each must be whole."""
    for sequence in batch["input_ids"]:
        assert sequence.tolist() == tokens(int(sequence[0]), 1)[0].tolist()
    found: list[int] = batch["input_ids"][:, 0].tolist()
    return found


def loaded(data: Any, workers: int = 0, **options: Any) -> Iterator[dict[str, Any]]:
    context = "fork" if workers else None
    options = {"multiprocessing_context": context, "num_workers": workers} | options
    yield from torch_data.DataLoader(data, batch_size=None, **options)


@pytest.mark.parametrize(("workers", "world_size"), [(0, 1), (0, 2), (1, 1), (3, 2)])
def test_any_number_of_workers_gives_the_batches_of_one_process(root, workers, world_size):
    seen = []
    for rank in range(world_size):
        reader = ShardReader(root, rank=rank, world_size=world_size, seed=5)
        expected = [batch["input_ids"].tolist() for batch in reader.batches(3)]
        reader.start_epoch(0)
        batches = list(loaded(reader.as_torch(3), workers))
        assert [batch["input_ids"].tolist() for batch in batches] == expected
        assert [batch["read"] for batch in batches][-1] == len(reader)
        seen += [number for batch in batches for number in firsts(batch)]
    assert sorted(seen) == list(range(ALL))


@pytest.mark.slow
def test_spawned_workers_give_every_sequence_once(tmp_path):
    made = write_supervised(tmp_path)
    reader = ShardReader(made.root, steps=made.steps, dtype="int64")
    batches = list(loaded(reader.as_torch(2), 2, multiprocessing_context="spawn"))
    assert [int(shard) for batch in batches for shard in batch["shard"]] == sorted(
        int(shard) for batch in batches for shard in batch["shard"]
    )
    keys = [
        (reader.shards[int(shard)].path, int(row))
        for batch in batches
        for shard, row in zip(batch["shard"], batch["row"], strict=True)
    ]
    assert keys == list(made.step_id)
    steps = torch.cat([batch["step_id"] for batch in batches])
    assert steps.tolist() == [made.step_id[key].tolist() for key in keys]
    assert batches[0]["input_ids"].dtype == torch.int64


def test_a_batch_has_a_sequence_at_least_and_the_last_one_may_be_left_out(root):
    data = ShardReader(root).as_torch()
    options = {"batch_size": 4, "num_workers": 2, "multiprocessing_context": "fork"}
    batches = list(torch_data.DataLoader(data, **options))
    assert batches[0]["input_ids"].shape == (4, SEQ_LEN)
    assert sorted(number for batch in batches for number in firsts(batch)) == list(range(ALL))
    data = ShardReader(root).as_torch(4, drop_last=True)
    assert [len(batch["row"]) for batch in loaded(data)] == [4] * 6
    assert [len(batch["row"]) for batch in loaded(data, 2)] == [4] * 6
    with pytest.raises(ValueError, match="batch_size 0"):
        ShardReader(root).as_torch(0)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_continues_after_the_batch_that_was_used(root, workers):
    reader = ShardReader(root, seed=2)
    data = reader.as_torch(4)
    data.start_epoch(3)
    whole = [number for batch in loaded(data) for number in firsts(batch)]
    used = []
    for batch in loaded(data, workers):
        used += firsts(batch)
        if len(used) == 12:
            break
    other = ShardReader(root, seed=2)
    other.load_state(data.state(batch))
    rest = other.as_torch(4)
    rest.start_epoch(3)
    batches = list(loaded(rest, workers))
    assert used + [number for batch in batches for number in firsts(batch)] == whole
    assert rest.state(batches[-1])["shard_position"] == 7
    assert (rest.reader.epoch, rest.reader.read) == (3, 12)
    rest.start_epoch(4)
    assert sum(len(batch["row"]) for batch in loaded(rest, workers)) == ALL


def test_workers_that_stay_go_to_the_next_epoch(root):
    data = ShardReader(root, seed=2).as_torch(4)
    loader = torch_data.DataLoader(
        *(data,),
        batch_size=None,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    for epoch in (0, 1, 5):
        data.start_epoch(epoch)
        batches = list(loader)
        assert {batch["epoch"] for batch in batches} == {epoch}
        alone = ShardReader(root, seed=2)
        alone.start_epoch(epoch)
        assert [batch["input_ids"].tolist() for batch in batches] == [
            batch["input_ids"].tolist() for batch in alone.batches(4)
        ]
    with pytest.raises(ValueError, match="the batch is of epoch 5, the dataset of 6"):
        data.start_epoch(6)
        data.state(batches[-1])
