"""Legacy rows are those of simple loops."""

from pathlib import Path

import pytest

from gristmill.chess import (
    GameConfig,
    SpliceConfig,
    build_game_dataset,
    build_splice_dataset,
)
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
