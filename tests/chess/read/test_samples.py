"""Samples as padded arrays, from rows and from packed moves; batches of rows."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from gristmill.chess import CacheConfig, GameSpliceDataset, collate
from gristmill.chess.format.folders import GAME, SPAN, Sidecar
from gristmill.chess.read import dataset as reader
from gristmill.chess.read.row_batches import (
    RowBatch,
    pack_move,
    packed_words,
    read_batch,
    row_ranges,
    words_of_train,
)
from gristmill.chess.read.samples import Sample, columns_of
from gristmill.contract import BadInput
from tests.chess.laws.damage import edit, flip
from tests.later import later

torch = later("torch")

WORDS = {"<PAD>": 0, "<UNK>": 1, "e2e4": 2, "e7e5": 3}


def sample(context: list[str], target: list[str], phase: int = 1) -> Sample:
    return Sample("g", context, target[0], target, phase, 2, len(context) % 2)


def test_padding_is_behind_the_moves_and_masked_and_targets_have_the_length_of_the_horizon():
    batch = collate(
        [sample(["e2e4"], ["e7e5", "a1a2"]), sample(["e2e4", "e7e5"], ["e2e4"], 3)], WORDS
    )
    assert batch["context"].tolist() == [[2, 0], [2, 3]]
    assert batch["context_mask"].tolist() == [[True, False], [True, True]]
    assert batch["target"].tolist() == [[3, 1], [2, 0]]
    assert batch["target_mask"].tolist() == [[True, True], [True, False]]
    assert (batch["phase"].tolist(), batch["winner"].tolist()) == ([1, 3], [2, 2])
    assert batch["side_to_move"].tolist() == [1, 0]
    masks = {name: value.dtype for name, value in batch.items() if name.endswith("_mask")}
    assert masks == {"context_mask": torch.bool, "target_mask": torch.bool}
    assert {value.dtype for name, value in batch.items() if name not in masks} == {torch.int64}
    batch = collate([sample(["e2e4"], ["e7e5"])], WORDS, horizon=3)
    assert batch["target"].tolist() == [[3, 0, 0]]
    assert batch["target_mask"].tolist() == [[True, False, False]]
    batch = collate([sample([], ["e2e4"]), sample([], ["e7e5"])], WORDS)
    assert tuple(batch["context"].shape) == tuple(batch["context_mask"].shape) == (2, 0)
    assert batch["target"].tolist() == [[2], [3]]


torch_data = later("torch.utils.data", "torch")

SPANS, MOVES = "sidecar/val.spans.bin", "sidecar/val.moves.u16.bin"
GAMES = "runtime_splice_cache/val/sample_games.u32.bin"


def assert_equal(data: GameSpliceDataset, numbers: list[int]) -> None:
    """A batch is what `collate` makes of the samples one by one: columns, types, shapes."""
    samples = [data[number] for number in numbers]
    expected = columns_of(samples, data.vocabulary(), data.horizon)
    found = data.batch(numbers)
    assert list(found) == list(expected)
    for name, column in expected.items():
        assert (found[name].dtype, found[name].shape) == (column.dtype, column.shape), name
        assert np.array_equal(found[name], column), name


@pytest.mark.parametrize("horizon", [1, 7])
def test_a_batch_is_that_of_collate(dataset, cached, horizon):
    uncached = GameSpliceDataset(dataset, "val", horizon=horizon)
    data = GameSpliceDataset(cached, "val", horizon=horizon)
    random = np.random.default_rng(3)
    for numbers in ([0], [-1], random.integers(0, len(data), 400).tolist(), [5, 5, 2]):
        assert_equal(data, numbers)
        assert_equal(uncached, numbers)
    capped = CacheConfig(max_samples_per_game=3)
    assert_equal(GameSpliceDataset(dataset, "val", horizon=horizon, config=capped), [4, 1, 2])


def test_months_are_read_together(dataset, cached):
    data = GameSpliceDataset([cached, dataset, cached], "test", horizon=2)
    third = len(data) // 3
    assert_equal(data, [2 * third, 0, third, 2 * third - 1, 7, 3 * third - 1])
    assert_equal(data, [third + 1, third])
    assert_equal(pickle.loads(pickle.dumps(data)), [third + 1, 4])


def test_no_row_is_read(cached, monkeypatch):
    words = GameSpliceDataset(cached).vocabulary()
    data = GameSpliceDataset(cached, "val")
    monkeypatch.setattr(type(data.held[0]), "row", None)
    monkeypatch.setattr(reader, "moves_in", None)
    assert data.vocabulary() == words
    assert data.batch([3, 1])["context"].shape[0] == 2
    assert data.collate(data.__getitems__([3, 1]))["phase"].shape == (2,)
    assert data.as_torch(words).__getitems__([3, 1]).collated()["phase"].shape == (2,)


def test_months_without_packed_moves_are_read_by_rows(cached):
    expected = GameSpliceDataset(cached, "val").batch([4, 9, 2])
    (cached / MOVES).unlink()
    (cached / "sidecar/train.moves.u16.bin").unlink()
    data = GameSpliceDataset([cached, cached], "val")
    assert [month.packed for month in data.held] == [None, None]
    found = data.batch([4, 9, 2])
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    # A cache of other files alone: another program wrote it.
    (cached / GAMES).unlink()
    assert GameSpliceDataset(cached, "val").held[0].packed is None


def test_a_data_loader_gets_the_same_tensors(cached):
    data = GameSpliceDataset(cached, "val", horizon=2)
    [batch, *_] = torch_data.DataLoader(data, batch_size=6)
    expected = data.collate([data[number] for number in range(6)])
    assert list(batch) == list(expected)
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
    [samples, *_] = torch_data.DataLoader(data, batch_size=6, collate_fn=list)
    assert samples == [data[number] for number in range(6)]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-16])


def _grown(path: Path) -> None:
    games = np.fromfile(path, "<u4")
    games[:] = 10**6
    games.tofile(path)


def _emptied(path: Path) -> None:
    spans = np.fromfile(path, SPAN)
    spans["plies"] = 3
    spans.tofile(path)


@pytest.mark.parametrize(
    ("file", "damage", "rule"),
    [
        (MOVES, _cut, "packed moves are fewer"),
        (GAMES, _grown, "has no game 1000000"),
        (SPANS, _emptied, "has no move behind it"),
    ],
)
def test_damage_is_refused(cached, file, damage, rule):
    damage(cached / file)
    data = GameSpliceDataset(cached, "val")
    with pytest.raises(BadInput, match=rule):
        data.batch(range(len(data)))


def test_words_of_a_file_with_what_is_no_move_are_not_known(tmp_path):
    file = tmp_path / "moves"
    np.array([pack_move(word) for word in ("e2e4", "a7a8r", "e2e4")], "<u2").tofile(file)
    assert packed_words(file) == {"e2e4", "a7a8r"}
    np.array([0xFFFF], "<u2").tofile(file)
    assert packed_words(file) is None


def test_words_are_those_of_the_rows_and_other_moves_are_unknown(cached):
    packed = words_of_train(cached)
    (cached / "sidecar/train.moves.u16.bin").unlink()
    assert packed == words_of_train(cached)
    assert packed[:2] == ["<PAD>", "<UNK>"]
    assert packed[2:] == sorted(set(packed[2:]))
    assert "e2e4" in packed
    data = GameSpliceDataset(cached, "val")
    found = data.batch([50], {"<PAD>": 0, "<UNK>": 9, data[50].context[0]: 4})
    assert found["context"][0, 0] == 4
    assert set(found["context"][0, 1:].tolist()) <= {4, 9}


KEY = GAME.fields["move_key"][1] if GAME.fields else 0


@pytest.fixture
def games(valid: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(valid, tmp_path / "valid"))


def batch_of(games: Path, *, by_keys: bool = False, alone: bool = False) -> RowBatch:
    beside = None if alone else Sidecar.open(games, "games")
    [whole] = row_ranges(games / "valid_games.jsonl", 1 << 30, beside)
    return read_batch(whole, by_keys=by_keys)


def test_without_a_sidecar_the_keys_and_phases_are_those_that_it_had(games):
    noted, alone = batch_of(games), batch_of(games, alone=True)
    for name in ("row", "plies", "move_key"):
        assert np.array_equal(noted.records[name], alone.records[name])
    assert np.array_equal(noted.codes, alone.codes)


@pytest.mark.parametrize(
    ("file", "place", "by_keys"),
    [
        ("games.moves.u16.bin", 0, False),  # a packed move
        ("games.games.bin", 0, False),  # where the first row begins
        ("games.games.bin", KEY, True),
    ],
)
def test_a_sidecar_of_other_rows_is_refused(games, file, place, by_keys):
    flip(games / "sidecar" / file, place)
    with pytest.raises(BadInput, match="are not those of the sidecar"):
        batch_of(games, by_keys=by_keys)


def test_the_proof_by_keys_reads_no_packed_moves_and_serves_rows_with_other_texts(games):
    keys = batch_of(games).records["move_key"].copy()
    flip(games / "sidecar" / "games.moves.u16.bin", 0)
    assert np.array_equal(batch_of(games, by_keys=True).records["move_key"], keys)
    flip(games / "sidecar" / "games.moves.u16.bin", 0)
    flip(games / "sidecar" / "games.games.bin", KEY)
    assert (batch_of(games).records["move_key"] != keys).sum() == 1
    edit(games / "valid_games.jsonl", b'"e2e4"', b'"e9e4"')
    moves = batch_of(games, alone=True).moves
    moves.astype("<u2").tofile(games / "sidecar" / "games.moves.u16.bin")
    with pytest.raises(BadInput, match="are not those of the sidecar"):
        batch_of(games)
