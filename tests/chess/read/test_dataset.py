"""The reader of chess samples, and its source for the loader."""

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    GameSpliceDataset,
    StaleCache,
    build_game_dataset,
    build_splice_cache,
)
from gristmill.chess.format.rows import PHASES, WINNER_IDS
from gristmill.contract import BadInput
from gristmill.loading import Loader, Plan
from tests.chess import reference_rules
from tests.later import later
from tests.sample_root import SampleRoot


def expected_samples(folder: Path, split: str, horizon: int) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for line in (folder / f"{split}.jsonl").read_text().splitlines():
        row = json.loads(line)
        moves, phases = row["moves"], reference_rules.phases(row["moves"])
        for i in range(7, len(moves) - 1):
            target = moves[i + 1 : i + 1 + horizon]
            phase, winner = PHASES.index(phases[i][0]), WINNER_IDS[row["winner_side"]]
            out.append((moves[: i + 1], moves[i + 1], target, phase, winner, (i + 1) % 2))
    return out


def test_samples_with_and_without_a_cache(dataset, cached):
    with_cache = GameSpliceDataset(cached, "val", horizon=3)
    without = GameSpliceDataset(dataset, "val", horizon=3)
    assert (with_cache.cached, without.cached) == ([True], [False])
    samples = [with_cache[i] for i in range(len(with_cache))]
    assert samples == [without[i] for i in range(len(without))]
    recorded = [
        (s.context, s.next_move, s.target, s.phase, s.winner, s.side_to_move) for s in samples
    ]
    assert recorded == expected_samples(dataset, "val", 3)
    assert with_cache[-1] == samples[-1]
    with pytest.raises(IndexError):
        with_cache[len(with_cache)]


def test_many_months_and_a_pickled_reader(dataset, cached):
    both = GameSpliceDataset([cached, dataset], "test")
    n = len(GameSpliceDataset(cached, "test"))
    assert len(both) == 2 * n > 0
    assert both[n + 3] == both[3]
    assert pickle.loads(pickle.dumps(both))[n + 5] == both[5]
    assert both.vocabulary() == GameSpliceDataset(cached).vocabulary()
    meta = json.loads((cached / "runtime_splice_cache" / "vocab_rows_meta.json").read_text())
    assert both.vocabulary() == meta["vocab"]


def test_a_cache_whose_source_changed_is_refused(cached):
    path = cached / "val.jsonl"
    original = path.read_bytes()
    path.write_bytes(original.replace(b"1-0", b"0-1", 1))
    for hashed in ("hash", True):
        with pytest.raises(StaleCache, match="has changed"):
            GameSpliceDataset(cached, "val", verify=hashed)  # type: ignore[arg-type]
    assert len(GameSpliceDataset(cached, "val", verify=False)) > 0
    path.write_bytes(original + original[: original.index(b"\n") + 1])
    with pytest.raises(StaleCache, match="has changed"):
        GameSpliceDataset(cached, "val", verify=False)
    assert len(GameSpliceDataset(cached, "train")) > 0


def test_rows_that_changed_under_their_sidecar_are_refused(dataset, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(dataset, bare)
    path = bare / "val.jsonl"
    original = path.read_bytes()
    samples = [*GameSpliceDataset(bare, "val")]
    path.write_bytes(original.replace(b"1-0", b"0-1", 1))
    with pytest.raises(StaleCache, match="has changed since its sidecar"):
        GameSpliceDataset(bare, "val", verify="hash")
    assert len(GameSpliceDataset(bare, "val", verify=False)) == len(samples)
    # A game less at the front: every offset would point into the middle of a row.
    path.write_bytes(original[original.index(b"\n") + 1 :])
    for verify in (True, False):
        with pytest.raises(StaleCache, match="has changed since its sidecar"):
            GameSpliceDataset(bare, "val", verify=verify)
    assert len(GameSpliceDataset(bare, "train")) > 0
    rows = bare / "sidecar" / "rows.json"
    rows.unlink()
    with pytest.raises(StaleCache, match="does not name the rows"):
        GameSpliceDataset(bare, "train")
    # Without the sidecar the games themselves are replayed.
    shutil.rmtree(bare / "sidecar")
    left = [*GameSpliceDataset(bare, "val")]
    assert left == samples[-len(left) :]
    assert 0 < len(left) < len(samples)


def test_the_config_is_that_of_the_months(valid, dataset, tmp_path):
    late, other = tmp_path / "late", tmp_path / "other"
    build_game_dataset(valid, late, GameConfig(min_context=20))
    reader = GameSpliceDataset(late, "val")
    assert (reader.config.min_context, reader.cached) == (20, [False])
    assert min(len(sample.context) for sample in reader) == 20
    build_splice_cache(late, late / "runtime_splice_cache", CacheConfig(min_context=20))
    cached = GameSpliceDataset(late, "val", require_cache=True)
    assert (cached.config.min_context, cached.cached) == (20, [True])
    assert [*cached] == [*reader]
    # Without a cap the seed draws nothing, and may differ from month to month.
    build_game_dataset(valid, other, GameConfig(min_context=20, seed=8))
    assert GameSpliceDataset([late, other], "val").cached == [True, False]
    with pytest.raises(BadInput, match="pass the config"):
        GameSpliceDataset([late, dataset], "val")
    both = GameSpliceDataset([late, dataset], "val", config=CacheConfig(min_context=30))
    assert (both.cached, min(len(s.context) for s in both)) == ([False, False], 30)
    (other / "stats.json").write_text("{}")
    with pytest.raises(BadInput, match="does not say which samples"):
        GameSpliceDataset(other, "val")


def test_broken_caches_are_refused(cached):
    cache = cached / "runtime_splice_cache"
    array = cache / "test" / "offsets.u64.bin"
    array.write_bytes(array.read_bytes()[:-8])
    with pytest.raises(StaleCache, match="offsets"):
        GameSpliceDataset(cached, "test")
    (cache / "manifest.json").write_text("{}")
    with pytest.raises(StaleCache, match="manifest"):
        GameSpliceDataset(cached, "train")


def test_samples_of_another_config_are_made_unless_a_cache_is_required(cached):
    config = CacheConfig(min_context=20)
    uncached = GameSpliceDataset(cached, "val", config=config)
    assert uncached.cached == [False]
    assert min(len(uncached[i].context) for i in range(len(uncached))) == 20
    with pytest.raises(BadInput, match="Runtime splice cache required"):
        GameSpliceDataset(cached, "val", config=config, require_cache=True)
    # Without a cap nothing is drawn: a training seed does not make a cache useless.
    assert GameSpliceDataset(cached, "val", config=CacheConfig(seed=99)).cached == [True]
    with pytest.raises(BadInput, match="split"):
        GameSpliceDataset(cached, "dev")


def test_capped_caches(dataset, cached):
    config = CacheConfig(max_samples_per_game=4)
    shutil.rmtree(cached / "runtime_splice_cache")
    build_splice_cache(cached, cached / "runtime_splice_cache", config)
    capped = GameSpliceDataset(cached, "val", config=config)
    bare = GameSpliceDataset(dataset, "val", config=config)
    assert capped.cached == [True]
    assert [capped[i] for i in range(len(capped))] == [bare[i] for i in range(len(bare))]
    assert len(capped) <= 4 * len((cached / "val.jsonl").read_text().splitlines())
    assert GameSpliceDataset(cached, "val", config=CacheConfig()).cached == [False]
    # Left to the months, a cache's cap is part of what they say.
    assert GameSpliceDataset(cached, "val").config.max_samples_per_game == 4
    with pytest.raises(BadInput, match="pass the config"):
        GameSpliceDataset([cached, dataset], "val")


def test_torch_views_and_batches_agree_with_tensors(cached):
    reader = GameSpliceDataset(cached, "val", horizon=4)
    vocabulary = reader.vocabulary()
    last = reader.tensors(len(reader) - 1, vocabulary)
    assert last["target_mask"].tolist() == [True, False, False, False]
    assert last["target"].tolist()[1:] == [0, 0, 0]
    assert last["context"].dtype == torch.int64
    reader = GameSpliceDataset(cached, "val", horizon=2)
    words = {"<PAD>": 0, "<UNK>": 1, "e2e4": 2}
    view = reader.as_torch(words)
    assert len(view) == len(reader)
    batch = next(iter(torch.utils.data.DataLoader(view, batch_size=5)))
    for i in range(5):
        one = view[i]
        assert batch["context"][i][batch["context_mask"][i]].tolist() == one["context"].tolist()
        assert batch["target"][i].tolist() == one["target"].tolist()
    assert set(batch["context"].unique().tolist()) <= {0, 1, 2}
    own = reader.collate([reader[0], reader[40]])
    assert own["context"][0][own["context_mask"][0]].tolist() == (
        reader.tensors(0, reader.vocabulary())["context"].tolist()
    )
    words = reader.vocabulary()
    words.clear()
    assert reader.vocabulary()["<UNK>"] == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ({"<PAD>": 1, "<UNK>": 0}, r"0 is \['<UNK>'\], <UNK> is 0: number it"),
        ({"<PAD>": 0, "e2e4": 0, "<UNK>": 1}, r"0 is \['<PAD>', 'e2e4'\], <UNK> is 1:"),
        ({"<PAD>": 0, "e2e4": 1}, r"0 is \['<PAD>'\], <UNK> is None:"),
    ],
)
def test_a_vocabulary_in_which_padding_is_a_word_is_refused(cached, words, found):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=found):
        GameSpliceDataset(cached, "val").as_torch(words)


def test_the_vocabulary_is_of_the_version_that_was_opened(cached):
    reader, late = GameSpliceDataset(cached, "val"), GameSpliceDataset(cached, "val")
    words = reader.vocabulary()
    (cached / "train.jsonl").unlink()
    assert late.vocabulary() == words
    with pytest.raises(BadInput, match=r"train\.jsonl: is missing"):
        GameSpliceDataset(cached, "val").vocabulary()


def test_a_sample_whose_row_is_not_there_is_named(cached):
    offsets = cached / "runtime_splice_cache/val/offsets.u64.bin"
    octets = bytearray(offsets.read_bytes())
    octets[:8], octets[8:16] = (1 << 63).to_bytes(8, "little"), (3).to_bytes(8, "little")
    offsets.write_bytes(octets)
    reader = GameSpliceDataset(cached, "val")
    with pytest.raises(BadInput, match=r"val\.jsonl: has no byte 9223372036854775808"):
        reader[0]
    with pytest.raises(BadInput, match=r"val\.jsonl: has no row at byte 3"):
        reader[1]
    with pytest.raises(BadInput, match=r"val\.jsonl: has no row at byte 0 \(it is no object\)"):
        replace(reader.held[0], text=b'["e2e4"]').row(0)


torch = later("torch")
MONTHS = ["2024-01", "2024-02"]


@pytest.fixture
def data(sample_root: SampleRoot) -> GameSpliceDataset:
    folders = [sample_root.data / f"chess/dataset/elite_{month}_game" for month in MONTHS]
    return GameSpliceDataset(folders, "train", horizon=3)


def test_a_batch_has_the_columns_of_collate(data):
    batch = next(iter(Loader(Plan(data.source(), seed=5), 9)))
    assert len(set((batch["number"] < len(data) // 2).tolist())) == 2
    expected = data.collate([data[number] for number in batch["number"].tolist()])
    for name, tensor in expected.items():
        assert torch.equal(batch[name], tensor), name


def test_each_sample_leads_to_its_game(data, sample_root):
    source = data.source()
    first = int(source.cuts[1])
    for number in (0, 17, first - 1, first, first + 40, len(data) - 1):
        sample = data[number]
        splice, game, pgn, _ = (step.facts() for step in source.origin(number))
        assert game["game_id"] == sample.game_id
        assert splice["ply"] == len(sample.context)
        (shown,) = source.shown(number)  # type: ignore[attr-defined]
        assert f"{shown.sample} of {shown.options['split']}" == game["row"]
        assert shown.options["ply"] == splice["ply"]
        text = (sample_root.data / str(pgn["pgn_file"])).read_bytes()
        begin = int(str(game["byte_offset"]))
        assert text[begin : begin + int(str(game["bytes"]))].startswith(b"[Event ")
        assert _moves(text[begin : begin + int(str(game["bytes"]))]) >= len(sample.context)


def test_the_cache_decides_no_order(data, tmp_path):
    assert data.source().identity.numbering == {"cache": data.config.contract()}
    assert len(data.source().identity.versions) == 2
    other = GameSpliceDataset(data.dataset_dirs[0], "val").source()
    assert other.identity.text != data.source().identity.text
    assert np.array_equal(data.source().cuts[:2], [0, data.source().cuts[1]])


def _moves(game: bytes) -> int:
    """Plies of a game of the sample, which has no comments."""
    body = game.partition(b"\n\n")[2].split()
    return sum(not word.rstrip(b".").isdigit() for word in body)
