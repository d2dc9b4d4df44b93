"""Samples of different lengths become padded tensors with masks."""

from __future__ import annotations

from gristmill.chess import collate
from gristmill.chess.read.collate import Sample
from tests.later import later

torch = later("torch")

WORDS = {"<PAD>": 0, "<UNK>": 1, "e2e4": 2, "e7e5": 3}


def sample(context: list[str], target: list[str], phase: int = 1) -> Sample:
    return Sample("g", context, target[0], target, phase, 2, len(context) % 2)


def test_padding_is_behind_the_moves_and_masked() -> None:
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


def test_targets_have_the_length_of_the_horizon() -> None:
    batch = collate([sample(["e2e4"], ["e7e5"])], WORDS, horizon=3)
    assert batch["target"].tolist() == [[3, 0, 0]]
    assert batch["target_mask"].tolist() == [[True, False, False]]


def test_samples_from_the_start_of_their_games_have_a_context_without_columns() -> None:
    batch = collate([sample([], ["e2e4"]), sample([], ["e7e5"])], WORDS)
    assert tuple(batch["context"].shape) == tuple(batch["context_mask"].shape) == (2, 0)
    assert batch["target"].tolist() == [[2], [3]]
