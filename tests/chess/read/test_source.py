"""Samples by number over months: tensors as `collate`, and the game of each in the PGN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.chess import GameSpliceDataset
from gristmill.loading import Loader, Plan
from tests.later import later
from tests.sample_root import SampleRoot

torch = later("torch")
MONTHS = ["2024-01", "2024-02"]


@pytest.fixture
def data(sample_root: SampleRoot) -> GameSpliceDataset:
    folders = [sample_root.data / f"chess/dataset/elite_{month}_game" for month in MONTHS]
    return GameSpliceDataset(folders, "train", horizon=3)


def test_a_batch_has_the_columns_of_collate(data: GameSpliceDataset) -> None:
    batch = next(iter(Loader(Plan(data.source(), seed=5), 9)))
    assert len(set((batch["number"] < len(data) // 2).tolist())) == 2
    expected = data.collate([data[number] for number in batch["number"].tolist()])
    for name, tensor in expected.items():
        assert torch.equal(batch[name], tensor), name


def test_each_sample_leads_to_its_game(data: GameSpliceDataset, sample_root: SampleRoot) -> None:
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


def test_the_cache_decides_no_order(data: GameSpliceDataset, tmp_path: Path) -> None:
    assert data.source().identity.numbering == {"cache": data.config.contract()}
    assert len(data.source().identity.versions) == 2
    other = GameSpliceDataset(data.dataset_dirs[0], "val").source()
    assert other.identity.text != data.source().identity.text
    assert np.array_equal(data.source().cuts[:2], [0, data.source().cuts[1]])


def _moves(game: bytes) -> int:
    """Plies of a game of the sample, which has no comments."""
    body = game.partition(b"\n\n")[2].split()
    return sum(not word.rstrip(b".").isdigit() for word in body)
