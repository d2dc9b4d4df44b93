"""Legacy rows are those of simple loops."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill.chess import (
    GameConfig,
    SpliceConfig,
    build_game_dataset,
    build_splice_dataset,
)
from gristmill.chess.builders import splice_dataset
from gristmill.chess.config import SPLITS
from tests.chess import reference_rules
from tests.chess.builders.chain import rows


@pytest.mark.parametrize(("cap", "k", "min_context", "min_target"), [(0, 4, 8, 1), (5, 3, 3, 2)])
def test_legacy_rows_are_those_of_simple_loops(
    valid: Path, tmp_path: Path, cap: int, k: int, min_context: int, min_target: int
) -> None:
    config = SpliceConfig(
        k=k,
        min_context=min_context,
        min_target=min_target,
        max_samples_per_game=cap,
        share_bytes=60_000,
        games="all",
    )
    build_splice_dataset(valid, tmp_path / "out", config)
    game = GameConfig(min_context=min_context, min_target=min_target, games="all")
    build_game_dataset(valid, tmp_path / "game", game)
    for split in SPLITS:
        expected = "".join(
            reference_rules.splices(row, k, min_context, min_target, cap, 7)
            for row in rows(tmp_path / "game" / f"{split}.jsonl")
        )
        assert (tmp_path / "out" / f"{split}.jsonl").read_text() == expected
        assert expected


def test_samples_are_counted_by_the_moves_that_are_left_up_to_10_up_to_20_and_more() -> None:
    left = np.array([0, 10, 11, 20, 21, 60])
    samples: Any = SimpleNamespace(
        game=np.zeros(6, np.int64), indices=99 - left, plies=np.array([100]), starts=np.array([0])
    )
    codes = np.zeros(100, np.uint8)
    counts = splice_dataset._counts(samples, np.array([True]), codes)
    assert (counts["rows"], counts["samples"]) == (1, 6)
    assert counts["left"] == {"<=10": 2, "11-20": 2, ">20": 2}
