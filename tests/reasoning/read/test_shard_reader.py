"""ShardReader: every sequence once in an epoch, at any number of ranks, and errors in words."""

import hashlib
import json
import pickle
import random
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.read import shard_files
from gristmill.reasoning.read.shard_reader import ShardReader, StaleDataset
from gristmill.vocabularies.pinned import GPT2, find
from tests.reading.readers import publish_part
from tests.reasoning.normalized_files import GSM8K, write_gsm8k
from tests.reasoning.published import parts
from tests.reasoning.shard_folders import SEQ_LEN, tokens, write_folder, write_manifest, write_shard
from tests.reasoning.supervised_folder import write_supervised

SIZES = {"gsm8k/test": [3, 2], "gsm8k/train": [4, 4, 4, 1], "wiqa/train": [5, 2, 6]}
ALL = 31
GOLDEN = "2685f162625baa0e1db98c4831100a1585410bd4d836aaafd093d192a2564945"
"""sha256 of the test split's tensor, in whatever shards it lies."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shards")
    assert write_folder(root, SIZES) == ALL
    return root


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """A folder that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "gpt2"))


def firsts(batches: Iterable[dict[str, Any]]) -> list[int]:
    """Numbers of the sequences in batches; each must be whole."""
    found = []
    for batch in batches:
        ids = batch["input_ids"]
        for sequence in ids:
            assert sequence.tolist() == tokens(int(sequence[0]), 1)[0].tolist()
        found += ids[:, 0].tolist()
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", [None, 3])
def test_every_sequence_is_read_once_in_each_epoch(whole, world_size, seed):
    readers = [
        ShardReader(whole, rank=rank, world_size=world_size, seed=seed, rotate=1)
        for rank in range(world_size)
    ]
    for epoch in range(2):
        assert {reader.epoch for reader in readers} == {epoch}
        read = [firsts(reader.batches(4)) for reader in readers]
        assert sorted(chain(*read)) == list(range(ALL))
        assert [len(numbers) for numbers in read] == [len(reader) for reader in readers]
        if seed is None and world_size == 1 and epoch == 0:
            assert read[0] == list(range(ALL))
        if seed is not None:
            assert read[0] != sorted(read[0])


def test_a_batch_has_tokens_and_where_they_are(whole):
    reader = ShardReader(whole, rank=1, world_size=2, dtype="int64")
    assert [shard.path for shard in reader.shards][:3] == [
        "gsm8k/test/shard_00000.pt",
        "gsm8k/test/shard_00001.pt",
        "gsm8k/train/shard_00000.pt",
    ]
    batch = next(reader.batches(4))
    assert {name: column.dtype for name, column in batch.items()} == {
        "input_ids": np.int64,
        "shard": np.int32,
        "row": np.int32,
    }
    assert batch["input_ids"].shape == (4, SEQ_LEN)
    assert batch["shard"].tolist() == [1, 1, 3, 3]
    assert batch["row"].tolist() == [0, 1, 0, 1]
    assert batch["input_ids"][:, 0].tolist() == [3, 4, 9, 10]
    assert (reader.read, reader.epoch_length, reader.seq_len) == (4, len(reader), SEQ_LEN)


def test_batches_cross_shards_and_numbers_are_those_of_the_rank(whole):
    reader = ShardReader(whole)
    assert [len(batch["row"]) for batch in reader.batches(9)] == [9, 9, 9, 4]
    assert reader.epoch == 1
    assert [len(batch["row"]) for batch in reader.batches(9, drop_last=True)] == [9, 9, 9]
    assert reader.epoch == 2
    with pytest.raises(ValueError, match="batch_size 0"):
        next(reader.batches(0))
    reader = ShardReader(whole, rank=1, world_size=2, seed=1)
    expected = [3, 4, 9, 10, 11, 12, 17]
    assert [int(reader[number]["input_ids"][0]) for number in range(7)] == expected
    assert int(reader[-len(reader)]["input_ids"][0]) == 3
    for number in (len(reader), -len(reader) - 1):
        with pytest.raises(IndexError):
            _ = reader[number]


def test_splits_are_chosen_before_ranks_which_may_be_empty_if_allowed(whole):
    assert firsts(ShardReader(whole, corpora=["wiqa"]).batches(3)) == list(range(18, 31))
    assert firsts(ShardReader(whole, splits=["train"]).batches(3)) == list(range(5, 31))
    second = ShardReader(whole, corpora=["gsm8k"], splits=["train"], rank=1, world_size=2)
    assert firsts(second.batches(9)) == [9, 10, 11, 12, 17]
    with pytest.raises(BadInput, match=r"no shard of \['trip'\]: it has \['gsm8k', 'wiqa'\]"):
        ShardReader(whole, corpora=["trip"])
    with pytest.raises(BadInput, match="no shard of"):
        ShardReader(whole, splits=["dev"])
    with pytest.raises(BadInput, match="lists no shard to read"):
        ShardReader(whole, corpora=["wiqa"], splits=["test"])
    with pytest.raises(GristmillError, match="10 ranks for 9 shards"):
        ShardReader(whole, world_size=10)
    readers = [ShardReader(whole, rank=r, world_size=10, allow_empty=True) for r in range(10)]
    assert sorted(chain(*(firsts(r.batches(2)) for r in readers))) == list(range(ALL))
    assert (len(readers[9]), list(readers[9].batches(2)), readers[9].epoch) == (0, [], 2)
    padded = ShardReader(whole, rank=9, world_size=10, allow_empty=True, uneven="pad")
    with pytest.raises(GristmillError, match="no sequence to pad with"):
        list(padded.batches(2))


@pytest.mark.parametrize(("uneven", "length"), [("pad", 22), ("stop", 9)])
def test_ranks_of_unequal_length_are_padded_or_stopped(whole, uneven, length):
    read = [
        firsts(ShardReader(whole, rank=r, world_size=2, uneven=uneven).batches(5))  # type: ignore[arg-type]
        for r in range(2)
    ]
    assert [len(numbers) for numbers in read] == [length, length]
    if uneven == "pad":
        assert set(read[0] + read[1]) == set(range(ALL))
        assert read[1][9:18] == read[1][:9]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 2, "world_size": 2},
        {"rank": -1},
        {"uneven": "x"},
        {"dtype": "int8"},
        {"rotate": -1},
    ],
)
def test_wrong_arguments_are_refused(whole, wrong):
    with pytest.raises(ValueError, match=r"ranks count from 0|not allowed"):
        ShardReader(whole, **wrong)


@pytest.mark.parametrize("seed", range(12))
def test_an_epoch_continues_at_another_world_size_with_every_sequence_once(whole, seed):
    chance = random.Random(seed)
    options = {"seed": chance.choice([None, 4]), "rotate": chance.choice([0, 1])}
    read: list[int] = []
    states: list[dict[str, Any]] = []
    for world_size in (*chance.choices([1, 2, 3, 7], k=3), 2):
        readers = [
            ShardReader(whole, rank=rank, world_size=world_size, **options)
            for rank in range(world_size)
        ]
        for reader in readers:
            if states:
                reader.load_state(states)
            batches = reader.batches(chance.randint(1, 3))
            for _ in range(chance.randint(0, 2)):
                if reader.read < reader.epoch_length:
                    read += firsts([next(batches)])
        states = json.loads(json.dumps([reader.state() for reader in readers]))
        assert {reader.epoch for reader in readers} == {0}
    last = [ShardReader(whole, rank=rank, world_size=3, **options) for rank in range(3)]
    for reader in last:
        reader.load_state(states)
        read += firsts(reader.batches(4))
    assert sorted(read) == list(range(ALL))
    assert sorted(chain(*(firsts(reader.batches(4)) for reader in last))) == list(range(ALL))


def test_a_state_continues_after_the_batch_that_was_given(whole):
    reader = ShardReader(whole, seed=2)
    reader.start_epoch(3)
    expected = firsts(reader.batches(4))
    reader.start_epoch(3)
    for number, _ in enumerate(reader.batches(4), 1):
        other = ShardReader(whole, seed=2)
        other.load_state(reader.state())
        assert firsts(other.batches(5)) == expected[4 * number :]
        assert other.epoch == 4
        assert reader.state(read=min(4 * number, ALL)) == reader.state()
    for wrong in (-1, ALL + 1):
        with pytest.raises(IndexError):
            reader.state(wrong)
    with pytest.raises(ValueError, match="epoch -1"):
        reader.start_epoch(-1)


def test_the_state_of_other_shards_is_refused_and_one_of_the_same_shards_is_not(root):
    state = ShardReader(root, corpora=["gsm8k"]).state()
    with pytest.raises(GristmillError, match="of other shards"):
        ShardReader(root).load_state(state)
    write_shard(root, "trip/test/shard_00000.pt", tokens(50, 2))
    write_manifest(root)
    ShardReader(root, corpora=["gsm8k"]).load_state(state)
    write_shard(root.joinpath(), "gsm8k/test/shard_00002.pt", tokens(50, 2))
    write_manifest(root)
    with pytest.raises(GristmillError, match="of other shards"):
        ShardReader(root, corpora=["gsm8k"]).load_state(state)


def test_only_two_shards_are_mapped_and_states_of_other_ranks_are_taken(whole):
    reader = ShardReader(whole)
    mapped: list[list[int]] = []
    for batch in reader.batches(2):
        files = reader.held.files
        mapped.append(sorted(files.mapped))
        assert len(files.mapped) <= 2
        last = int(batch["shard"][-1])
        assert {last, min(last + 1, 8)} <= set(files.mapped)
    assert [0, 1] in mapped
    assert [7, 8] in mapped
    before = [ShardReader(whole, rank=rank, world_size=2) for rank in range(2)]
    read = list(chain(*(firsts([next(reader.batches(3))]) for reader in before)))
    reader = ShardReader(whole)
    next(reader.batches(2))
    reader.load_state([each.state() for each in before])
    assert sorted(read + firsts(reader.batches(4))) == list(range(ALL))


def test_more_shards_than_are_held_open_are_read_and_watched(root, monkeypatch):
    monkeypatch.setattr(shard_files, "MOST_HELD", 2)
    reader = ShardReader(root)
    assert firsts(reader.batches(4)) == list(range(ALL))
    file = root / "gsm8k/train/shard_00000.pt"
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    with pytest.raises(StaleDataset, match=r"now gsm8k/train/shard_00000\.pt is another file"):
        list(reader.batches(4))
    with pytest.raises(StaleDataset, match=r"now gsm8k/train/shard_00000\.pt is another file"):
        list(pickle.loads(pickle.dumps(reader)).batches(4))
    again = ShardReader(root)
    file.unlink()
    with pytest.raises(StaleDataset, match=r"now gsm8k/train/shard_00000\.pt is missing"):
        list(again.batches(4))


def test_a_pickled_reader_continues_and_a_new_epoch_ends_the_old_one(whole):
    reader = ShardReader(whole, seed=1)
    next(reader.batches(7))
    other = pickle.loads(pickle.dumps(reader))
    assert firsts(other.batches(7)) == firsts(reader.batches(7))
    reader = ShardReader(whole)
    batches = reader.batches(4)
    next(batches)
    reader.start_epoch(5)
    assert list(batches) == []
    assert (reader.epoch, reader.read) == (5, 0)


def entries(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((root / "manifest.json").read_text())
    return found


def changes() -> Iterator[tuple[Any, str]]:
    yield lambda listed: {}, "no list of shards"
    yield lambda listed: [], "lists no shard"
    yield lambda listed: [1], "an entry is no object"
    yield lambda listed: [listed[0], listed[0]], "lists a shard twice"
    yield lambda listed: [listed[0] | {"path": "../x/shard_00000.pt"}], "is not <dataset>/<split>"
    yield lambda listed: [listed[0] | {"dataset": "..", "path": "../test/s.pt"}], "is not <dataset>"
    yield lambda listed: [listed[0] | {"split": ".."}], "is not <dataset>"
    yield lambda listed: [listed[0] | {"num_sequences": 4}], "4 sequences of 8 tokens"
    yield lambda listed: [listed[0] | {"num_sequences": 0, "token_count": 0}], "0 sequences"
    yield lambda listed: [listed[0] | {"seq_len": True}], "seq_len must be of type int"
    yield lambda listed: [listed[0] | {"sha256": None}], "sha256 must be of type str"
    yield (
        lambda listed: [listed[0] | {"num_sequences": 4, "token_count": 32}],
        "has 3 sequences of 8 tokens, the manifest says 4 of 8",
    )
    yield (
        lambda listed: [listed[0], listed[1] | {"seq_len": 4, "token_count": 8}],
        r"sequences of \[4, 8\] tokens",
    )


@pytest.mark.parametrize(("change", "text"), list(changes()))
def test_a_manifest_of_another_form_is_refused(root, change, text):
    (root / "manifest.json").write_text(json.dumps(change(entries(root))))
    with pytest.raises(BadInput, match=text) as caught:
        ShardReader(root)
    assert "/proc/" not in str(caught.value)


def test_a_folder_without_a_manifest_is_refused(root):
    (root / "manifest.json").write_text("[")
    with pytest.raises(BadInput, match=r"manifest\.json: is no JSON"):
        ShardReader(root)
    (root / "manifest.json").unlink()
    with pytest.raises(BadInput, match=r"manifest\.json: is missing"):
        ShardReader(root)


@pytest.mark.parametrize("level", ["none", "sizes"])
def test_a_shard_that_is_cut_short_or_of_another_form_is_refused(root, level):
    file = root / "gsm8k/test/shard_00001.pt"
    content = file.read_bytes()
    for damaged in (content[:-1], content[:700], b"", b"PK" + bytes(900)):
        file.write_bytes(damaged)
        with pytest.raises(BadInput, match=r"gsm8k/test/shard_00001\.pt"):
            ShardReader(root, verify=level)
    file.unlink()
    with pytest.raises(BadInput, match="is missing"):
        ShardReader(root, verify=level)
    assert len(ShardReader(root, rank=0, world_size=2, verify=level))


def test_a_folder_of_the_seeds_tools_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    write_folder(tmp_path, {"gsm8k/test": [3, 2]})
    for number, (first, count) in enumerate([(70, 3), (73, 2)]):
        ids = torch.from_numpy(tokens(first, count))
        torch.save({"input_ids": ids}, tmp_path / f"gsm8k/test/shard_0000{number}.pt")
    assert firsts(ShardReader(tmp_path).batches(2)) == [70, 71, 72, 73, 74]
    with pytest.raises(BadInput, match="has no provenance record"):
        ShardReader(tmp_path, verify="hash")


def test_a_manifest_of_other_shards_than_are_published_is_refused(tmp_path):
    made = [write_supervised(tmp_path / f"made{n}", examples=9, seed=n) for n in (0, 1)]
    listed = parts(made, tmp_path)
    for part, version in ((0, 0), (1, 0), (0, 1)):
        publish_part(tmp_path / "data", listed, part, version)
    root = tmp_path / "data" / names.TOKENIZED
    with pytest.raises(BadInput, match=r"manifest\.json: was built from another version of openr1"):
        ShardReader(root)
    publish_part(tmp_path / "data", listed, 1, 1)
    assert len(ShardReader(root))


@pytest.mark.real
def test_gsm8k_is_read_whole_by_ranks_that_change_in_an_epoch(tmp_path, vocabulary_root):
    if not GSM8K.exists():
        pytest.skip(f"there is no {GSM8K}")
    source = write_gsm8k(tmp_path / "gsm8k" / "test.jsonl")
    config = TokenizeConfig(find(GPT2, vocabulary_root), tokens_per_shard=16 * 2048)
    tokenize(source, tmp_path / "out", config)
    write_manifest(tmp_path / "out")
    states: list[dict[str, Any]] = []
    read: list[tuple[int, int, bytes]] = []
    for world_size in (7, 2, 3, 1):
        ranks = [
            ShardReader(tmp_path / "out", rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        for reader in ranks:
            if states:
                reader.load_state(states)
            for batch in islice(reader.batches(4), None if world_size == 1 else 2):
                places = zip(batch["shard"], batch["row"], batch["input_ids"], strict=True)
                read += [(int(shard), int(row), ids.tobytes()) for shard, row, ids in places]
        states = [reader.state() for reader in ranks]
    assert len(read) == len({(shard, row) for shard, row, _ in read}) == 104
    digest = hashlib.sha256(b"".join(ids for _, _, ids in sorted(read)))
    assert digest.hexdigest() == GOLDEN
